"""Successive projection onto linearised boundaries, inside mask and box."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.cases import ANY
from holdfast.robustness.search import Search, cosine_decay

_REMOVE = 4  # finished rows are removed once they are more than one in four: copying the others has a cost
_INTERVAL = 3  # steps between two tests for finished rows: a test makes a GPU wait


def successive_projection(
    search: Search,
    steps: int,
    aim: Tensor | None = None,
    start: Tensor | None = None,
    first_share: float | Tensor = 1.0,
    draw: int | Tensor = 0,
) -> None:
    """Go repeatedly towards the point nearest to x on the boundary linearised at the current point.

    A step covers a share of the distance that falls from ``first_share`` to 1/20 along a cosine, which averages out the
    kinks of the boundary. It aims past the boundary by an overshoot that grows while the decision is kept and shrinks
    once it has changed; a boundary that is straight from one step to the next needs none. A row is finished when its
    linearised boundary cannot improve it by two thousandths, or when it is at a corner of its box that is not far
    enough. Rows with a zero gradient continue at random points. Rows that have not crossed their boundary after a third
    of the steps continue from the current point instead of x (DeepFool, Moosavi-Dezfooli et al. 2016): where gradients
    change much from step to step, nearest points of linearised boundaries may never reach the real one.

    Args:
        search: The search to improve.
        steps: The largest number of gradients for each row.
        aim: A class to head for, ``[R]``; ``ANY`` or None for the nearest.
        start: Moves ``[R, n]`` to begin from; None for x itself.
        first_share: The share of the distance that the first steps cover, ``[R]`` or one number.
        draw: Which random points to use, ``[R]`` or one number.
    """
    state = _Projection(search, aim, start, first_share, draw)
    for step in range(steps):
        if not len(state.search.rows):
            return
        changed, value, slope = state.search.evaluate(state.delta, state.aim)
        state.search.count_gradient(~state.finished)
        if step == steps - 1:
            return
        if step == 0:
            state.search.record_flat(state.delta, slope)
        before, drop = state.delta, state.drop(step, changed, value, slope)
        rows = state.search.rows
        goal = state.search.norm.nearest(slope, drop.clamp_min(0), rows.low, rows.high)
        state.advance(goal, 1.0 if step == 0 and start is None else cosine_decay(step, steps, state.first_share, 0.05))
        state.crossed |= value < 0
        if state.waiting and step >= steps // 3:
            state.continue_from(before, value, slope)
        if step % _INTERVAL == 0:
            state.settle(before, goal, drop, changed, slope, state.draw * steps + step)


class _Projection:
    """The rows that are still projected, and their state.

    ``offset [R]`` is the constant of the linearised margin, ``overshoot [R]`` the share by which a drop is exceeded,
    ``crossed [R]`` whether the margin was ever negative, ``waiting`` how many rows had not crossed when last counted.
    """

    def __init__(
        self,
        search: Search,
        aim: Tensor | None,
        start: Tensor | None,
        first_share: float | Tensor,
        draw: int | Tensor,
    ):
        able = search.rows.free.any(1) & (search.best_radius() > 0)
        self.search = search
        self.aim = torch.full_like(search.rows.label, ANY) if aim is None else aim
        self.delta = torch.zeros_like(search.rows.x) if start is None else start
        self.overshoot = search.rows.x.new_full((len(search.rows),), 0.05)
        self.finished, self.crossed = torch.zeros_like(able), torch.zeros_like(able)
        self.offset = torch.zeros_like(self.overshoot)
        self.first_share = torch.zeros_like(self.overshoot) + first_share
        self.draw = torch.zeros_like(search.rows.label) + draw
        self.waiting = 1
        self._keep(able)

    def drop(self, step: int, changed: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        """Return by how much the margin must fall from x, with overshoot, ``[R]``."""
        along = (slope * self.delta).sum(1)
        before, self.offset = self.offset, value - along
        if step:
            straight = changed & ((self.offset - before).abs() <= 1e-3 * before.abs())
            scaled = torch.where(changed, self.overshoot / 1.3, self.overshoot * 1.3)
            self.overshoot = scaled.masked_fill_(straight, 0).clamp_(1e-3, 2)
        return self.offset + self.overshoot * (along.abs() + value.abs())

    def advance(self, goal: Tensor, share: float | Tensor) -> None:
        """Cover a share of the distance to ``goal [R, n]``; finished rows stay."""
        self.delta = self.delta + (~self.finished * share)[:, None] * (goal - self.delta)

    def continue_from(self, before: Tensor, value: Tensor, slope: Tensor) -> None:
        """Move rows that have not crossed from the point ``before`` to the boundary linearised there."""
        rows = self.search.rows
        drop = 1.1 * value.clamp_min(0)
        move = self.search.norm.nearest(slope, drop, rows.low - before, rows.high - before)
        self.delta = torch.where((~self.crossed & ~self.finished)[:, None], before + move, self.delta)

    def settle(self, before: Tensor, goal: Tensor, drop: Tensor, changed: Tensor, slope: Tensor, draw: Tensor) -> None:
        """Find finished rows, remove them if they are many, and move rows without a gradient to random points."""
        norm = self.search.norm
        length = norm.length(goal)
        self.finished |= changed & (self.overshoot < 2e-3) & (self.search.best_radius() < 1.002 * length)
        short = -(slope * goal).sum(1) < 0.999 * drop  # the boundary, if straight, is out of reach
        self.finished |= ~changed & short & (norm.length(goal - before) < 0.01 * length)
        # Finished rows stay where they are, so that the time of their removal changes nothing.
        self.delta = torch.where(self.finished[:, None], before, self.delta)
        lost = ~changed & (length == 0)
        counts = torch.stack([lost.sum(), self.finished.sum(), (~self.crossed).sum()])
        any_lost, finished, self.waiting = counts.tolist()
        if any_lost:
            self.delta = torch.where(lost[:, None], self.search.random_move(draw), self.delta)
        if finished * _REMOVE > len(self.search.rows):
            self._keep(~self.finished)

    def _keep(self, keep: Tensor) -> None:
        if bool(keep.all()):
            return
        self.search = self.search.part(keep)
        self.aim, self.delta, self.offset = self.aim[keep], self.delta[keep], self.offset[keep]
        self.overshoot, self.finished, self.crossed = self.overshoot[keep], self.finished[keep], self.crossed[keep]
        self.first_share, self.draw = self.first_share[keep], self.draw[keep]
