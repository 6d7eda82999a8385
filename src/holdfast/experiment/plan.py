"""A study as jobs, in batches that are computed together. Planning asks the model nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from holdfast.analyses.analysis import Analysis, Subject
from holdfast.cases import Cases
from holdfast.criteria.criterion import Criterion
from holdfast.experiment import fingerprint
from holdfast.experiment.jobs import (
    CurveJob,
    ExplanationJob,
    InputsJob,
    Job,
    RankingJob,
    TargetedJob,
    analysis_job,
)
from holdfast.experiment.record import Role, StudyRecord, record_of
from holdfast.experiment.study import Method, Study
from holdfast.explainers.explainer import Explainer
from holdfast.modalities.modality import Modality
from holdfast.models.model import check_access
from holdfast.robustness import Robustness


@dataclass(frozen=True, eq=False)
class Task:
    """A job, and what it is for in the study."""

    job: Job
    role: Role

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        side = "" if self.role.side in ("", "both") else f" ({self.role.side})"
        measure = f", {self.role.measure}" if self.role.measure else ""
        return f"{self.job.kind} {self.role.method}{side}{measure}"


@dataclass(frozen=True, eq=False)
class Plan:
    """The jobs of a study.

    Batches do not depend on what is stored already, so that an interrupted batch is computed again as it was.

    Attributes:
        jobs: By key.
        batches: Jobs that are computed together.
        tasks: What each job is for.
        blocks: The cases that jobs work on, by name.
        record: The study as plain values, for the store.
    """

    jobs: Mapping[str, Job]
    batches: tuple[tuple[Job, ...], ...]
    tasks: tuple[Task, ...]
    blocks: Mapping[str, Cases]
    record: StudyRecord

    @cached_property
    def rows(self) -> Mapping[str, int | None]:
        """About how many rows each job puts through the model."""
        return {key: job.rows(self.blocks[job.block]) for key, job in self.jobs.items()}


def plan_of(study: Study) -> Plan:
    """Lay a study out as jobs, block after block."""
    shows_moves = Modality.registry.make(study.modality).keeps_moves
    _check_access(study)
    model = fingerprint.of_model(study.cases.model, study.model)
    blocks: dict[str, Cases] = {}
    tasks: list[Task] = []
    spans: list[tuple[int, int]] = []
    for start in range(0, len(study.cases), study.block):
        part = study.cases[start : start + study.block]
        name = f"{model} {fingerprint.of_cases(part)}"
        blocks[name] = part
        tasks += _Block(study, name, len(spans), start, len(part), shows_moves).tasks()
        spans.append((start, start + len(part)))
    if study.gallery and study.gallery.targets:
        shown = study.cases[: study.gallery.examples]
        name = f"{model} {fingerprint.of_cases(shown)}"
        blocks[name] = shown
        tasks += _targeted(study, name)
    jobs = {task.job.key: task.job for task in tasks}  # two names for the same work are one job
    tasks = [Task(jobs[task.job.key], task.role) for task in tasks]
    roles = [(task.job.key, task.job.kind, task.role) for task in tasks]
    return Plan(jobs, _batches(jobs, blocks), tuple(tasks), blocks, record_of(study, model, spans, roles))


def _check_access(study: Study) -> None:
    """Refuse methods and criteria that need more than the model gives, before anything is computed."""
    for method in study.methods:
        for explainer in method.explainers.values():
            check_access(explainer, study.cases.model, Explainer.registry)
    for measure in study.every_measure:
        check_access(measure.criterion, study.cases.model, Criterion.registry)
    if study.gallery:
        check_access(study.gallery.judge, study.cases.model, Robustness.registry)


@dataclass(frozen=True, eq=False)
class _Block:
    """The tasks of one block of cases."""

    study: Study
    name: str
    number: int
    start: int
    count: int
    shows_moves: bool

    def tasks(self) -> Iterator[Task]:
        gallery = self.study.gallery
        shown = self._share(gallery.examples if gallery else 0)
        yield Task(InputsJob(self.name, shown), Role(block=self.number))
        for method in self.study.methods:
            for side in method.explainers:
                yield from self._ranking(method, side, shown)
        for analysis in self.study.analyses:
            if analysis.subject is Subject.EXPLAINERS or analysis.subject is Subject.MAIN_RANKING:
                for method in self._analysed(analysis):
                    yield from self._analysis(analysis, method, method.first[0])

    def _ranking(self, method: Method, side: str, shown: int) -> Iterator[Task]:
        study, explainer = self.study, method.explainers[side]
        ranking = RankingJob(self.name, explainer)
        yield Task(ranking, self._role(method, side))
        for measure in study.measures_of(method):
            curve = CurveJob(self.name, ranking.key, measure.criterion, study.sizes)
            yield Task(curve, self._role(method, side, measure.name))
        for analysis in study.analyses:
            if analysis.subject is Subject.RANKINGS and method in self._analysed(analysis):
                yield from self._analysis(analysis, method, side)
        if study.gallery and shown and side == method.first[0]:
            moves = self.shows_moves or method.name == study.main
            job = ExplanationJob(self.name, ranking.key, study.gallery.judge, study.gallery.top, shown, moves)
            yield Task(job, self._role(method, side))

    def _analysis(self, analysis: Analysis, method: Method, side: str) -> Iterator[Task]:
        examples = self._share(getattr(analysis, "examples", None) or len(self.study.cases))
        if examples:
            explainer = method.explainers[side]
            job = analysis_job(self.name, analysis, explainer, RankingJob(self.name, explainer).key, examples)
            yield Task(job, self._role(method, side, analysis.name))

    def _analysed(self, analysis: Analysis) -> list[Method]:
        """Return the methods that an analysis is computed for."""
        if analysis.subject is Subject.MAIN_RANKING:
            return [self.study.method(self.study.main)]
        wanted = getattr(analysis, "methods", None)
        if wanted is not None:
            return [method for method in self.study.methods if method.name in wanted]
        every = analysis.subject is Subject.RANKINGS
        return [method for method in self.study.methods if every or method.group == "table"]

    def _role(self, method: Method, side: str, measure: str = "") -> Role:
        return Role(block=self.number, method=method.name, side=side, measure=measure)

    def _share(self, examples: int) -> int:
        """Return how many of the first examples of the study lie in this block."""
        return max(0, min(self.count, examples - self.start))


def _targeted(study: Study, name: str) -> Iterator[Task]:
    """Return the tasks that explain why shown examples are not of the next likely classes."""
    assert study.gallery is not None
    side, explainer = study.method(study.main).first
    for place in range(min(study.gallery.targets, len(study.cases.model.classes) - 1)):
        job = TargetedJob(name, explainer, study.gallery.judge, study.gallery.top, place)
        yield Task(job, Role(target=place, method=study.main, side=side))


def _batches(jobs: Mapping[str, Job], blocks: Mapping[str, Cases]) -> tuple[tuple[Job, ...], ...]:
    """Put jobs of a group together, as many as the model takes rows at a time; the others alone."""
    batches: list[list[Job]] = []
    open_batches: dict[tuple[str, str], tuple[list[Job], int]] = {}
    for job in jobs.values():
        cases = blocks[job.block]
        group = job.group(cases)
        if group is None:
            batches.append([job])
            continue
        name, rows = group
        batch, left = open_batches.get((job.block, f"{job.kind} {name}"), ([], 0))
        if left < rows:
            batch, left = [], max(rows, cases.model.chunk(cases.x))
            batches.append(batch)
        batch.append(job)
        open_batches[job.block, f"{job.kind} {name}"] = batch, left - rows
    return tuple(tuple(batch) for batch in batches)
