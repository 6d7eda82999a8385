"""Explanations by the closest input that is decided otherwise, allowed ever fewer features to differ in."""

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
from holdfast.ranking import Ranking, check_size, features_of, size_of
from holdfast.robustness import MinNorm, Robustness


def _searched() -> Robustness:
    return MinNorm(steps=20)


@dataclass(frozen=True)
class Counterfactual(Explainer):
    """CFX: the closest input of another decision, with the paper's L0 constraint on what differs.

    Wachter et al. minimise the distance while they raise the price of missing the wanted decision: in the limit the
    smallest change of decision, which ``robustness`` finds (its ``p`` is the distance). The ``step`` features that the
    counterfactual changes least are then forbidden to change, and so on from the counterfactual found: those it needs
    longest come first, so that the top K are the K it was last allowed.
    """

    robustness: Robustness = field(default_factory=_searched)
    step: float | int = 0.05
    seed: int = 0
    name: ClassVar[str] = "counterfactual"
    source: ClassVar[str] = "Wachter et al. 2017"
    requires: ClassVar[Access] = Access.GRADIENTS

    def __post_init__(self) -> None:
        if not isinstance(self.robustness, Robustness):
            raise HoldfastError(f"robustness must be a method such as MinNorm(), got {self.robustness!r}.")
        check_size(self.step, "step")

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        present = features_of(cases)
        count = present.sum(1)
        leave = size_of(self.step, count, "step")
        turns = int((-(-count // leave)).max())
        scores = torch.zeros_like(present, dtype=cases.x.dtype)
        allowed, open_ = present, torch.ones_like(count, dtype=torch.bool)
        dead = alike = ~open_
        moved, start = torch.zeros_like(scores), None
        for turn in range(turns):
            if bool(open_.any()):
                part = cases[open_]
                radii = self.robustness(part, allowed[open_][:, None], start=start)
                turned = torch.isfinite(radii.radius[:, 0])
                # A case that no longer turns will not with fewer features: its last counterfactual orders the rest.
                start, open_ = radii.witness[turned], open_.masked_scatter(open_, turned)
                moved[open_] = _shares_moved(part, radii.witness[:, 0])[turned]
            if turn == 0:
                dead, alike = ~open_, (moved == 0).all(1)
                if bool(dead.all()):
                    raise never_changed(len(cases))
            scores = torch.where(allowed, turn + moved, scores)
            place = Ranking.by_score(cases, scores.masked_fill(~allowed, -1), ties=self.seed).order.argsort(1)
            allowed = allowed & (place < (count - (turn + 1) * leave)[:, None])
            if progress is not None:
                progress(turn + 1, turns)
        ranking = Ranking.by_score(cases, scores, repr(self), self.seed)
        return replace(ranking, notes=uninformative_orders(dead, alike), uninformative=dead | alike)

    @property
    def needs(self) -> Access:
        return self.robustness.needs

    def rows(self, features: int) -> int | None:
        cost = self.robustness.rows
        leave = self.step if isinstance(self.step, int) else max(1, round(self.step * features))
        return None if cost is None else cost * -(-features // leave)


def _shares_moved(cases: Cases, witness: Tensor) -> Tensor:
    """How far each feature moved, ``[B, d]``, as a share under 1 of the farthest."""
    way = cases.features.pool((witness - cases.x).abs())
    return way / (1 + 1e-6) / way.amax(1, keepdim=True).clamp_min(torch.finfo(way.dtype).tiny)
