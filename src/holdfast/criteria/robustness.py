"""The two criteria of the paper, Robustness-S̄r and Robustness-Sr.

Both are Robustness-S (Definition 3.1), the smallest perturbation inside a subset S that changes the decision:
``RobustnessRest`` perturbs all features but the relevant ones, ``RobustnessRelevant`` only the relevant ones.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress, chunked
from holdfast.criteria.criterion import Criterion, Leading, Marginals
from holdfast.errors import HoldfastError
from holdfast.models.model import Access
from holdfast.ranking import features_of
from holdfast.robustness import Judge, Robustness
from holdfast.robustness.boundary import normals
from holdfast.robustness.brackets import Brackets
from holdfast.robustness.race import Race
from holdfast.robustness.rows import Rows


class _RobustnessCriterion(Criterion):
    """Robustness-S of a subset that depends on the relevant features."""

    family: ClassVar[str] = "Robustness"
    requires: ClassVar[Access] = Access.GRADIENTS
    robustness: Robustness

    @abstractmethod
    def moving(self, relevant: Tensor) -> Tensor:
        """Return the features that may be perturbed, bool ``[B, K, d]``, when ``relevant`` ones are called relevant."""

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
        """Return the largest perturbation that the model's bounds allow, ``[B, K]``; ``inf`` without bounds.

        It is that of the features that may move. Where radii are exact, an infinite one is worse, or better, than all
        others, however small the ranges of these features are: it is then that of all features.
        """
        own = self.moving(cases.subsets(relevant))
        exact = self.robustness.adapted(cases.model).bound == "exact"
        moving = own.any(2, keepdim=True).expand_as(own) if exact else own
        b, k = moving.shape[:2]

        def work(piece: slice) -> Tensor:
            rows = Rows.of(cases, moving, piece)
            return self.robustness.norm.length(torch.maximum(-rows.low, rows.high))

        parts = [part for _, part in chunked(work, b * k, cases.model.chunk(cases.x))]
        return torch.cat(parts).view(b, k)

    @final
    def unchangeable(self, cases: Cases) -> Tensor:
        if self.robustness.adapted(cases.model).bound == "upper":
            return super().unchangeable(cases)  # an attack proves nothing
        every = features_of(cases)[:, None]
        return self.robustness(cases, every).unreachable[:, 0]

    @final
    def marginals(
        self, cases: Cases, relevant: Tensor, *, steps: int, classes: int, soft: float, state: Any
    ) -> Marginals:
        if self.robustness.bound == "lower":
            raise HoldfastError(
                f"BoundaryNormals searches for changes by itself, and {type(self.robustness).__name__} finds none: use "
                "the estimator Regression()."
            )
        estimate = normals(
            cases,
            self.moving(relevant),
            self.robustness.p,
            steps=steps,
            classes=classes,
            soft=soft,
            near_classes=state,
        )
        effects = estimate.worth if self.higher_is_better else -estimate.worth
        return Marginals(estimate.radius, effects, estimate.changed, estimate.nearest)


@dataclass(frozen=True)
class RobustnessRest(_RobustnessCriterion):
    """Robustness-S̄r: the smallest change of all other features that changes the prediction, the relevant ones held.

    Higher is better: the prediction hardly depends on the other features.

    Attributes:
        robustness: The method that finds radii: an instance, a class or a name. Default: ``Judge()``.
    """

    robustness: Robustness = field(default_factory=Judge)
    name: ClassVar[str] = "robustness-rest"
    title: ClassVar[str] = "Robustness-S̄r"
    higher_is_better: ClassVar[bool] = True

    def moving(self, relevant: Tensor) -> Tensor:
        return ~relevant

    def joining(self, cases: Cases, relevant: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Measure subsets, and each of them together with one more feature.

        Holding a feature that the nearest change does not move changes nothing, so only those that it moves are
        measured. A tree ensemble has few of them.
        """
        radii = self.robustness(cases, self.moving(relevant))
        moved = (radii.witness != cases.x[:, None]).to(cases.x)
        touched = torch.stack([cases.features.pool(part) > 0 for part in moved.unbind(1)], 1)
        joined = self._with_each(cases, relevant, candidates & touched, radii.radius)
        return radii.radius, torch.maximum(joined, radii.radius[..., None])

    def leading(self, cases: Cases, relevant: Tensor, candidates: Tensor, wanted: Tensor, state: Any) -> Leading:
        """Find the candidates that are best beside a subset.

        Exact radii of some subsets bound those of others, so only candidates that may be among the best are measured,
        and precisely only where two of them are close.
        """
        method = self.robustness.adapted(cases.model)
        if method.bound != "exact":
            return super().leading(cases, relevant, candidates, wanted, state)
        brackets = Brackets(cases, method) if state is None else state
        race = Race(brackets, self.moving(relevant), candidates, wanted)
        values = race.run()
        return Leading(values, race.changed, brackets)


@dataclass(frozen=True)
class RobustnessRelevant(_RobustnessCriterion):
    """Robustness-Sr: the smallest change of only the relevant features that changes the prediction.

    Lower is better: the prediction depends on the relevant features.

    Attributes:
        robustness: The method that finds radii: an instance, a class or a name. Default: ``Judge()``.
    """

    robustness: Robustness = field(default_factory=Judge)
    name: ClassVar[str] = "robustness-relevant"
    title: ClassVar[str] = "Robustness-Sr"
    higher_is_better: ClassVar[bool] = False

    def moving(self, relevant: Tensor) -> Tensor:
        return relevant
