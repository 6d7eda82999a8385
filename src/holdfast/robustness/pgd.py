"""The measurement of the paper: projected gradient descent at a fixed radius, and bisection on the radius."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from holdfast.cases import ANY
from holdfast.chunks import chunked
from holdfast.models.model import Access
from holdfast.robustness.kinds import Attack, Moves
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Search, flat_gradient
from holdfast.settings import Count, Natural, Positive


@dataclass(frozen=True)
class PGD(Attack):
    """PGD (Madry et al. 2017) inside balls whose radius is found by bisection.

    Args:
        p: The norm: 1, 2 or infinity.
        steps: Steps at each radius.
        step: The length of a step; a share of the radius if ``relative``.
        starts: The number of starting points: x itself if 1, random points in the ball otherwise.
        classes: From each start, how many of the classes with the largest logits at x are attacked one by one, beside
            an attack on the nearest class.
        loss: The margin, or the raw logit of the explained class as in the paper's code.
        first: The first radius; it is multiplied or divided by ten until one radius fails and one succeeds.
        tolerance: The width of the bracket at which bisection stops; a share of the radius if ``relative``.
        rounds: The largest number of radii.
        relative: Whether ``step`` and ``tolerance`` are shares of the radius.
        seed: For random points.

    Raises:
        HoldfastError: A setting is out of range.
    """

    name: ClassVar[str] = "pgd"
    presets: ClassVar[tuple[str, ...]] = ("paper", "paper_evaluation")
    requires: ClassVar[Access] = Access.GRADIENTS
    p: float = 2
    steps: Count = 40
    step: Positive = 0.1
    starts: Count = 1
    classes: Natural = 5
    loss: Literal["logit", "margin"] = "margin"
    first: Positive = 1.0
    tolerance: Positive = 0.005
    rounds: Count = 25
    relative: bool = True
    seed: int = 0

    @classmethod
    def paper(cls, p: float = 2) -> PGD:
        """Return the released settings for explaining: 100 steps of length 1 on the raw logit, from x itself."""
        return cls(p, steps=100, step=1.0, classes=0, loss="logit", first=10.0, tolerance=1e-3, relative=False)

    @classmethod
    def paper_evaluation(cls, p: float = 2) -> PGD:
        """Return the released settings for evaluation: the same from 1,000 random starts at each radius."""
        return cls(
            p, steps=100, step=1.0, starts=1000, classes=0, loss="logit", first=10.0, tolerance=1e-3, relative=False
        )

    @property
    def rows(self) -> int:
        bisections = 15  # about enough from the first radius to a thousandth of it
        return self.steps * self.starts * (self.classes + 1) * min(self.rounds, bisections)

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        search = Search(rows, self.norm, self.seed)
        aims = self._aims(rows)
        low = torch.zeros_like(search.radius)  # the largest radius without a change
        high = torch.full_like(low, math.inf)  # the smallest radius with one
        trial = torch.full_like(low, self.first)
        most = self.norm.length(torch.maximum(-rows.low, rows.high))  # a larger ball contains no further point
        open_ = rows.free.any(1)
        for _ in range(self.rounds):
            if not bool(open_.any()):
                break
            which = open_.nonzero()[:, 0]
            begin = None if start is None else start[which]
            changed = self._attack(search.part(which), trial[which], aims[which], begin)
            high[which] = torch.where(changed, trial[which], high[which])
            low[which] = torch.where(changed, low[which], trial[which])
            bracketed = (low > 0) & torch.isfinite(high)
            trial = torch.where(bracketed, (low + high) / 2, torch.where(torch.isinf(high), low * 10, high / 10))
            width = self.tolerance * (high if self.relative else torch.ones_like(high))
            open_ &= ~(bracketed & (high - low <= width)) & ~(torch.isinf(high) & (low >= most))
        return search.moves()

    def _aims(self, rows: Rows) -> Tensor:
        """Return the classes to head for, ``[R, 1 + classes]``: ``ANY``, then those with the largest logits at x."""
        aims = torch.full_like(rows.label, ANY)[:, None]
        if not self.classes or bool((rows.target != ANY).all()):
            return aims
        score = rows.model(rows.points(torch.zeros_like(rows.x))).scatter(1, rows.label[:, None], -math.inf)
        nearest = score.topk(min(self.classes, score.shape[1] - 1)).indices
        return torch.cat([aims, torch.where(rows.target[:, None] == ANY, nearest, ANY)], 1)

    def _attack(self, search: Search, radius: Tensor, aims: Tensor, start: Tensor | None) -> Tensor:
        """Return which rows change within ``radius [R]``; pairs of start and aim run together as far as they fit."""
        rows = search.rows
        changed = torch.zeros_like(radius, dtype=torch.bool)
        width = max(1, rows.model.chunk(rows.x.reshape(-1, *rows.shape)) // len(rows))

        def work(pairs: slice) -> None:
            left = (~changed).nonzero()[:, 0]
            if not len(left):
                return
            pair = torch.arange(pairs.start, pairs.stop, device=left.device).repeat_interleave(len(left))
            copies = left.repeat(pairs.stop - pairs.start)
            part = Search(rows.at(copies), self.norm, self.seed)
            begin = self._begin(part, radius[copies], pair % self.starts, None if start is None else start[copies])
            self._descend(part, radius[copies], begin, aims[copies, pair // self.starts])
            search.part(left).merge(part)
            changed[left] = torch.isfinite(part.radius).view(-1, len(left)).any(0)

        for _ in chunked(work, self.starts * aims.shape[1], width):
            pass
        return changed

    def _begin(self, search: Search, radius: Tensor, draws: Tensor, start: Tensor | None) -> Tensor:
        """Return the first moves ``[R, n]``; ``draws [R]`` numbers the starts."""
        rows = search.rows
        if self.starts == 1:
            begin = torch.zeros_like(rows.x) if start is None else start
            return self.norm.project(begin, radius, rows.low, rows.high)
        return search.random_move_of_length(draws, radius)

    def _descend(self, search: Search, radius: Tensor, delta: Tensor, aim: Tensor) -> None:
        """Take steps until every row has changed at some step, or none are left."""
        ever = torch.zeros_like(radius, dtype=torch.bool)  # changed at some step
        length = radius * self.step if self.relative else torch.full_like(radius, self.step)
        for step in range(self.steps + 1):
            changed, _, slope = search.evaluate(delta, aim, self.loss)
            ever |= changed
            if step == 0:
                search.update_flat(flat_gradient(search.rows, delta, slope))
            if step == self.steps or bool(ever.all()):
                return
            rows = search.rows
            moved = delta + self.norm.pgd_step(slope, delta, length, rows.low, rows.high)
            flat = ~(rows.free & (slope != 0)).any(1)
            if bool(flat.any()):
                moved = torch.where(flat[:, None], search.random_move(torch.full_like(rows.label, step)), moved)
            # A row that has changed stays where it is, so that its batch does not matter.
            delta = torch.where(ever[:, None], delta, self.norm.project(moved, radius, rows.low, rows.high))
