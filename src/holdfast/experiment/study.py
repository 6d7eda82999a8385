"""What an experiment sets out to compute: methods, criteria and analyses on some cases, laid out as jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from holdfast.analyses import Marks
from holdfast.cases import Cases
from holdfast.criteria.criterion import Criterion
from holdfast.criteria.removal import Deletion, Insertion
from holdfast.curve import SIZES
from holdfast.data.photographs import is_photograph
from holdfast.errors import HoldfastError
from holdfast.experiment import fingerprint
from holdfast.experiment.jobs import Change, Diagnose, Forget, Inputs, Job, Nudge, Rank, Substitute, Trace
from holdfast.explainers.explainer import Explainer
from holdfast.reference import FixedReference, RandomWords, Reference, Score, read_reference
from holdfast.robustness import Judge, Robustness
from holdfast.text import Sentences
from holdfast.version import RESULTS, __version__

Side = Literal["rest", "relevant"]
"""What a ranking was made to optimise, and what a criterion asks of it.

Robustness-S̄r and Insertion belong to "rest", Robustness-Sr and Deletion to "relevant": the paper's reading.
"""
SIDES: tuple[Side, ...] = ("rest", "relevant")


@dataclass(frozen=True)
class Method:
    """A row of the tables: one explainer, or one for each side.

    ``group``: the methods that the tables compare, the variants of the main one, or probes that are there to tell why
    another one does well: a variant ``of`` it that answers the question ``why``. ``judged``: the criteria it meets; all
    of them, and all references, if not said.
    """

    name: str
    explainers: Mapping[str, Explainer]
    group: Literal["table", "ablation", "probe"] = "table"
    why: str = ""
    of: str = ""
    judged: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if set(self.explainers) not in ({"both"}, set(SIDES)):
            raise HoldfastError(f'{self.name} needs one explainer ("both") or one for each of {", ".join(SIDES)}.')

    @property
    def first(self) -> tuple[str, Explainer]:
        """Its one ranking, or that for Robustness-S̄r: what a reader is shown where only one can be."""
        side = "both" if "both" in self.explainers else "rest"
        return side, self.explainers[side]


@dataclass(frozen=True)
class Measure:
    """A criterion by name, and the side whose rankings it is meant for."""

    name: str
    criterion: Criterion
    side: Side
    group: Literal["table", "probe"] = "table"
    why: str = ""


@dataclass(frozen=True)
class References:
    """Insertion and Deletion under several reference values."""

    values: tuple[Reference, ...]
    score: Score = "logit"
    draws: int = 10
    seed: int = 0

    def measures(self) -> list[tuple[str, Measure]]:
        """For every reference, by name, both criteria."""
        found = []
        for value in self.values:
            read = read_reference(value)
            name = read if isinstance(read, str) else f"{read!r}".removesuffix(".0")
            name = "words" if isinstance(read, RandomWords) else name
            given = (value, self.score, self.draws, self.seed)
            found += [
                (name, Measure(f"Insertion, reference {name}", Insertion(*given), "rest")),
                (name, Measure(f"Deletion, reference {name}", Deletion(*given), "relevant")),
            ]
        return found


@dataclass(frozen=True)
class SanityCheck:
    """Methods asked again after layers were re-initialised, on the first ``examples``."""

    methods: tuple[str, ...]
    examples: int
    cascade: bool = False
    seed: int = 0


@dataclass(frozen=True)
class SensitivityCheck:
    """Methods asked again near the first ``examples``."""

    methods: tuple[str, ...]
    examples: int
    radius: float = 0.1
    top: float = 0.2
    samples: int = 10
    seed: int = 0


@dataclass(frozen=True)
class DiagnosticsCheck:
    """How far the radii of the main method's top features can be trusted, on the first ``examples``."""

    examples: int
    judge: Robustness = field(default_factory=Judge)
    seeds: int = 5


@dataclass(frozen=True)
class SubstitutionCheck:
    """Whether real words, of these ``vectors`` and ``names``, in the place of the ``top`` ones turn decisions too."""

    top: int
    judge: Robustness
    vectors: FixedReference
    names: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class Gallery:
    """Pictures of the first ``examples``: the top features, and what the smallest change makes of them.

    ``targets``: also why not the next likely classes, so many of them.
    """

    examples: int
    top: float | int = 0.2
    targets: int = 2
    judge: Robustness = field(default_factory=Judge.quick)


@dataclass(frozen=True, eq=False)
class Study:
    """Methods and criteria on some cases, cut into blocks of ``block`` cases that are computed together.

    ``main`` is the method that the others are compared with. ``examples`` and ``classes`` are what inputs and classes
    are called; ``about`` is what else a reader should know, by name. ``model`` names a model that has no weights to
    know it by. ``read`` are the texts behind cases of words, ``marks`` what people marked in the examples.
    """

    name: str
    cases: Cases
    methods: tuple[Method, ...]
    measures: tuple[Measure, ...]
    main: str
    title: str = ""
    sizes: tuple[float, ...] | tuple[int, ...] = SIZES
    block: int = 10
    examples: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    references: References | None = None
    sanity: SanityCheck | None = None
    sensitivity: SensitivityCheck | None = None
    diagnostics: DiagnosticsCheck | None = None
    substitution: SubstitutionCheck | None = None
    gallery: Gallery | None = None
    read: Sentences | None = None
    marks: Marks | None = None
    published: str | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        _once("method", names)
        others = [measure.name for _, measure in (self.references.measures() if self.references else ())]
        _once("criterion", [*(measure.name for measure in self.measures), *others])
        compared = [method.name for method in self.methods if method.group == "table"]
        if self.main not in compared:
            raise HoldfastError(f"main must be one of {', '.join(compared)}, got {self.main!r}.")
        for what, check in (("sanity", self.sanity), ("sensitivity", self.sensitivity)):
            unknown = [name for name in (check.methods if check else ()) if name not in names]
            if unknown:
                raise HoldfastError(f"{what} names {unknown[0]!r}, which is none of {', '.join(names)}.")
        if self.block < 1 or not self.measures:
            raise HoldfastError("a study needs at least one criterion, and blocks of at least one case.")
        for what, given in (("examples", self.examples), ("classes", self.classes)):
            needed = len(self.cases) if what == "examples" else self.cases.model.classes
            if given and len(given) != needed:
                raise HoldfastError(f"{what} names {len(given)}, there are {needed}.")

    # ------------------------------------------------------------------ as jobs

    @cached_property
    def plan(self) -> Plan:
        """All its jobs, block after block, and what each is for."""
        model = fingerprint.of_model(self.cases.model, self.model)
        blocks: dict[str, Cases] = {}
        tasks: list[Task] = []
        spans = []
        for start in range(0, len(self.cases), self.block):
            part = self.cases[start : start + self.block]
            name = f"{model} {fingerprint.of_cases(part)}"
            blocks[name] = part
            spans.append([start, start + len(part)])
            tasks += self._tasks(name, len(spans) - 1, start, len(part))
        for number, asked in enumerate(self._targeted()):
            name = f"{model} {fingerprint.of_cases(asked)}"
            blocks[name] = asked
            tasks += self._pictures(name, number, asked)
        # Two names for the same work are one job.
        jobs = {task.job.key: task.job for task in tasks}
        return Plan(jobs, _batches(jobs, blocks), tuple(tasks), blocks, self._content(model, tasks, spans))

    def _tasks(self, name: str, number: int, start: int, count: int) -> Iterator[Task]:
        """The jobs of one block."""
        here = {"block": number}

        def share(examples: int) -> int:
            """How many of the first so many examples lie in this block."""
            return max(0, min(count, examples - start))

        pictured = share(self.gallery.examples if self.gallery else 0)
        yield Task(Inputs(name, pictured), here)
        rankings: dict[tuple[str, str], str] = {}
        for method in self.methods:
            for side, explainer in method.explainers.items():
                rank = Rank(name, explainer)
                role = {**here, "method": method.name, "side": side}
                yield Task(rank, role)
                rankings[method.name, side] = rank.key
                for measure in self._judges(method):
                    yield Task(Trace(name, rank.key, measure.criterion, self.sizes), role | {"criterion": measure.name})
                if self.substitution:
                    asked = self.substitution
                    yield Task(Substitute(name, rank.key, asked.judge, asked.top, asked.vectors), role)
                if self.gallery and pictured and side == method.first[0]:
                    moves = method.name == self.main or not is_photograph(self.cases.x.shape[1:])
                    yield Task(Change(name, rank.key, self.gallery.judge, self.gallery.top, pictured, moves), role)
        for check, make in ((self.sanity, self._forget), (self.sensitivity, self._nudge)):
            if check is None or not share(check.examples):
                continue
            for method in self.methods:
                if method.name in check.methods:
                    side, explainer = method.first
                    job = make(name, explainer, share(check.examples))
                    yield Task(job, {**here, "method": method.name, "side": side})
        if self.diagnostics and share(self.diagnostics.examples):
            side, _ = self.method(self.main).first
            judge, seeds, examples = self.diagnostics.judge, self.diagnostics.seeds, self.diagnostics.examples
            trust = Diagnose(name, rankings[self.main, side], judge, self.sizes, seeds, share(examples))
            yield Task(trust, {**here, "method": self.main, "side": side})

    def _judges(self, method: Method) -> list[Measure]:
        """The criteria that a method meets."""
        if method.judged is not None:
            return [measure for measure in self.measures if measure.name in method.judged]
        return [*self.measures, *(measure for _, measure in (self.references.measures() if self.references else ()))]

    def _forget(self, block: str, explainer: Explainer, examples: int) -> Job:
        assert self.sanity is not None
        return Forget(block, explainer, examples, self.sanity.cascade, self.sanity.seed)

    def _nudge(self, block: str, explainer: Explainer, examples: int) -> Job:
        asked = self.sensitivity
        assert asked is not None
        return Nudge(block, explainer, examples, asked.radius, asked.top, asked.samples, asked.seed)

    def _targeted(self) -> Iterator[Cases]:
        """The cases of the gallery asked again: why not the next likely class, the one after it, …"""
        if self.gallery is None or not self.gallery.targets:
            return
        shown = self.cases[: self.gallery.examples]
        ranked = shown.model(shown.x, exact=True).argsort(1, descending=True)
        ranked = ranked[ranked != shown.label[:, None]].view(len(shown), -1)
        for number in range(min(self.gallery.targets, ranked.shape[1])):
            yield shown.model.ask(shown.x, shown.label, ranked[:, number], shown.features)

    def _pictures(self, name: str, number: int, asked: Cases) -> Iterator[Task]:
        assert self.gallery is not None
        side, explainer = self.method(self.main).first
        rank = Rank(name, explainer)
        yield Task(Inputs(name, len(asked)), {"target": number})
        role = {"target": number, "method": self.main, "side": side}
        yield Task(rank, role)
        yield Task(Change(name, rank.key, self.gallery.judge, self.gallery.top, len(asked)), role)

    def _told_marks(self) -> dict[str, dict[str, list[int]]] | None:
        if self.marks is None:
            return None
        known = self.marks.marks
        return {name: {who: sorted(marked) for who, marked in known[name].items()} for name in self.examples}

    def method(self, name: str) -> Method:
        """The method of that name."""
        return next(method for method in self.methods if method.name == name)

    def _content(self, model: str, tasks: list[Task], blocks: list[list[int]]) -> dict[str, Any]:
        """All of it as plain values: what the store keeps so that results can be read without the model."""
        references = self.references.measures() if self.references else []
        return {
            "name": self.name,
            "title": self.title,
            "version": __version__,
            "results": RESULTS,
            "model": model,
            "module": type(self.cases.model.module).__name__,
            "features": f"{self.cases.features.count} {self.cases.features.kind}",
            "examples": list(self.examples or map(str, range(len(self.cases)))),
            "classes": list(self.classes or map(str, range(self.cases.model.classes))),
            "blocks": blocks,
            "main": self.main,
            "sizes": list(self.sizes),
            "published": self.published,
            "methods": [
                {
                    "name": method.name,
                    "group": method.group,
                    "why": method.why,
                    "of": method.of,
                    "explainers": {side: repr(made) for side, made in method.explainers.items()},
                }
                for method in self.methods
            ],
            "measures": [_told(measure, None) for measure in self.measures]
            + [_told(measure, reference) for reference, measure in references],
            "checks": {
                name: repr(check)
                for name in ("sanity", "sensitivity", "diagnostics", "substitution", "gallery")
                if (check := getattr(self, name)) is not None
            },
            "top": self.gallery.top if self.gallery else None,
            "texts": _told_texts(self.read),
            "vocabulary": list(self.substitution.names) if self.substitution else None,
            "marks": self._told_marks(),
            "about": dict(self.about),
            "units": [{"key": task.job.key, "kind": task.job.kind, **task.role} for task in tasks],
        }


@dataclass(frozen=True)
class Task:
    """A job, and what it is for in the study."""

    job: Job
    role: Mapping[str, Any]

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        method = self.role.get("method")
        side = self.role.get("side", "both")
        who = "" if method is None else f" {method}" + ("" if side == "both" else f" ({side})")
        return f"{self.job.kind}{who}" + (f", {self.role['criterion']}" if "criterion" in self.role else "")


@dataclass(frozen=True, eq=False)
class Plan:
    """The jobs of a study by key, those best done together, and the cases they are about by block.

    Batches do not depend on what is there already: a batch that was interrupted is done again as it was.
    """

    jobs: Mapping[str, Job]
    batches: tuple[tuple[Job, ...], ...]
    tasks: tuple[Task, ...]
    blocks: Mapping[str, Cases]
    content: Mapping[str, Any]

    @cached_property
    def rows(self) -> Mapping[str, int | None]:
        """About how many rows each job puts through the model."""
        return {key: job.rows(self.blocks[job.block]) for key, job in self.jobs.items()}


def _batches(jobs: Mapping[str, Job], blocks: Mapping[str, Cases]) -> tuple[tuple[Job, ...], ...]:
    """Company together, as many as the model takes rows at a time; the others alone."""
    batches: list[list[Job]] = []
    room: dict[tuple[str, str], tuple[list[Job], int]] = {}
    for job in jobs.values():
        cases = blocks[job.block]
        company = job.company(cases)
        if company is None:
            batches.append([job])
            continue
        name, rows = company
        batch, left = room.get((job.block, f"{job.kind} {name}"), ([], 0))
        if left < rows:
            batch, left = [], max(rows, cases.model.chunk(cases.x))
            batches.append(batch)
        batch.append(job)
        room[job.block, f"{job.kind} {name}"] = batch, left - rows
    return tuple(tuple(batch) for batch in batches)


def _told(measure: Measure, reference: str | None) -> dict[str, Any]:
    robustness = getattr(measure.criterion, "robustness", None)
    return {
        "name": measure.name,
        "kind": type(measure.criterion).__name__,
        "criterion": repr(measure.criterion),
        "side": measure.side,
        "higher": measure.criterion.higher_is_better,
        "bound": robustness.bound if isinstance(robustness, Robustness) else "exact",
        "reference": reference,
        "draws": getattr(measure.criterion, "draws", 1),
        "group": "reference" if reference else measure.group,
        "why": measure.why,
    }


def _told_texts(read: Sentences | None) -> list[dict[str, Any]] | None:
    """Every text, and where its words stand."""
    if read is None:
        return None
    return [
        {"text": text, "words": [[word.start, word.end] for word in words]}
        for text, words in zip(read.texts, read.words, strict=True)
    ]


def _once(what: str, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice or not names:
        raise HoldfastError(f"a {what} is named twice: {twice[0]}." if twice else f"name at least one {what}.")
