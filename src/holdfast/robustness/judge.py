"""The ensemble that evaluates explanations: several searches, starts, losses and classes, and the best witness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.models.model import Access
from holdfast.robustness.ddn import ddn
from holdfast.robustness.kinds import Attack, Moves
from holdfast.robustness.minnorm import MinNorm
from holdfast.robustness.projection import successive_projection
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Search
from holdfast.settings import Natural, Range

_LONGER = 10  # factor on the steps of rows that have no witness


@dataclass(frozen=True)
class Judge(Attack):
    """The radius that reports print: tighter than, and different from, any attack that an explainer optimises.

    It is the best of ``MinNorm``, of searches towards each of the nearest classes, of searches from random points on
    the sphere of the best radius so far (half of them on the raw logit of the paper's code), and of a long DDN. An
    attack towards one class only would favour the explainer that uses the same attack. Rows without a witness get ten
    times as many steps.

    Args:
        p: The norm: 1, 2 or infinity.
        steps: Gradients of one search.
        classes: How many of the nearest classes are attacked.
        starts: How many random points are tried.
        seed: For random points.

    Raises:
        HoldfastError: A setting is out of range.
    """

    name: ClassVar[str] = "judge"
    presets: ClassVar[tuple[str, ...]] = ("quick", "thorough")
    requires: ClassVar[Access] = Access.GRADIENTS
    p: float = 2
    steps: Annotated[int, Range(10)] = 60
    classes: Natural = 9
    starts: Natural = 24
    seed: int = 0

    @classmethod
    def quick(cls, p: float = 2) -> Judge:
        """Return a judge with about 300 gradients for each subset, for CPUs."""
        return cls(p, steps=25, classes=5, starts=3)

    @classmethod
    def default(cls, p: float = 2) -> Judge:
        """Return a judge with about 2,500 gradients for each subset."""
        return cls(p)

    @classmethod
    def thorough(cls, p: float = 2) -> Judge:
        """Return a judge with about 15,000 gradients for each subset."""
        return cls(p, steps=150, classes=20, starts=80)

    @property
    def rows(self) -> int:
        return self.steps * (5 + self.starts) + self.classes * (self.steps + self.steps // 2)

    def warm_start(self, cases: Cases, subsets: Tensor) -> Tensor | None:
        """Return the witness of the union of each case's subsets by ``MinNorm``; None if there is one subset."""
        return MinNorm(self.p, min(100, 2 * self.steps), seed=self.seed).warm_start(cases, subsets)

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        search = Search(rows, self.norm, self.seed)
        MinNorm(self.p, 2 * self.steps, seed=self.seed).improve(search, None)
        first_radius = search.best_radius().clone()
        if start is not None:
            successive_projection(search, self.steps, None, start)
        lost = torch.isinf(search.best_radius())
        if bool(lost.any()):  # usually few rows, but one censored point distorts a curve more than all others
            successive_projection(search.part(lost), _LONGER * self.steps)
        self._attack_classes(search)
        for draw in range(self.starts):
            begin = search.random_move_of_best_radius(draw)
            if draw % 2:
                ddn(search, self.steps, stride=1.0, loss="logit", start=begin)
            else:
                successive_projection(search, self.steps, None, begin, first_share=0.5, draw=draw)
        ddn(search, 2 * self.steps)
        return search.moves()._replace(first_radius=first_radius)

    def _attack_classes(self, search: Search) -> None:
        if search.logits is None:
            return
        tried = torch.zeros_like(search.logits, dtype=torch.bool)
        tried.scatter_(1, search.rows.label[:, None], True)
        for _ in range(min(self.classes, tried.shape[1] - 1)):
            aim = search.next_class(tried)
            tried = tried.scatter(1, aim.clamp_min(0)[:, None], True)
            aimed = aim != ANY
            if bool(aimed.any()):
                successive_projection(search.part(aimed), self.steps, aim[aimed])
                ddn(search.part(aimed), self.steps // 2)
