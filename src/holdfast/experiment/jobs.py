"""Jobs: the kinds of work in an experiment, each of which makes one unit of the store.

A job knows the key of its unit before anything runs, so that stored units are not computed again. It works on a fixed
block of cases. The name of the block is a hash of its content and part of the key, so results do not depend on the
engine. Small jobs of the same kind are computed together: a search on a few rows takes as long as one on thousands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import torch

from holdfast.analyses.analysis import Analysis, Computed, Subject
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.curve import trace
from holdfast.experiment.packing import pack_explanations, pack_inputs, pack_ranking, unpack_ranking
from holdfast.experiment.store import Unit, key_of
from holdfast.explainers.explainer import Explainer
from holdfast.explaining import explain_cases, judge_ranking
from holdfast.ranking import Ranking
from holdfast.robustness import Robustness
from holdfast.version import RESULTS


@dataclass(frozen=True, eq=False)
class Job(ABC):
    """One unit of work.

    Attributes:
        block: The name of the block of cases that it works on.
    """

    block: str

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of its unit."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the units that it is made from."""
        return ()

    @abstractmethod
    def recipe(self) -> dict[str, Any]:
        """Return the settings that its unit depends on besides the cases, as plain values."""

    @abstractmethod
    def compute(self, cases: Cases, needed: Sequence[Unit], progress: Progress | None) -> Computed:
        """Compute its unit.

        Args:
            cases: The block of cases.
            needed: The units of ``needs``, in the same order.
            progress: Called with (done, total).
        """

    def compute_together(
        self, cases: Cases, needed: Sequence[Sequence[Unit]], progress: Progress | None
    ) -> list[Computed]:
        """Compute the units of jobs that differ only in the units that they need."""
        return [self.compute(cases, units, progress) for units in needed]

    @abstractmethod
    def rows(self, cases: Cases) -> int | None:
        """Return an estimate of the rows that go through the model; None: unknown."""

    def group(self, cases: Cases) -> tuple[str, int] | None:
        """Return a name that jobs computed together share, and the rows of each at once; None: computed alone."""
        return None

    @final
    def made_of(self) -> dict[str, Any]:
        """Return everything that its unit depends on. The key is a hash of it."""
        return {"results": RESULTS, "cases": self.block, **self.recipe()}

    @cached_property
    def key(self) -> str:
        """The key of its unit."""
        return key_of(self.kind, self.made_of())


@final
@dataclass(frozen=True, eq=False)
class RankingJob(Job):
    """Order the features of every case."""

    explainer: Explainer
    kind: ClassVar[str] = "ranking"

    def recipe(self) -> dict[str, Any]:
        return {"explainer": repr(self.explainer)}

    def compute(self, cases: Cases, needed: Sequence[Unit], progress: Progress | None) -> Computed:
        ranking = self.explainer(cases, progress)
        return Computed(pack_ranking(ranking), ranking.notes)

    def rows(self, cases: Cases) -> int | None:
        return _times(self.explainer.rows(cases.features.count), len(cases))


@dataclass(frozen=True, eq=False)
class _RankingsJob(Job):
    """A job that several rankings of the same cases can share: one call, with the cases repeated for each ranking."""

    ranking: str

    @property
    @final
    def needs(self) -> tuple[str, ...]:
        return (self.ranking,)

    @abstractmethod
    def compute_rankings(self, cases: Cases, ranking: Ranking, progress: Progress | None) -> Computed:
        """Compute arrays with one row for each of these cases."""

    def some(self, cases: Cases) -> Cases:
        """Return the cases of the block that it works on."""
        return cases

    @final
    def compute(self, cases: Cases, needed: Sequence[Unit], progress: Progress | None) -> Computed:
        return self.compute_together(cases, [needed], progress)[0]

    @final
    def compute_together(
        self, cases: Cases, needed: Sequence[Sequence[Unit]], progress: Progress | None
    ) -> list[Computed]:
        some = self.some(cases)
        count = len(some)
        rankings = [unpack_ranking(units[0], cases.x.device)[:count] for units in needed]
        repeated = torch.arange(count, device=cases.x.device).repeat(len(needed))
        arrays, notes = self.compute_rankings(some[repeated], Ranking.joined(rankings), progress)
        spans = [slice(k * count, (k + 1) * count) for k in range(len(needed))]
        return [Computed({name: array[span] for name, array in arrays.items()}, notes) for span in spans]


@final
@dataclass(frozen=True, eq=False)
class CurveJob(_RankingsJob):
    """Measure a ranking by a criterion, along the sizes of its relevant set."""

    criterion: Criterion
    sizes: tuple[float, ...] | tuple[int, ...]
    kind: ClassVar[str] = "curve"

    def recipe(self) -> dict[str, Any]:
        return {"ranking": self.ranking, "criterion": repr(self.criterion), "sizes": list(self.sizes)}

    def compute_rankings(self, cases: Cases, ranking: Ranking, progress: Progress | None) -> Computed:
        curve = trace(cases, ranking, self.criterion, self.sizes, progress=progress)
        return Computed({"values": curve.values.cpu().numpy(), "ceiling": curve.ceiling.cpu().numpy()})

    def group(self, cases: Cases) -> tuple[str, int]:
        return f"{self.criterion!r} {self.sizes}", len(self.sizes) * len(cases)

    def rows(self, cases: Cases) -> int | None:
        return _times(self.criterion.rows, len(self.sizes) * len(cases))


@final
@dataclass(frozen=True, eq=False)
class ExplanationJob(_RankingsJob):
    """Explanations of the first cases of a block, for the gallery.

    Attributes:
        ranking: The key of the ranking.
        judge: Measures the radii.
        top: The size of the relevant set.
        examples: The number of cases to explain, from the first on.
        moves: Whether to store the changes, which take as much space as two inputs for each example.
    """

    judge: Robustness
    top: float | int
    examples: int
    moves: bool = True
    kind: ClassVar[str] = "explanation"

    def recipe(self) -> dict[str, Any]:
        settings = {"judge": repr(self.judge), "top": self.top, "examples": self.examples, "moves": self.moves}
        return {"ranking": self.ranking, **settings}

    def compute_rankings(self, cases: Cases, ranking: Ranking, progress: Progress | None) -> Computed:
        explanations = judge_ranking(cases, "", ranking, self.judge, self.top, progress)
        return Computed(pack_explanations(explanations, self.moves))

    def rows(self, cases: Cases) -> int | None:
        return _times(self.judge.rows, 2 * self.examples)

    def group(self, cases: Cases) -> tuple[str, int]:
        return f"{self.judge!r} {self.top} {self.examples} {self.moves}", 2 * self.examples

    def some(self, cases: Cases) -> Cases:
        return cases[: self.examples]


@final
@dataclass(frozen=True, eq=False)
class TargetedJob(Job):
    """Explanations of why the cases are not of another likely class.

    Attributes:
        explainer: Ranks the features.
        judge: Measures the radii.
        top: The size of the relevant set.
        place: The rank of the other class: 0 for the most likely after the label.
    """

    explainer: Explainer
    judge: Robustness
    top: float | int
    place: int
    kind: ClassVar[str] = "targeted explanation"

    def recipe(self) -> dict[str, Any]:
        settings = {"judge": repr(self.judge), "top": self.top, "place": self.place}
        return {"explainer": repr(self.explainer), **settings}

    def compute(self, cases: Cases, needed: Sequence[Unit], progress: Progress | None) -> Computed:
        classes = cases.model(cases.x, exact=True).argsort(1, descending=True)
        classes = classes[classes != cases.label[:, None]].view(len(cases), -1)
        targeted = Cases.ask(cases.model, cases.x, cases.label, classes[:, self.place], cases.features)
        explanations = explain_cases(targeted, "", self.explainer, self.judge, self.top, progress)
        return Computed(pack_inputs(targeted, len(targeted)) | pack_explanations(explanations, moves=True))

    def rows(self, cases: Cases) -> int | None:
        ranked, judged = self.explainer.rows(cases.features.count), self.judge.rows
        return None if ranked is None or judged is None else (ranked + 2 * judged) * len(cases)


@final
@dataclass(frozen=True, eq=False)
class InputsJob(Job):
    """Classes and scores of the cases, and the first inputs, so that results can be read without the data set."""

    examples: int
    kind: ClassVar[str] = "inputs"

    def recipe(self) -> dict[str, Any]:
        return {"examples": self.examples}

    def compute(self, cases: Cases, needed: Sequence[Unit], progress: Progress | None) -> Computed:
        return Computed(pack_inputs(cases, self.examples))

    def rows(self, cases: Cases) -> int:
        return len(cases)


def analysis_kind(name: str) -> str:
    """Return the kind of the units of an analysis."""
    return f"{name} analysis"


@final
@dataclass(frozen=True, eq=False)
class AnalysisJob(Job):
    """An analysis of one method, computed alone.

    Attributes:
        analysis: The analysis to compute.
        explainer: The explainer of the method.
        examples: The number of cases to use, from the first of the block on.
        ranking: The key of the ranking, for an analysis of rankings; None: the explainer is analysed.
    """

    analysis: Analysis
    explainer: Explainer
    examples: int
    ranking: str | None = None

    @property
    def kind(self) -> str:
        return analysis_kind(self.analysis.name)

    @property
    def needs(self) -> tuple[str, ...]:
        return () if self.ranking is None else (self.ranking,)

    def recipe(self) -> dict[str, Any]:
        subject = {"explainer": repr(self.explainer)} if self.ranking is None else {"ranking": self.ranking}
        return {"analysis": repr(self.analysis), "examples": self.examples, **subject}

    def compute(self, cases: Cases, needed: Sequence[Unit], progress: Progress | None) -> Computed:
        some = cases[: self.examples]
        if self.ranking is None:
            return self.analysis.compute(some, self.explainer, progress)
        ranking = unpack_ranking(needed[0], cases.x.device)[: self.examples]
        return self.analysis.compute(some, ranking, progress)

    def rows(self, cases: Cases) -> int | None:
        return self.analysis.rows(cases[: self.examples], self.explainer)


@final
@dataclass(frozen=True, eq=False)
class TogetherAnalysisJob(_RankingsJob):
    """An analysis of a ranking that several rankings can share."""

    analysis: Analysis
    explainer: Explainer
    examples: int

    @property
    def kind(self) -> str:
        return analysis_kind(self.analysis.name)

    def recipe(self) -> dict[str, Any]:
        return {"analysis": repr(self.analysis), "examples": self.examples, "ranking": self.ranking}

    def compute_rankings(self, cases: Cases, ranking: Ranking, progress: Progress | None) -> Computed:
        return self.analysis.compute(cases, ranking, progress)

    def some(self, cases: Cases) -> Cases:
        return cases[: self.examples]

    def group(self, cases: Cases) -> tuple[str, int]:
        return f"{self.analysis!r} {self.examples}", self.examples

    def rows(self, cases: Cases) -> int | None:
        return self.analysis.rows(cases[: self.examples], self.explainer)


def analysis_job(block: str, analysis: Analysis, explainer: Explainer, ranking: str, examples: int) -> Job:
    """Return the job of an analysis of one ranking of one method.

    Args:
        block: The name of the block of cases.
        analysis: The analysis to compute.
        explainer: The explainer of the ranking.
        ranking: The key of the ranking.
        examples: The number of cases to use, from the first of the block on.
    """
    if analysis.subject is Subject.EXPLAINERS:
        return AnalysisJob(block, analysis, explainer, examples)
    if analysis.together:
        return TogetherAnalysisJob(block, ranking, analysis, explainer, examples)
    return AnalysisJob(block, analysis, explainer, examples, ranking)


def _times(each: int | None, count: int) -> int | None:
    return None if each is None else each * count
