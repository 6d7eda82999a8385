"""The ensemble that evaluates: several methods, starts, losses and classes, the best witness of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.errors import HoldfastError
from holdfast.models.model import Access
from holdfast.robustness.kinds import Attack, Moves
from holdfast.robustness.minnorm import MinNorm
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Search, ddn, successive_projection

_FARTHEST = 10  # times as many steps for rows that nothing has turned


@dataclass(frozen=True)
class Judge(Attack):
    """The radius that reports print: tighter than, and different from, any attack an explainer optimises against.

    Best of ``MinNorm``, of runs towards each of the ``classes`` nearest classes (a one-sided judge flatters the
    explainer that shares its attack), of runs from ``starts`` random points on the sphere of the best radius so far,
    half of them on the paper's raw-logit loss, and of a long ddn. ``steps`` is the length of one such run; what has
    not turned by then is given ten times as many.
    """

    name: ClassVar[str] = "judge"
    presets: ClassVar[tuple[str, ...]] = ("quick", "thorough")
    requires: ClassVar[Access] = Access.GRADIENTS
    p: float = 2
    steps: int = 60
    classes: int = 9
    starts: int = 24
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 10 or self.classes < 0 or self.starts < 0:
            raise HoldfastError(f"Judge needs steps >= 10, classes >= 0 and starts >= 0, got {self}.")

    @classmethod
    def quick(cls, p: float = 2) -> Judge:
        """About 300 gradients a subset, for CPUs."""
        return cls(p, steps=25, classes=5, starts=3)

    @classmethod
    def default(cls, p: float = 2) -> Judge:
        """About 2,500 gradients a subset."""
        return cls(p)

    @classmethod
    def thorough(cls, p: float = 2) -> Judge:
        """About 15,000 gradients a subset."""
        return cls(p, steps=150, classes=20, starts=80)

    @property
    def rows(self) -> int:
        return self.steps * (5 + self.starts) + self.classes * (self.steps + self.steps // 2)

    def warm_start(self, cases: Cases, subsets: Tensor) -> Tensor | None:
        return MinNorm(self.p, min(100, 2 * self.steps), seed=self.seed).warm_start(cases, subsets)

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        search = Search(rows, self.norm, self.seed)
        MinNorm(self.p, 2 * self.steps, seed=self.seed).walk(search, None)
        first_radius = search.best().clone()
        if start is not None:
            successive_projection(search, self.steps, None, start)
        lost = torch.isinf(search.best())
        if bool(lost.any()):  # a few rows, as a rule: a point left censored weighs more than all others
            successive_projection(search.only(lost), _FARTHEST * self.steps)
        self._visit_classes(search)
        for draw in range(self.starts):
            begin = search.nearby(draw)
            if draw % 2:
                ddn(search, self.steps, stride=1.0, loss="logit", start=begin)
            else:
                successive_projection(search, self.steps, None, begin, first_share=0.5, draw=draw)
        ddn(search, 2 * self.steps)
        return search.moves()._replace(first_radius=first_radius)

    def _visit_classes(self, search: Search) -> None:
        if search.logits is None:
            return
        tried = torch.zeros_like(search.logits, dtype=torch.bool)
        tried.scatter_(1, search.rows.label[:, None], True)
        for _ in range(min(self.classes, tried.shape[1] - 1)):
            aim = search.rival(tried)
            tried = tried.scatter(1, aim.clamp_min(0)[:, None], True)
            open_ = aim != ANY
            if bool(open_.any()):
                successive_projection(search.only(open_), self.steps, aim[open_])
                ddn(search.only(open_), self.steps // 2)
