"""Two ways to estimate the Banzhaf value of every unchosen feature: regression, and boundary normals.

Both draw random subsets of the unchosen features, add them to those already chosen, and ask the objective; the paper's
eq. 6 is the least-squares fit of the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.criteria.criterion import Criterion, Marginals
from holdfast.draws import generator
from holdfast.errors import HoldfastError
from holdfast.explainers.leastsquares import least_squares
from holdfast.models.model import Access
from holdfast.registry import Registry
from holdfast.robustness.boundary import bytes_held


@dataclass(frozen=True, eq=False)
class Draw:
    """What to estimate: the objective's Banzhaf values given the features already ``chosen [B, d]``.

    ``open [B, d]`` are the features still to be valued; each joins one of the ``samples`` subsets with probability
    ``inclusion``. ``state`` is what the estimator handed back last time.
    """

    objective: Criterion
    cases: Cases
    chosen: Tensor
    open: Tensor
    samples: int
    inclusion: float
    seed: int
    state: Any = None

    def subsets(self, paired: bool = False) -> Tensor:
        """Random subsets ``[B, samples, d]``, the same for every case so that batches do not matter.

        ``paired`` draws each with its complement among the open features (antithetic when inclusion is one half).
        """
        drawn = generator(self.seed)
        half = -(-self.samples // 2) if paired else self.samples
        joins = self.inclusion > torch.rand(self.open.shape[1], half, generator=drawn).T  # padding comes last
        joins = torch.cat([joins, ~joins])[: self.samples] if paired else joins
        return self.chosen[:, None] | (joins.to(self.open.device) & self.open[:, None])


@dataclass(frozen=True, eq=False)
class Estimate:
    """Banzhaf values ``[B, d]`` in the objective's own sign, their standard errors if known, and a state."""

    values: Tensor
    error: Tensor | None
    changed: Tensor
    state: Any = None


class Estimator(ABC):
    """``estimator(draw) -> Estimate``. Subclass as a frozen dataclass whose fields are the settings.

    Attributes:
        name: What it is called in experiment files.
        presets: Names of class methods that return instances with other settings.
        requires: What it requires of a model, beyond what the objective requires.
    """

    registry: ClassVar[Registry[Estimator]] = Registry("estimator", "holdfast.explainers", ("requires",))
    name: ClassVar[str]
    presets: ClassVar[tuple[str, ...]] = ()
    requires: ClassVar[Access]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Estimator.registry.add(cls)

    @abstractmethod
    def __call__(self, draw: Draw) -> Estimate:
        """Value every open feature."""

    @abstractmethod
    def rows(self, objective: Criterion, samples: int) -> int | None:
        """About how many rows one draw of a case puts through the model; None if not known."""

    @abstractmethod
    def bytes_held(self, cases: Cases, samples: int) -> int:
        """About the memory that a draw of one case takes, beyond passes through the model."""

    def check(self, samples: int, inclusion: float, features: int) -> None:  # noqa: B027  # most refuse nothing
        """Refuse settings that cannot give an answer, before anything runs."""


@dataclass(frozen=True)
class BoundaryNormals(Estimator):
    """One short search a subset and one gradient at its end tell the marginal effect of every feature at once.

    ``steps`` gradients towards each of the ``classes`` nearest classes; where several are about as near, their effects
    are blended over ``soft`` of the radius. The average over subsets is the Banzhaf value; of the logarithm of the
    objective when ``relative``, which a few subsets that hardly let the decision change cannot rule.
    """

    steps: int = 6
    classes: int = 6
    soft: float = 0.05
    relative: bool = True
    name: ClassVar[str] = "boundary-normals"
    requires: ClassVar[Access] = Access.GRADIENTS

    def __post_init__(self) -> None:
        whole = isinstance(self.steps, int) and isinstance(self.classes, int)
        if not whole or self.steps < 1 or self.classes < 1 or not self.soft >= 0:
            raise HoldfastError(f"BoundaryNormals needs whole steps >= 1 and classes >= 1, and soft >= 0, got {self}.")

    def __call__(self, draw: Draw) -> Estimate:
        subsets = draw.subsets()
        found = draw.objective.marginals(
            draw.cases, subsets, steps=self.steps, classes=self.classes, soft=self.soft, state=draw.state
        )
        effects = _in_logs(found, subsets) if self.relative else found.effects
        error = effects.std(1) / draw.samples**0.5 if draw.samples > 1 else None
        return Estimate(effects.mean(1), error, found.changed, found.state)

    def rows(self, objective: Criterion, samples: int) -> int:
        return samples * self.steps * self.classes

    def bytes_held(self, cases: Cases, samples: int) -> int:
        effects = 6 * samples * cases.features.count * cases.x.element_size()
        return effects + bytes_held(cases, samples, self.classes)


def _in_logs(found: Marginals, subsets: Tensor) -> Tensor:
    """``log v(S + i) - log v(S)`` from the effects on v: S is the subset itself, or without i where i has joined."""
    share = found.effects / found.values[..., None]
    most = 1 - 1e-6  # an effect as large as the value itself would be an infinite logarithm
    return torch.where(subsets, -torch.log1p(-share.clamp_max(most)), torch.log1p(share.clamp_min(-most)))


@dataclass(frozen=True)
class Regression(Estimator):
    """Least squares of the objective on which features joined (the paper's eq. 6).

    The paper's code fits no intercept, which lets the mean of the objective leak into every score, and draws no pairs.
    ``censored`` subsets take the largest value the box allows, or as in the paper's code the norm of x. Where it
    is the box, those that leave nothing to move, as subsets of a few words may, have no value and are left out.
    """

    intercept: bool = True
    paired: bool = True
    censored: Literal["ceiling", "norm of x"] = "ceiling"
    name: ClassVar[str] = "regression"
    requires: ClassVar[Access] = Access.DECISIONS

    def __post_init__(self) -> None:
        if self.censored not in ("ceiling", "norm of x"):
            raise HoldfastError(f'censored must be "ceiling" or "norm of x", got {self.censored!r}.')

    def check(self, samples: int, inclusion: float, features: int) -> None:
        if inclusion == 0:
            raise HoldfastError("a regression needs subsets that differ: inclusion must be over 0.")
        # Of a pair, the second subset tells only the sum of both: half of them count.
        needed = 2 * features if self.paired else features + int(self.intercept)
        if samples < needed:
            raise HoldfastError(
                f"a regression on {features} features needs at least {needed} samples, got {samples}: raise samples, "
                "use fewer features, or the estimator BoundaryNormals()."
            )

    def __call__(self, draw: Draw) -> Estimate:
        subsets = draw.subsets(self.paired)
        values = draw.objective(draw.cases, subsets)
        missing = torch.isinf(values)
        told = torch.ones_like(missing)
        if bool(missing.any()):
            stand_in = self._stand_in(draw, subsets)
            told = ~missing | (stand_in > 0)
            values = torch.where(missing, stand_in, values)
            if not bool(torch.isfinite(values).all()):
                raise HoldfastError(
                    "some subsets are censored and the model has no bounds to cap them by: search harder, or use the "
                    "estimator BoundaryNormals()."
                )
        result, error = (torch.zeros_like(draw.open, dtype=values.dtype) for _ in range(2))
        for case in draw.open.any(1).nonzero()[:, 0].tolist():  # beside longer texts, a short one may be used up
            open_, kept = draw.open[case], told[case]
            result[case, open_], error[case, open_] = self._fit(subsets[case, kept][:, open_], values[case, kept])
        return Estimate(result, error, ~missing.all(1))

    def rows(self, objective: Criterion, samples: int) -> int | None:
        return None if objective.rows is None else samples * objective.rows

    def bytes_held(self, cases: Cases, samples: int) -> int:
        return 2 * samples * cases.features.count  # which features joined

    def _stand_in(self, draw: Draw, subsets: Tensor) -> Tensor:
        """What a censored value counts as, ``[B, K]`` or ``[B, 1]``; 0 where the box allows no move."""
        if self.censored == "norm of x":
            lengths: Tensor = torch.linalg.vector_norm(draw.cases.x.flatten(1), dim=1, keepdim=True)
            return lengths
        return draw.objective.ceiling(draw.cases, subsets)

    def _fit(self, joined: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of ``joined [m, n]`` and their standard errors."""
        design = torch.cat([joined, torch.ones_like(joined[:, :1])], 1) if self.intercept else joined
        weights, error = least_squares(design, values)
        count = joined.shape[1]
        return weights[:count].to(values), error[:count].to(values)
