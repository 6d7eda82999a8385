"""The kinds of work an experiment is made of, each a small recipe for one unit of the store.

A job says what its unit is made of before anything runs, so that what is there already is not made again. It is about a
fixed block of cases, named by content: blocks are part of the key, and results do not depend on who computed them.
Small jobs of one kind are performed together, since a search on a few rows takes as long as one on thousands.
"""

from __future__ import annotations

import platform
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from holdfast.analyses import diagnostics, sanity, sensitivity
from holdfast.analyses.diagnostics import SEARCH
from holdfast.analyses.sanity import trainable_layers
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.curve import trace
from holdfast.errors import HoldfastWarning
from holdfast.experiment.store import Unit, key_of, ranking_of
from holdfast.explainers.explainer import Explainer
from holdfast.ranking import Ranking
from holdfast.reference import FixedReference
from holdfast.robustness import Robustness
from holdfast.text import substitute
from holdfast.version import RESULTS

Arrays = dict[str, np.ndarray]
Made = tuple[Arrays, Sequence[str]]


@dataclass(frozen=True)
class Job(ABC):
    """``perform([job], cases, [given])`` makes its unit; ``given`` are the units whose keys it ``needs``, in order."""

    block: str
    kind: ClassVar[str]

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the units it is made from."""
        return ()

    @abstractmethod
    def recipe(self) -> dict[str, Any]:
        """What beside the cases its unit is made of, as plain values."""

    @abstractmethod
    def make(self, cases: Cases, given: Sequence[Unit], progress: Progress | None) -> Made:
        """Its arrays, and what there is to say about them."""

    def make_with(self, cases: Cases, given: Sequence[Sequence[Unit]], progress: Progress | None) -> list[Made]:
        """Its own arrays and those of its company, which differs only in what is ``given``."""
        return [self.make(cases, units, progress) for units in given]

    @abstractmethod
    def rows(self, cases: Cases) -> int | None:
        """About how many rows it puts through the model; None if not known."""

    def company(self, cases: Cases) -> tuple[str, int] | None:
        """Jobs of equal name are best made together, each with so many rows at a time; None: alone."""
        return None

    @final
    def made_of(self) -> dict[str, Any]:
        """What its unit is made of."""
        return {"results": RESULTS, "cases": self.block, **self.recipe()}

    @cached_property
    def key(self) -> str:
        """The content of what makes it."""
        return key_of(self.kind, self.made_of())


@final
@dataclass(frozen=True)
class Rank(Job):
    """Order the features of every case."""

    explainer: Explainer
    kind: ClassVar[str] = "ranking"

    def recipe(self) -> dict[str, Any]:
        return {"explainer": repr(self.explainer)}

    def make(self, cases: Cases, given: Sequence[Unit], progress: Progress | None) -> Made:
        ranking = self.explainer(cases, progress)
        arrays = {
            "order": _array(ranking.order).astype(np.int16 if ranking.order.shape[1] < 2**15 else np.int32),
            "scores": _array(ranking.scores.float()),
            "count": _array(ranking.count),
            "uninformative": _array(ranking.uninformative),
        }
        if ranking.uncertain is not None:
            arrays["uncertain"] = _array(ranking.uncertain.float())
        return arrays, ranking.notes

    def rows(self, cases: Cases) -> int | None:
        return _times(self.explainer.rows(cases.features.count), len(cases))


@dataclass(frozen=True)
class _OfRanking(Job):
    """A job about what another one ranked."""

    ranking: str

    @property
    @final
    def needs(self) -> tuple[str, ...]:
        return (self.ranking,)


@dataclass(frozen=True)
class _Together(_OfRanking):
    """A job that several rankings of the same cases can share: one call, with the cases once for each of them."""

    @abstractmethod
    def make_all(self, cases: Cases, ranking: Ranking, progress: Progress | None) -> Made:
        """Arrays with a row for each of these cases."""

    def asked(self, cases: Cases) -> Cases:
        """Those of the block's cases that it is about."""
        return cases

    @final
    def make(self, cases: Cases, given: Sequence[Unit], progress: Progress | None) -> Made:
        return self.make_with(cases, [given], progress)[0]

    @final
    def make_with(self, cases: Cases, given: Sequence[Sequence[Unit]], progress: Progress | None) -> list[Made]:
        asked = self.asked(cases)
        count = len(asked)
        rankings = [ranking_of(units[0], cases.x.device)[:count] for units in given]
        again = torch.arange(count, device=cases.x.device).repeat(len(given))
        arrays, notes = self.make_all(asked[again], Ranking.joined(rankings), progress)
        spans = [slice(k * count, (k + 1) * count) for k in range(len(given))]
        return [({name: array[span] for name, array in arrays.items()}, notes) for span in spans]


@final
@dataclass(frozen=True)
class Trace(_Together):
    """Judge a ranking along the sizes of its relevant set."""

    criterion: Criterion
    sizes: tuple[float, ...] | tuple[int, ...]
    kind: ClassVar[str] = "curve"

    def recipe(self) -> dict[str, Any]:
        return {"ranking": self.ranking, "criterion": repr(self.criterion), "sizes": list(self.sizes)}

    def make_all(self, cases: Cases, ranking: Ranking, progress: Progress | None) -> Made:
        curve = trace(cases, ranking, self.criterion, self.sizes, progress=progress)
        return {"values": _array(curve.values), "ceiling": _array(curve.ceiling)}, ()

    def company(self, cases: Cases) -> tuple[str, int]:
        return f"{self.criterion!r} {self.sizes}", len(self.sizes) * len(cases)

    def rows(self, cases: Cases) -> int | None:
        return _times(self.criterion.rows, len(self.sizes) * len(cases))


@final
@dataclass(frozen=True)
class Change(_Together):
    """The smallest changes for the picture of an explanation: only its top features move, or they are held.

    ``moves``: whether the changes themselves are kept, which takes two inputs' room an example: of photographs only
    those of the main method are.
    """

    judge: Robustness
    top: float | int
    examples: int
    moves: bool = True
    kind: ClassVar[str] = "change"

    def recipe(self) -> dict[str, Any]:
        made = {"ranking": self.ranking, "judge": repr(self.judge), "top": self.top, "examples": self.examples}
        return made if self.moves else made | {"moves": False}

    def make_all(self, cases: Cases, ranking: Ranking, progress: Progress | None) -> Made:
        relevant = ranking.top([self.top])
        radii = self.judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
        arrays = {"relevant": relevant[:, 0], "radius": radii.radius, "turned": radii.new_class.short()}
        after = cases.model.probabilities(cases.model(radii.witness.flatten(0, 1), exact=True))
        arrays["after"] = after.gather(1, radii.new_class.flatten().clamp_min(0)[:, None]).view_as(radii.radius).float()
        if self.moves:
            # They are there to be looked at: 16 bits, in shares of the largest one.
            moves = (radii.witness - cases.x[:, None]).flatten(2)
            largest = moves.abs().amax(2, keepdim=True).clamp_min(torch.finfo(moves.dtype).tiny)
            arrays |= {"moves": (moves / largest * 32767).round().short(), "largest": largest[..., 0]}
        return {name: _array(value) for name, value in arrays.items()}, radii.notes

    def rows(self, cases: Cases) -> int | None:
        return _times(self.judge.rows, 2 * self.examples)

    def company(self, cases: Cases) -> tuple[str, int]:
        return f"{self.judge!r} {self.top} {self.examples} {self.moves}", 2 * self.examples

    def asked(self, cases: Cases) -> Cases:
        return cases[: self.examples]


@final
@dataclass(frozen=True)
class Substitute(_Together):
    """Whether real words in the place of the top ones turn the decision, as the smallest change of their vectors does.

    ``vectors`` are those of all words.
    """

    judge: Robustness
    top: int
    vectors: FixedReference
    kind: ClassVar[str] = "substitution"

    def recipe(self) -> dict[str, Any]:
        return {
            "ranking": self.ranking,
            "judge": repr(self.judge),
            "top": self.top,
            "vectors": repr(self.vectors),
        }

    def make_all(self, cases: Cases, ranking: Ranking, progress: Progress | None) -> Made:
        radii = self.judge(cases, ranking.top([self.top]), progress=progress)
        new = substitute(cases, radii, self.vectors.values)
        arrays = {"radius": radii.radius, "rows": new.rows.int()}
        arrays |= {"changed": new.changed, "rounded": new.rounded, "by_chance": new.by_chance}
        owner = cases.features.ids[:, :, 0].expand(len(cases), -1).int()
        return {"owner": _array(owner)} | {name: _array(value[:, 0]) for name, value in arrays.items()}, radii.notes

    def rows(self, cases: Cases) -> int | None:
        return _times(self.judge.rows, len(cases))

    def company(self, cases: Cases) -> tuple[str, int]:
        return f"{self.judge!r} {self.top} {self.vectors!r}", len(cases)


@final
@dataclass(frozen=True)
class Inputs(Job):
    """What the cases are: classes, scores, and for the first of them the input itself, so that results stand alone."""

    examples: int
    kind: ClassVar[str] = "inputs"

    def recipe(self) -> dict[str, Any]:
        return {"examples": self.examples}

    def make(self, cases: Cases, given: Sequence[Unit], progress: Progress | None) -> Made:
        shown = cases[: self.examples]
        ids = shown.features.ids.expand(len(shown), *shown.features.ids.shape[1:]).int()
        arrays = {"label": cases.label, "target": cases.target, "logits": cases.model(cases.x, exact=True)}
        arrays |= {"x": shown.x.float(), "ids": ids}
        return {name: _array(value) for name, value in arrays.items()}, ()

    def rows(self, cases: Cases) -> int:
        return len(cases)


@final
@dataclass(frozen=True)
class Forget(Job):
    """How an explanation changes when the network forgets what it learnt."""

    explainer: Explainer
    examples: int
    cascade: bool
    seed: int
    kind: ClassVar[str] = "sanity"

    def recipe(self) -> dict[str, Any]:
        settings = {"examples": self.examples, "cascade": self.cascade, "seed": self.seed}
        return {"explainer": repr(self.explainer), **settings}

    def make(self, cases: Cases, given: Sequence[Unit], progress: Progress | None) -> Made:
        asked = cases[: self.examples]
        found = sanity(asked, {"it": self.explainer}, cascade=self.cascade, seed=self.seed, progress=progress)
        return {"correlation": _array(found.correlation[0])}, found.notes

    def rows(self, cases: Cases) -> int | None:
        stages = len(trainable_layers(cases)) if self.cascade else 1
        return _times(self.explainer.rows(cases.features.count), (1 + stages) * min(self.examples, len(cases)))


@final
@dataclass(frozen=True)
class Nudge(Job):
    """How much of an explanation survives a small change of the input."""

    explainer: Explainer
    examples: int
    radius: float
    top: float
    samples: int
    seed: int
    kind: ClassVar[str] = "sensitivity"

    def _settings(self) -> dict[str, Any]:
        return {"radius": self.radius, "top": self.top, "samples": self.samples, "seed": self.seed}

    def recipe(self) -> dict[str, Any]:
        return {"explainer": repr(self.explainer), "examples": self.examples, **self._settings()}

    def make(self, cases: Cases, given: Sequence[Unit], progress: Progress | None) -> Made:
        found = sensitivity(cases[: self.examples], {"it": self.explainer}, **self._settings(), progress=progress)
        return {"values": _array(found.values[0])}, ()

    def rows(self, cases: Cases) -> int | None:
        asked = (1 + self.samples) * min(self.examples, len(cases))
        return _times(self.explainer.rows(cases.features.count), asked)


@final
@dataclass(frozen=True)
class Diagnose(_OfRanking):
    """How far the radii of a ranking can be trusted."""

    judge: Robustness
    sizes: tuple[float, ...] | tuple[int, ...]
    seeds: int
    examples: int
    kind: ClassVar[str] = "diagnostics"

    def recipe(self) -> dict[str, Any]:
        settings = {"sizes": list(self.sizes), "seeds": self.seeds, "examples": self.examples}
        return {"ranking": self.ranking, "judge": repr(self.judge), **settings}

    def make(self, cases: Cases, given: Sequence[Unit], progress: Progress | None) -> Made:
        ranking = ranking_of(given[0], cases.x.device)[: self.examples]
        found = diagnostics(
            cases[: self.examples], ranking, sizes=self.sizes, judge=self.judge, seeds=self.seeds, progress=progress
        )
        arrays = {"judged": found.judged, "searched": found.searched, "alone": found.alone, "moving": found.moving}
        return {name: _array(value) for name, value in arrays.items()}, ()

    def rows(self, cases: Cases) -> int | None:
        # The judge once, then one search from every seed and once more at every size by itself.
        search = SEARCH.rows
        each = None if self.judge.rows is None or search is None else self.judge.rows + (self.seeds + 1) * search
        return _times(each, len(self.sizes) * min(self.examples, len(cases)))


# ---------------------------------------------------------------------- performing them


def perform(
    jobs: Sequence[Job], cases: Cases, given: Sequence[Sequence[Unit]], progress: Progress | None = None
) -> list[Unit]:
    """Make the units of jobs on the same cases, together if they are company; note what they cost, and where."""
    _warm_up(cases)
    _settle(cases)
    before, started = cases.model.queries, time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", HoldfastWarning)
        made = jobs[0].make_with(cases, given, progress)
    _settle(cases)
    seconds, spent = time.perf_counter() - started, cases.model.queries - before
    for one in said:  # not ours: passed on as they came
        if not issubclass(one.category, HoldfastWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    warned = dict.fromkeys(str(one.message) for one in said if issubclass(one.category, HoldfastWarning))
    each = [_part(total, len(jobs)) for total in (spent.forward, spent.gradient)]
    machine = machine_of(str(cases.x.device))
    return [
        Unit(job.kind, job.made_of(), arrays, seconds / len(jobs), forward, gradient, machine, (*notes, *warned))
        for job, (arrays, notes), forward, gradient in zip(jobs, made, *each, strict=True)
    ]


def _part(total: int, count: int) -> list[int]:
    """A whole number in so many almost equal parts."""
    return [total // count + (place < total % count) for place in range(count)]


@cache
def machine_of(device: str) -> str:
    """The hardware and the torch behind a device, in words."""
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    return f"{processor()}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def processor() -> str:
    """The name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


_WARM: set[tuple[Any, ...]] = set()  # devices and shapes whose first, slow pass is over


def _warm_up(cases: Cases) -> None:
    """Keep the start of a GPU out of what the first unit is said to have cost."""
    key = (id(cases.model.module), str(cases.x.device), tuple(cases.x.shape))
    if cases.x.is_cuda and key not in _WARM:
        _WARM.add(key)
        before = cases.model.queries
        for _ in range(3):
            cases.model.gradient(cases.x[: cases.model.chunk(cases.x)], lambda logits: logits[:, 0])
        cases.model.queries = before


def _settle(cases: Cases) -> None:
    if cases.x.is_cuda:
        torch.cuda.synchronize(cases.x.device)


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().cpu().numpy()
    return array


def _times(each: int | None, count: int) -> int | None:
    return None if each is None else each * count
