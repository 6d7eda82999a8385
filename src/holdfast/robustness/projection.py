"""Successive projection onto linearised boundaries, inside mask and box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from holdfast.cases import ANY
from holdfast.robustness.norms import Norm
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Best, Search, cosine_decay, flat_gradient

_REMOVE = 4  # finished rows are removed once they are more than one in four: copying the others has a cost
_REMOVE_RECORDED = 2  # of recorded steps: one in two, because every number of rows needs a recording
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
    able = search.rows.free.any(1) & (search.best_radius() > 0)
    projection = _Projection(search, able, aim, start, first_share, draw)
    for step in range(steps):
        if not len(projection.search.rows):
            return
        projection.advance(step, steps, straight=step == 0 and start is None)
    projection.store()


class _State(NamedTuple):
    """What steps change, for the rows that are still projected."""

    delta: Tensor  # [R, n]
    offset: Tensor  # [R]: the constant of the linearised margin
    overshoot: Tensor  # [R]: the share by which a drop is exceeded
    finished: Tensor  # [R]
    crossed: Tensor  # [R]: the margin was negative at some step
    spent: Tensor  # [R]: gradients
    best: Best

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> _State:
        delta, offset, overshoot, finished, crossed, spent, *best = tensors
        return cls(delta, offset, overshoot, finished, crossed, spent, Best(*best))

    @property
    def tensors(self) -> list[Tensor]:
        return [self.delta, self.offset, self.overshoot, self.finished, self.crossed, self.spent, *self.best]


class _Projection:
    """The rows that are still projected, and their state."""

    def __init__(
        self,
        search: Search,
        able: Tensor,
        aim: Tensor | None,
        start: Tensor | None,
        first_share: float | Tensor,
        draw: int | Tensor,
    ):
        self.search, taken = search.batch(able)
        rows = self.search.rows
        no = torch.zeros_like(rows.label, dtype=torch.bool)
        zero = rows.x.new_zeros(len(rows))
        self.aim = torch.full_like(rows.label, ANY) if aim is None else aim[taken]
        self.first_share = zero + (first_share[taken] if isinstance(first_share, Tensor) else first_share)
        self.draw = torch.zeros_like(rows.label) + (draw[taken] if isinstance(draw, Tensor) else draw)
        delta = torch.zeros_like(rows.x) if start is None else start[taken]
        self.state = _State(delta, zero, zero + 0.05, no, no, self.search.spent_so_far(), self.search.best())
        self.waiting = True  # some rows had not crossed when they were last counted

    def advance(self, step: int, steps: int, straight: bool) -> None:
        """Take one step with all rows; ``straight`` ones go the whole distance."""
        rows = self.search.rows
        kind = _Step(
            self.search.norm,
            rows.shape,
            first=step == 0,
            last=step == steps - 1 and not rows.model.fills_up(len(rows)),  # a recording of its own would cost more
            going_on=self.waiting and step >= steps // 3,
            settled=step % _INTERVAL == 0,
        )
        share = torch.ones_like(self.first_share) if straight else cosine_decay(step, steps, self.first_share, 0.05)
        inputs = *rows.tensors, self.aim, share, *self.state.tensors
        outputs = rows.model.run(kind, *inputs)
        self.state = _State.of(outputs[:9])
        if kind.first:
            self.search.update_flat(outputs[-1])
        if kind.settled and step < steps - 1:
            self._settle(self.draw * steps + step, outputs[9], outputs[10])

    def store(self) -> None:
        """Store what the remaining rows have found."""
        self.search.update(self.state.best)
        self.search.update_spent(self.state.spent)

    def _settle(self, draw: Tensor, lost: Tensor, counts: Tensor) -> None:
        """Move lost rows to random points, and remove finished rows if they are many."""
        any_lost, finished, waiting = counts.tolist()
        self.waiting = waiting > 0
        if any_lost:
            moved = torch.where(lost[:, None], self.search.random_move(draw), self.state.delta)
            self.state = self.state._replace(delta=moved)
        many = _REMOVE_RECORDED if self.search.rows.model.fills_up(len(lost)) else _REMOVE
        if finished * many > len(lost):
            self._keep(~self.state.finished)

    def _keep(self, keep: Tensor) -> None:
        self.store()
        self.search, taken = self.search.batch(keep)
        self.aim, self.first_share, self.draw = self.aim[taken], self.first_share[taken], self.draw[taken]
        self.state = _State.of([values[taken] for values in self.state.tensors])


@dataclass(frozen=True)
class _Step:
    """One step of all rows.

    It returns the state, then ``lost [R]`` and the numbers of lost, finished and waiting rows if ``settled``, then
    which gradients are ``flat [R]`` if it is the ``first``.

    Attributes:
        norm: The norm that is minimised.
        shape: The shape of one input.
        first: Nothing is known of the boundary yet.
        last: Rows are evaluated, but not moved.
        going_on: Rows that have not crossed continue from the current point.
        settled: Find rows that are finished or lost.
    """

    norm: Norm
    shape: tuple[int, ...]
    first: bool
    last: bool
    going_on: bool
    settled: bool

    def __call__(self, model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        rows, aim, share = Rows(model, self.shape, *tensors[:5]), tensors[5], tensors[6]
        state = _State.of(tensors[7:16])
        before = state.delta
        logits, value, slope = rows.gradient(before, lambda logits: rows.margin(logits, aim))
        changed = rows.changed(logits)
        best = state.best.improved(self.norm.length(before), before, logits, changed)
        state = state._replace(best=best, spent=state.spent + ~state.finished)
        flat = [flat_gradient(rows, before, slope)] if self.first else []
        if self.last:
            return *state.tensors, *flat
        state, drop = self._aimed(state, changed, value, slope)
        goal = self.norm.nearest(slope, drop.clamp_min(0), rows.low, rows.high)
        delta = before + (~state.finished * share)[:, None] * (goal - before)
        crossed = state.crossed | (value < 0)
        if self.going_on:
            move = self.norm.nearest(slope, 1.1 * value.clamp_min(0), rows.low - before, rows.high - before)
            delta = torch.where((~crossed & ~state.finished)[:, None], before + move, delta)
        state = state._replace(delta=delta, crossed=crossed)
        settled: list[Tensor] = []
        if self.settled:
            state, settled = self._settled(state, before, goal, drop, changed, slope)
        return *state.tensors, *settled, *flat

    def _aimed(self, state: _State, changed: Tensor, value: Tensor, slope: Tensor) -> tuple[_State, Tensor]:
        """Return the state, and by how much the margin must fall from x, with overshoot, ``[R]``."""
        along = (slope * state.delta).sum(1)
        offset, overshoot = value - along, state.overshoot
        if not self.first:
            straight = changed & ((offset - state.offset).abs() <= 1e-3 * state.offset.abs())
            scaled = torch.where(changed, overshoot / 1.3, overshoot * 1.3)
            overshoot = scaled.masked_fill_(straight, 0).clamp_(1e-3, 2)
        drop = offset + overshoot * (along.abs() + value.abs())
        return state._replace(offset=offset, overshoot=overshoot), drop

    def _settled(
        self, state: _State, before: Tensor, goal: Tensor, drop: Tensor, changed: Tensor, slope: Tensor
    ) -> tuple[_State, list[Tensor]]:
        """Find rows that are finished, and rows that are lost because they have no gradient."""
        length = self.norm.length(goal)
        finished = state.finished | changed & (state.overshoot < 2e-3) & (state.best.radius < 1.002 * length)
        short = -(slope * goal).sum(1) < 0.999 * drop  # the boundary, if straight, is out of reach
        finished = finished | ~changed & short & (self.norm.length(goal - before) < 0.01 * length)
        # Finished rows stay where they are, so that the time of their removal changes nothing.
        delta = torch.where(finished[:, None], before, state.delta)
        lost = ~changed & (length == 0)
        counts = torch.stack([lost.sum(), finished.sum(), (~state.crossed).sum()])
        return state._replace(delta=delta, finished=finished), [lost, counts]
