"""The two criteria of the paper: hold the relevant features and let the rest move, or let only them move."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress, chunked
from holdfast.criteria.criterion import Criterion, Marginals
from holdfast.models.model import Access
from holdfast.robustness import Judge, Robustness
from holdfast.robustness.boundary import normals
from holdfast.robustness.rows import Rows


class _Robust(Criterion):
    """Robustness-S of the features that ``relevant`` lets move."""

    family: ClassVar[str] = "Robustness"
    requires: ClassVar[Access] = Access.GRADIENTS
    robustness: Robustness

    @abstractmethod
    def moving(self, relevant: Tensor) -> Tensor:
        """The features that may move when these are called relevant."""

    @final
    def measure(self, cases: Cases, relevant: Tensor, progress: Progress | None) -> Tensor:
        return self.robustness.radius(cases, self.moving(relevant), progress=progress)

    @property
    @final
    def needs(self) -> Access:
        return self.robustness.needs

    @property
    @final
    def bound(self) -> str:
        return self.robustness.bound

    @property
    @final
    def rows(self) -> int | None:
        return self.robustness.rows

    @final
    def ceiling(self, cases: Cases, relevant: Tensor) -> Tensor:
        """The largest move that the box allows inside the subset; ``inf`` without a box."""
        moving = self.moving(cases.subsets(relevant))
        b, k = moving.shape[:2]

        def work(piece: slice) -> Tensor:
            rows = Rows.of(cases, moving, piece)
            return self.robustness.norm.length(torch.maximum(-rows.low, rows.high))

        parts = [part for _, part in chunked(work, b * k, cases.model.chunk(cases.x))]
        return torch.cat(parts).view(b, k)

    @final
    def marginals(
        self, cases: Cases, relevant: Tensor, *, steps: int, classes: int, soft: float, state: Any
    ) -> Marginals:
        found = normals(
            cases,
            self.moving(relevant),
            self.robustness.p,
            steps=steps,
            classes=classes,
            soft=soft,
            near_classes=state,
        )
        effects = found.worth if self.higher_is_better else -found.worth
        return Marginals(found.radius, effects, found.changed, found.nearest)


@dataclass(frozen=True)
class RobustnessRest(_Robust):
    """Robustness-S̄r: hold the relevant features, let the rest move. Higher: the prediction holds to them."""

    robustness: Robustness = field(default_factory=Judge)
    name: ClassVar[str] = "robustness-rest"
    higher_is_better: ClassVar[bool] = True

    def moving(self, relevant: Tensor) -> Tensor:
        return ~relevant


@dataclass(frozen=True)
class RobustnessRelevant(_Robust):
    """Robustness-Sr: let only the relevant features move. Lower: the prediction depends on them."""

    robustness: Robustness = field(default_factory=Judge)
    name: ClassVar[str] = "robustness-relevant"
    higher_is_better: ClassVar[bool] = False

    def moving(self, relevant: Tensor) -> Tensor:
        return relevant
