"""Explainers by counterfactuals: the closest input with another decision, with fewer and fewer features changed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer, never_changed, uninformative_orders
from holdfast.models.model import Access
from holdfast.ranking import Ranking, features_of
from holdfast.robustness import MinNorm, Robustness
from holdfast.sizes import Size, size_of


def _default_method() -> Robustness:
    return MinNorm(steps=20)


@dataclass(frozen=True)
class Counterfactual(Explainer):
    """CFX: the closest input with another decision, under the paper's L0 constraint.

    The features that this counterfactual changes least are fixed, and the search continues from it with the rest.
    Features that stay changeable longest come first: the top K are the last K that could change. Wachter et al.
    minimise the distance to an input with another decision; in the limit of their penalty this is the smallest
    perturbation that changes the decision, which ``robustness`` searches.

    Attributes:
        robustness: The method that finds counterfactuals: an instance, a class or a name. Its ``p`` is the distance.
        step: How many features are fixed at a time: a share (float) or a number (int).
        seed: Seed of the order of features that change equally.
    """

    robustness: Robustness = field(default_factory=_default_method)
    step: Size = 0.05
    seed: int = 0
    name: ClassVar[str] = "counterfactual"
    source: ClassVar[str] = "Wachter et al. 2017"
    requires: ClassVar[Access] = Access.GRADIENTS

    def __post_init__(self) -> None:
        if self.robustness.bound == "lower":
            raise HoldfastError(f"Counterfactual needs witnesses, and {self.robustness!r} finds none: use MinNorm().")

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        present = features_of(cases)
        count = present.sum(1)
        step = size_of(min(self.step, int(count.max())) if isinstance(self.step, int) else self.step, count, "step")
        turns = int((-(-count // step)).max())
        scores = torch.zeros_like(present, dtype=cases.x.dtype)
        allowed, active = present, torch.ones_like(count, dtype=torch.bool)
        never = equal = ~active
        moved, start = torch.zeros_like(scores), None
        for turn in range(turns):
            if bool(active.any()):
                part = cases[active]
                radii = self.robustness(part, allowed[active][:, None], start=start)
                changed = torch.isfinite(radii.radius[:, 0])
                # No change now means none with fewer features: the last counterfactual orders the rest.
                start, active = radii.witness[changed], active.masked_scatter(active, changed)
                moved[active] = _relative_moves(part, radii.witness[:, 0])[changed]
            if turn == 0:
                never, equal = ~active, (moved == 0).all(1)
                if bool(never.all()):
                    raise never_changed(len(cases))
            scores = torch.where(allowed, turn + moved, scores)
            place = Ranking.by_score(cases, scores.masked_fill(~allowed, -1), ties=self.seed).order.argsort(1)
            allowed = allowed & (place < (count - (turn + 1) * step)[:, None])
            if progress is not None:
                progress(turn + 1, turns)
        ranking = Ranking.by_score(cases, scores, repr(self), self.seed)
        return replace(ranking, notes=uninformative_orders(never, equal), uninformative=never | equal)

    @property
    def needs(self) -> Access:
        return self.robustness.needs

    def rows(self, features: int) -> int | None:
        cost = self.robustness.rows
        step = self.step if isinstance(self.step, int) else max(1, round(self.step * features))
        return None if cost is None else cost * -(-features // step)


def _relative_moves(cases: Cases, witness: Tensor) -> Tensor:
    """Return how far each feature moved, ``[B, d]``, as a share under 1 of the farthest."""
    distance = cases.features.pool((witness - cases.x).abs())
    return distance / (1 + 1e-6) / distance.amax(1, keepdim=True).clamp_min(torch.finfo(distance.dtype).tiny)
