"""Two ways to estimate the Banzhaf value of every unchosen feature: regression, and boundary normals.

Both draw random subsets of the unchosen features, add them to those already chosen, and ask the objective; the paper's
eq. 6 is the least-squares fit of the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.criteria import Criterion
from holdfast.errors import HoldfastError


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
        generator = torch.Generator().manual_seed(self.seed)
        half = -(-self.samples // 2) if paired else self.samples
        joins = torch.rand(half, self.open.shape[1], generator=generator) < self.inclusion
        joins = torch.cat([joins, ~joins])[: self.samples] if paired else joins
        return self.chosen[:, None] | (joins.to(self.open.device) & self.open[:, None])


@dataclass(frozen=True, eq=False)
class Estimate:
    """Banzhaf values ``[B, d]`` in the objective's own sign, their standard errors, and the state for next time."""

    values: Tensor
    error: Tensor
    turned: Tensor
    state: Any = None


class Estimator(ABC):
    """``estimator(draw) -> Estimate``. Subclass as a frozen dataclass."""

    @abstractmethod
    def __call__(self, draw: Draw) -> Estimate:
        """Value every open feature."""

    def check(self, samples: int, features: int) -> None:  # noqa: B027  # most estimators have nothing to refuse
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

    def __post_init__(self) -> None:
        if self.steps < 1 or self.classes < 1 or not self.soft >= 0:
            raise HoldfastError(f"BoundaryNormals needs steps >= 1, classes >= 1 and soft >= 0, got {self}.")

    def __call__(self, draw: Draw) -> Estimate:
        found = draw.objective.marginals(
            draw.cases, draw.subsets(), steps=self.steps, classes=self.classes, soft=self.soft, state=draw.state
        )
        effects = found.effects / found.values[..., None] if self.relative else found.effects
        mean = effects.mean(1)
        spread = effects.std(1) if draw.samples > 1 else torch.zeros_like(mean)
        return Estimate(mean, spread / draw.samples**0.5, found.turned, found.state)


@dataclass(frozen=True)
class Regression(Estimator):
    """Least squares of the objective on which features joined (the paper's eq. 6).

    The paper's code fits no intercept, which lets the mean of the objective leak into every score, and draws no pairs.
    ``censored`` subsets take the largest value the box allows, or as in the paper's code the norm of x.
    """

    intercept: bool = True
    paired: bool = True
    censored: Literal["ceiling", "norm of x"] = "ceiling"

    def check(self, samples: int, features: int) -> None:
        needed = features + int(self.intercept)
        if samples < needed:
            raise HoldfastError(
                f"a regression on {features} features needs at least {needed} samples, got {samples}: raise samples, "
                "use fewer features, or the estimator BoundaryNormals()."
            )

    def __call__(self, draw: Draw) -> Estimate:
        subsets = draw.subsets(self.paired)
        values = draw.objective(draw.cases, subsets)
        missing = torch.isinf(values)
        values = torch.where(missing, self._stand_in(draw, subsets), values) if bool(missing.any()) else values
        fits = [
            self._fit(joined[:, open_], value) for joined, open_, value in zip(subsets, draw.open, values, strict=True)
        ]
        result, error = (torch.zeros_like(draw.open, dtype=values.dtype) for _ in range(2))
        for case, (weights, errors) in enumerate(fits):
            result[case, draw.open[case]], error[case, draw.open[case]] = weights, errors
        return Estimate(result, error, ~missing.all(1))

    def _stand_in(self, draw: Draw, subsets: Tensor) -> Tensor:
        """What a censored value counts as: ``[B, K]`` or ``[B, 1]``."""
        if self.censored == "norm of x":
            lengths: Tensor = torch.linalg.vector_norm(draw.cases.x.flatten(1), dim=1, keepdim=True)
            return lengths
        ceiling = draw.objective.ceiling(draw.cases, subsets)
        if not bool(torch.isfinite(ceiling).all()):
            raise HoldfastError(
                "some subsets are censored and the model has no bounds to cap them by: search harder, or use the "
                "estimator BoundaryNormals()."
            )
        return ceiling

    def _fit(self, joined: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of ``joined [m, n]`` and their standard errors; normal equations in double precision."""
        design = joined.double()
        if self.intercept:
            design = torch.cat([design, torch.ones_like(design[:, :1])], 1)
        m, n = design.shape
        gram = design.T @ design
        factor, singular = torch.linalg.cholesky_ex(gram)
        # A feature that joined always or never makes the equations singular; the least-norm answer then has it at 0.
        inverse = torch.linalg.pinv(gram, hermitian=True) if bool(singular) else torch.cholesky_inverse(factor)
        weights = inverse @ (design.T @ values.double())
        noise = (values.double() - design @ weights).square().sum() / max(m - n, 1)
        error = (inverse.diagonal().clamp_min(0) * noise).sqrt()
        count = joined.shape[1]
        return weights[:count].to(values), error[:count].to(values)
