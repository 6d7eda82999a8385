"""An analysis in one file: how far the scores of a ranking spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from holdfast.analyses.analysis import Analysis, Computed, Draw, Stored, Subject
from holdfast.analyses.result import Result, Row
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.explainers.explainer import Explainer
from holdfast.ranking import Ranking
from holdfast.table import Table


@dataclass(frozen=True, eq=False)
class Spread(Result):
    """The mean spread of scores by method."""

    means: dict[str, float]

    def table(self) -> list[Row]:
        return [{"method": name, "spread": mean} for name, mean in self.means.items()]

    def draw(self, ax: Any) -> None:
        ax.bar(list(self.means), list(self.means.values()))


@dataclass(frozen=True)
class SpreadAnalysis(Analysis):
    """How far the scores of a ranking spread."""

    examples: int = 2
    name: ClassVar[str] = "spread"
    title: ClassVar[str] = "Spread of scores"
    subject: ClassVar[Subject] = Subject.RANKINGS

    def compute(self, cases: Cases, subject: Explainer | Ranking, progress: Progress | None) -> Computed:
        assert isinstance(subject, Ranking)
        return Computed({"spread": (subject.scores.amax(1) - subject.scores.amin(1)).numpy()})

    @classmethod
    def read(cls, stored: Stored) -> Spread | None:
        blocks = stored.arrays(cls.name)
        means = {
            m: float(torch.cat([torch.from_numpy(one["spread"]) for one in of]).mean()) for m, of in blocks.items()
        }
        return Spread(means) if means else None

    @classmethod
    def tables(cls, result: Spread, stored: Stored) -> list[Table]:
        rows = tuple((row["method"], row["spread"]) for row in result.table())
        return [Table("spread", cls.title, ("method", "spread"), rows)]

    @classmethod
    def figures(cls, result: Spread) -> dict[str, Draw]:
        return {"Spread of scores": result.draw}
