"""Estimators of the Banzhaf value of every unchosen feature: regression, boundary normals and samples.

The Banzhaf value of a feature is the average change of the objective when it joins a random subset. All estimators
draw subsets of the unchosen features and add them to those already chosen. ``Regression`` measures the objective of
each and fits a linear function (eq. 6 of the paper); ``BoundaryNormals`` linearises the objective at each;
``SampledBanzhaf`` measures what each feature changes.
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
from holdfast.settings import Count, NotNegative, Settings


@dataclass(frozen=True, eq=False)
class Draw:
    """What to estimate: the Banzhaf values of unchosen features, given those already chosen.

    Attributes:
        objective: The criterion whose Banzhaf values are estimated.
        cases: The cases.
        chosen: Bool ``[B, d]``: features that are in every subset.
        unchosen: Bool ``[B, d]``: features to value.
        samples: How many subsets to draw.
        inclusion: The probability that an unchosen feature is in a subset.
        seed: Seed of the subsets.
        state: ``Estimate.state`` of the previous draw; None at first.
    """

    objective: Criterion
    cases: Cases
    chosen: Tensor
    unchosen: Tensor
    samples: int
    inclusion: float
    seed: int
    state: Any = None

    def subsets(self, paired: bool = False) -> Tensor:
        """Draw subsets, the same for every case so that batches do not matter.

        Args:
            paired: Draw each subset with its complement among the unchosen features. The pairs are antithetic if
                ``inclusion`` is one half.

        Returns:
            Bool ``[B, samples, d]``: the drawn features and all chosen ones.
        """
        drawing = generator(self.seed)
        half = -(-self.samples // 2) if paired else self.samples
        joins = self.inclusion > torch.rand(self.unchosen.shape[1], half, generator=drawing).T  # padding comes last
        joins = torch.cat([joins, ~joins])[: self.samples] if paired else joins
        return self.chosen[:, None] | (joins.to(self.unchosen.device) & self.unchosen[:, None])


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated Banzhaf values.

    Attributes:
        values: ``[B, d]``: positive if the feature increases the objective.
        error: Standard errors ``[B, d]``; None if unknown.
        changed: Bool ``[B]``: whether a change of the decision was found for any subset.
        state: Makes the next draw on similar subsets cheaper; opaque to the caller.
    """

    values: Tensor
    error: Tensor | None
    changed: Tensor
    state: Any = None


class Estimator(Settings, ABC):
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
        """Estimate the value of every unchosen feature."""

    @abstractmethod
    def rows(self, objective: Criterion, samples: int) -> int | None:
        """Return about how many rows go through the model for one draw of one case; None: unknown."""

    @abstractmethod
    def bytes_held(self, cases: Cases, samples: int) -> int:
        """Return about how many bytes a draw of one case needs, beyond passes through the model."""

    def check(self, samples: int, inclusion: float, features: int) -> None:  # most refuse nothing
        """Refuse settings that cannot give an estimate, before anything runs.

        Args:
            samples: Subsets that will be drawn.
            inclusion: The probability that a feature is in a subset.
            features: The largest number of features of a case.

        Raises:
            HoldfastError: These settings give no estimate.
        """


@dataclass(frozen=True)
class BoundaryNormals(Estimator):
    """Average the marginal effects of all features, which one short search for each subset gives at once.

    Where the decision boundary is flat with normal w, ``g(S) = m / ||w_S||_q``: one gradient at the boundary gives the
    change of g for every feature. Works for the robustness criteria.

    Attributes:
        steps: Gradients towards each class.
        classes: How many of the nearest classes are searched.
        soft: Blend the effects of classes whose radii differ by about this share; 0: use the nearest class only.
        relative: Estimate the Banzhaf value of the logarithm of the objective, so that subsets with a very large radius
            do not dominate the average.
    """

    steps: Count = 6
    classes: Count = 6
    soft: NotNegative = 0.05
    relative: bool = True
    name: ClassVar[str] = "boundary-normals"
    requires: ClassVar[Access] = Access.GRADIENTS

    def __call__(self, draw: Draw) -> Estimate:
        subsets = draw.subsets()
        marginals = draw.objective.marginals(
            draw.cases, subsets, steps=self.steps, classes=self.classes, soft=self.soft, state=draw.state
        )
        effects = _in_logs(marginals, subsets) if self.relative else marginals.effects
        error = effects.std(1) / draw.samples**0.5 if draw.samples > 1 else None
        return Estimate(effects.mean(1), error, marginals.changed, marginals.state)

    def rows(self, objective: Criterion, samples: int) -> int:
        return samples * self.steps * self.classes

    def bytes_held(self, cases: Cases, samples: int) -> int:
        effects = 6 * samples * cases.features.count * cases.x.element_size()
        return effects + bytes_held(cases, samples, self.classes)


def _in_logs(marginals: Marginals, subsets: Tensor) -> Tensor:
    """Return ``log v(S + i) - log v(S)`` from the effects on v: S is the subset, without i where i is in it."""
    share = marginals.effects / marginals.values[..., None]
    most = 1 - 1e-6  # an effect as large as the value itself would be an infinite logarithm
    return torch.where(subsets, -torch.log1p(-share.clamp_max(most)), torch.log1p(share.clamp_min(-most)))


@dataclass(frozen=True)
class SampledBanzhaf(Estimator):
    """Average the measured change of the objective when a feature joins each random subset.

    For Robustness-S̄r only the features that the nearest change moves are measured; all others change nothing. So this
    pays where a change moves few features, as that of a tree ensemble does.

    Attributes:
        relative: Estimate the Banzhaf value of the logarithm of the objective.
    """

    relative: bool = True
    name: ClassVar[str] = "sampled-banzhaf"
    requires: ClassVar[Access] = Access.DECISIONS

    def __call__(self, draw: Draw) -> Estimate:
        subsets = draw.subsets()
        subsets[:, 0] = draw.chosen  # with one subset, the features chosen so far decide
        candidates = draw.unchosen[:, None] & ~subsets
        values, joined = draw.objective.joining(draw.cases, subsets, candidates)
        known = torch.isfinite(values)
        most = draw.objective.ceiling(draw.cases, subsets)
        both = torch.cat([values, joined.flatten(1)], 1)
        largest = torch.where(torch.isfinite(both), both, 0).amax(1, keepdim=True)
        bounded = torch.isfinite(most) & (most > 0)  # 0 where no feature may move
        most = torch.where(bounded, most, 2 * largest + 1)  # a value that is larger than all known ones
        values = torch.where(known, values, most)[..., None]
        joined = torch.where(torch.isfinite(joined), joined, torch.maximum(most[..., None], values))
        smallest = torch.finfo(values.dtype).tiny
        change = (joined.clamp_min(smallest) / values.clamp_min(smallest)).log() if self.relative else joined - values
        count = candidates.sum(1)
        mean = (change * candidates).sum(1) / count.clamp_min(1)
        spread = ((change - mean[:, None]).square() * candidates).sum(1) / (count - 1).clamp_min(1)
        error = (spread / count.clamp_min(1)).sqrt() if draw.samples > 1 else None
        return Estimate(mean, error, known.any(1))

    def rows(self, objective: Criterion, samples: int) -> int | None:
        return None

    def bytes_held(self, cases: Cases, samples: int) -> int:
        return 4 * samples * cases.features.count * cases.x.element_size()


@dataclass(frozen=True)
class Regression(Estimator):
    """Least squares of the objective on the indicators of the features in each subset (eq. 6 of the paper).

    Attributes:
        intercept: Fit an intercept. The paper's code does not, so the mean of the objective adds to every value.
        paired: Draw each subset with its complement. The paper's code does not.
        censored: The value of a subset without a known radius. ``"ceiling"``: the largest that the model's bounds
            allow; subsets in which nothing may be perturbed are left out. ``"norm of x"``: as in the paper's code.
    """

    intercept: bool = True
    paired: bool = True
    censored: Literal["ceiling", "norm of x"] = "ceiling"
    name: ClassVar[str] = "regression"
    requires: ClassVar[Access] = Access.DECISIONS

    def check(self, samples: int, inclusion: float, features: int) -> None:
        if inclusion == 0:
            raise HoldfastError("a regression needs subsets that differ: inclusion must be over 0, got 0.")
        # The second subset of a pair adds only the sum of both: half of them count.
        needed = 2 * features if self.paired else features + int(self.intercept)
        if samples < needed:
            raise HoldfastError(
                f"a regression on {features} features needs at least {needed} samples, got {samples}: raise samples, "
                "use fewer features, or use the estimator BoundaryNormals()."
            )

    def __call__(self, draw: Draw) -> Estimate:
        subsets = draw.subsets(self.paired)
        values = draw.objective(draw.cases, subsets)
        missing = torch.isinf(values)
        usable = torch.ones_like(missing)
        if bool(missing.any()):
            replacement = self._replacement(draw, subsets)
            usable = ~missing | (replacement > 0)
            values = torch.where(missing, replacement, values)
            if not bool(torch.isfinite(values).all()):
                raise HoldfastError(
                    "some subsets are censored, and the model has no bounds to cap them by: use a more thorough "
                    "search or the estimator BoundaryNormals()."
                )
        result, error = (torch.zeros_like(draw.unchosen, dtype=values.dtype) for _ in range(2))
        for case in draw.unchosen.any(1).nonzero()[:, 0].tolist():  # a short text may have no unchosen words left
            players, rows = draw.unchosen[case], usable[case]
            result[case, players], error[case, players] = self._fit(subsets[case, rows][:, players], values[case, rows])
        return Estimate(result, error, ~missing.all(1))

    def rows(self, objective: Criterion, samples: int) -> int | None:
        return None if objective.rows is None else samples * objective.rows

    def bytes_held(self, cases: Cases, samples: int) -> int:
        return 2 * samples * cases.features.count  # the subsets

    def _replacement(self, draw: Draw, subsets: Tensor) -> Tensor:
        """Return what replaces censored values, ``[B, K]`` or ``[B, 1]``; 0 where nothing may be perturbed."""
        if self.censored == "norm of x":
            lengths: Tensor = torch.linalg.vector_norm(draw.cases.x.flatten(1), dim=1, keepdim=True)
            return lengths
        return draw.objective.ceiling(draw.cases, subsets)

    def _fit(self, joined: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the coefficients ``[n]`` of indicators ``joined [m, n]`` and their standard errors."""
        design = torch.cat([joined, torch.ones_like(joined[:, :1])], 1) if self.intercept else joined
        weights, error = least_squares(design, values)
        count = joined.shape[1]
        return weights[:count].to(values), error[:count].to(values)
