"""The state of a search for the nearest change of decision: the best witness of every row so far.

Searches are deterministic: random moves depend on a seed alone, never on the rows that share a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from holdfast.cases import ANY
from holdfast.chunks import chunked, rounded_up
from holdfast.draws import normal
from holdfast.robustness.kinds import Moves
from holdfast.robustness.norms import Norm
from holdfast.robustness.rows import Rows
from holdfast.robustness.steps import clip

_Number = TypeVar("_Number", float, Tensor)
_FEW = 32  # free coordinates
_SAMPLES = 500_000  # the number of the first draw of samples
_INSIDE = 0.99  # samples are a little nearer than the best witness, so that one that changes the decision is better
_APART = 1e-7  # relative difference of the spheres of neighbouring legs


class Best(NamedTuple):
    """The best witness so far of R rows.

    Attributes:
        radius: Its radius, ``[R]``; ``inf`` without a witness.
        delta: Its move, ``[R, n]``; 0 without a witness.
        logits: ``[R, classes]`` there, or at the last point without a witness.
    """

    radius: Tensor
    delta: Tensor
    logits: Tensor

    def improved(self, length: Tensor, delta: Tensor, logits: Tensor, changed: Tensor) -> Best:
        """Return the better of these witnesses and the moves ``delta [R, n]``, where their decisions ``changed``."""
        better = changed & (length < self.radius)
        return Best(
            torch.where(better, length, self.radius),
            torch.where(better[:, None], delta, self.delta),
            torch.where((better | torch.isinf(self.radius))[:, None], logits, self.logits),
        )


class Search:
    """The best witness of every row, updated each time the model is evaluated.

    Args:
        rows: R rows.
        norm: The norm that is minimised.
        seed: For random moves.

    Attributes:
        radius: The smallest radius so far, ``[R]``; ``inf`` without a witness.
        delta: The move that has it, ``[R, n]``; 0 without a witness.
        spent: Gradients that ``successive_projection`` has used, ``[R]``.
        flat: Bool ``[R]``: the gradient was zero at x.
        logits: ``[R, classes]`` at the best witness, or at the last point without one; None before the first.
    """

    def __init__(self, rows: Rows, norm: Norm, seed: int = 0):
        self.rows, self.norm, self.seed = rows, norm, seed
        self.radius = rows.x.new_full((len(rows),), math.inf)
        self.delta = torch.zeros_like(rows.x)
        self.spent = torch.zeros_like(self.radius)
        self.flat = torch.zeros(len(rows), dtype=torch.bool, device=rows.x.device)
        self.logits: Tensor | None = None
        self._index: Tensor | None = None  # of these rows in the whole search
        self._count = len(rows)  # rows after so many are copies, which fill up a batch
        self._parent: Search | None = None  # a search that referred to itself would outlive its batch

    def part(self, which: Tensor) -> Search:
        """Return a view of some rows, each at most once; what it finds is stored in the whole search."""
        return self._part(torch.arange(len(self.rows), device=which.device)[which])

    def batch(self, able: Tensor) -> tuple[Search, slice | Tensor]:
        """Return a view of the rows that are ``able``, bool ``[R]``, for steps that may be recorded.

        If they are recorded, the last row is repeated until the number of rows is one of few.

        Returns:
            The view, and where its rows stand among these rows.
        """
        index = able[: self._count].nonzero()[:, 0]
        count = len(index)
        most = max(count, self.rows.model.chunk(self.rows.x[:1].reshape(-1, *self.rows.shape)))
        more = min(rounded_up(count), most) - count if count and self.rows.model.fills_up(count) else 0
        if count == self._count and count + more == len(self.rows):
            return self, slice(None)
        index = torch.cat([index, index[-1:].expand(more)])
        part = self._part(index)
        part._count = count
        return part, index

    def _part(self, taken: Tensor) -> Search:
        part = object.__new__(Search)
        part.rows, part.norm, part.seed = self.rows.at(taken), self.norm, self.seed
        part._count = len(taken)
        part._parent, part._index = self._whole, taken if self._index is None else self._index[taken]
        return part

    @property
    def _whole(self) -> Search:
        return self if self._parent is None else self._parent

    def best(self) -> Best:
        """Return the best witness of each of these rows; ``update`` stores better ones."""
        whole = self._whole
        return Best(self._own(whole.radius), self._own(whole.delta), self._own(whole._known_logits()))

    def update(self, best: Best) -> None:
        """Store what ``best`` returned, improved."""
        whole = self._whole
        whole.radius = self._stored(whole.radius, best.radius)
        whole.delta = self._stored(whole.delta, best.delta)
        whole.logits = self._stored(whole._known_logits(), best.logits)

    def _known_logits(self) -> Tensor:
        if self.logits is not None:
            return self.logits
        return self.rows.x.new_zeros(len(self.rows), len(self.rows.model.classes))

    def best_radius(self) -> Tensor:
        """Return the smallest radius so far of each of these rows, ``[R]``."""
        return self._own(self._whole.radius)

    def best_delta(self) -> Tensor:
        """Return the move that has it, ``[R, n]``."""
        return self._own(self._whole.delta)

    def _own(self, whole: Tensor) -> Tensor:
        return whole if self._index is None else whole[self._index]

    def _stored(self, whole: Tensor, new: Tensor) -> Tensor:
        """Return the tensor of the whole search with ``new [R]`` in the place of these rows."""
        if self._index is None:
            return new
        return whole.index_copy(0, self._index[: self._count], new[: self._count])

    def evaluate(self, delta: Tensor, aim: Tensor | None = None, loss: str = "margin") -> tuple[Tensor, Tensor, Tensor]:
        """Evaluate the model at ``x + delta`` and keep what is better than the best witness.

        Args:
            delta: Moves ``[R, n]``.
            aim: A class to head for, ``[R]``; ``ANY`` for the nearest.
            loss: ``"margin"``, or ``"logit"`` for the raw logit of the paper's code.

        Returns:
            Whether the decision has changed, bool ``[R]``; the loss ``[R]``; its gradient ``[R, n]``.
        """
        rows = self.rows
        logits, value, slope = rows.gradient(delta, lambda logits: _loss(logits, rows, aim, loss))
        changed = rows.changed(logits)
        self._record(delta, logits, changed)
        return changed, value, slope

    def _record(self, delta: Tensor, logits: Tensor, changed: Tensor) -> None:
        self.update(self.best().improved(self.norm.length(delta), delta, logits, changed))

    def spent_so_far(self) -> Tensor:
        """Return how many gradients each of these rows has used, ``[R]``."""
        return self._own(self._whole.spent)

    def update_spent(self, spent: Tensor) -> None:
        """Store how many gradients each of these rows has used, ``[R]``."""
        self._whole.spent = self._stored(self._whole.spent, spent)

    def update_flat(self, flat: Tensor) -> None:
        """Mark rows whose gradient is zero at x, bool ``[R]``."""
        self._whole.flat = self._stored(self._whole.flat, self._own(self._whole.flat) | flat)

    def side_by_side(self, legs: int, run: Callable[[Search, Tensor, Tensor], None], *, known: bool = False) -> None:
        """Search every row in several ways, as rows of one batch as far as they fit, and keep the best.

        A *leg* is one of these ways: a class to head for, or a point to begin from. All legs begin from what is known
        now. So the answer does not depend on how many of them fit.

        Args:
            legs: The number of ways.
            run: Called with an empty search of some pairs, and the row ``[P]`` and the leg ``[P]`` of each pair.
            known: Tell each leg the best radius so far, so that it keeps within it.
        """
        if not len(self.rows):
            return
        rows, radius = torch.arange(len(self.rows), device=self.rows.x.device), self.best_radius().clone()

        def work(piece: slice) -> None:
            leg = torch.arange(piece.start, piece.stop, device=rows.device).repeat_interleave(len(rows))
            row = rows.repeat(piece.stop - piece.start)
            part = Search(self.rows.at(row), self.norm, self.seed)
            within = apart(radius[row], leg)
            if known:
                part.radius = within.clone()
            run(part, row, leg)
            if known:  # a leg that found nothing has only the radius that it was told
                part.radius = torch.where(part.radius < within, part.radius, math.inf)
            self.merge(part)

        size = max(1, self.rows.model.chunk(self.rows.x.reshape(-1, *self.rows.shape)) // len(rows))
        for _ in chunked(work, legs, size):
            pass

    def merge(self, other: Search) -> None:
        """Keep what another search of several times these rows, ``[legs * R]``, found for each row, if better."""
        best = other.radius.view(-1, len(self.rows)).argmin(0) * len(self.rows)
        best += torch.arange(len(self.rows), device=best.device)
        if other.logits is not None:
            found = other.radius[best] < self.best_radius()
            logits, known = other.logits[best], self._whole.logits
            if known is not None:  # a leg without a witness may never have been evaluated
                logits = torch.where(found[:, None], logits, self._own(known))
            self._record(other.delta[best], logits, found)
        self.update_flat(other.flat.view(-1, len(self.rows)).any(0))
        self.update_spent(self.spent_so_far() + other.spent.view(-1, len(self.rows)).sum(0))

    def look(self, delta: Tensor) -> Tensor:
        """Evaluate the model at ``x + delta`` without gradients, keep what is better; return the margins ``[R]``."""
        rows = self.rows
        logits = rows.model(rows.points(delta))
        value = rows.margin(logits)
        self._record(delta, logits, value < 0)
        return value

    def reach(self) -> Tensor:
        """Return the best radii, or as far as the box allows without a witness, or 1 without a box, ``[R]``."""
        radius, farthest = self.best_radius(), self.norm.length(torch.maximum(-self.rows.low, self.rows.high))
        return torch.where(torch.isfinite(radius), radius, farthest.nan_to_num(1, posinf=1))

    def few(self) -> Tensor:
        """Return which rows have few free coordinates, but at least one: bool ``[R]``."""
        count = self.rows.free.sum(1)
        return (count > 0) & (count <= _FEW)

    def next_classes(self, tried: Tensor, count: int) -> Tensor:
        """Return the classes with the largest logits at the best witness among those not tried.

        Args:
            tried: Bool ``[R, classes]``.
            count: How many classes.

        Returns:
            Classes ``[R, count]``; ``ANY`` where none is left or the question has a target.
        """
        if self.logits is None:
            return self.rows.label.new_full((len(tried), count), ANY)
        score, aims = self.logits.masked_fill(tried, -math.inf).topk(min(count, tried.shape[1]))
        return aims.masked_fill(torch.isinf(score) | (self.rows.target != ANY)[:, None], ANY)

    def reached_classes(self) -> Tensor | None:
        """Return which classes are the label or the nearest class so far, bool ``[R, classes]``.

        None if the model was never evaluated, because no row can move or every decision has changed already.
        """
        if self.logits is None:
            return None
        reached = self.logits.scatter(1, self.rows.label[:, None], -math.inf).argmax(1, keepdim=True)
        tried = torch.zeros_like(self.logits, dtype=torch.bool)
        return tried.scatter(1, self.rows.label[:, None], True).scatter(1, reached, True)

    def noise(self, draws: Tensor) -> Tensor:
        """Return normal noise, ``[R, n]``: the same for equal numbers of ``draws [R]``."""
        if not len(draws):
            return torch.zeros_like(self.rows.x)
        numbers, place = draws.unique(return_inverse=True)
        noise = [normal(self.rows.x.shape[1], self.seed, number) for number in numbers.tolist()]
        return torch.stack(noise).to(self.rows.x)[place]

    def random_move(self, draws: Tensor) -> Tensor:
        """Return random moves inside the intervals, ``[R, n]``; ``draws [R]`` numbers them."""
        rows = self.rows
        spot = self.noise(draws).erf().add(1).div(2)  # roughly uniform in [0, 1]
        bounded = torch.isfinite(rows.low) & torch.isfinite(rows.high)
        inside = torch.where(bounded, rows.low + spot * (rows.high - rows.low), 0)
        scale = rows.x.abs().amax(1, keepdim=True).clamp_min(1) * (2.0 ** (draws % 8 - 2))[:, None].to(rows.x)
        return torch.where(bounded, inside, clip((2 * spot - 1) * scale, rows.low, rows.high))

    def random_move_of_length(self, draws: Tensor, length: Tensor) -> Tensor:
        """Return random moves of about this ``length [R]``, ``[R, n]``; ``draws [R]`` numbers them."""
        rows = self.rows
        noise = self.noise(draws) * rows.free
        return clip(noise * (length / self.norm.length(noise).clamp_min(1e-12))[:, None], rows.low, rows.high)

    def sampled_move(self, draws: Tensor, length: Tensor, points: int) -> Tensor:
        """Return random moves as ``random_move_of_length``; where few coordinates are free, the best of several.

        The best one has the smallest margin. Samples that change the decision are kept as witnesses. Where many
        coordinates are free, random moves are all alike.
        """
        begin = self.random_move_of_length(draws, length)
        few = self.few().nonzero()[:, 0]
        if not len(few):
            return begin
        part, lowest = self.part(few), torch.full_like(length[few], math.inf)
        for point in range(points):
            draw = _SAMPLES + draws[few] * points + point
            delta = part.random_move_of_length(draw, length[few] * _INSIDE)
            value = part.look(delta)
            better = value < lowest
            begin[few] = torch.where(better[:, None], delta, begin[few])
            lowest = torch.where(better, value, lowest)
        return begin

    def moves(self) -> Moves:
        """Return the best moves and the flat rows."""
        return Moves(self.delta, self.flat)


def flat_gradient(rows: Rows, delta: Tensor, slope: Tensor) -> Tensor:
    """Return which rows can move but have a zero gradient at x, given moves and the gradients there, ``[R, n]``."""
    free = rows.free
    return ~(free & (slope != 0)).any(1) & free.any(1) & (delta == 0).all(1)


def apart(radius: Tensor, leg: Tensor) -> Tensor:
    """Return radii ``[P]`` a little smaller for each leg ``[P]``: rounding would decide which of equal ones is best."""
    return radius * (1 - _APART * leg.to(radius))


def cosine_decay(step: int, steps: int, first: _Number, last: float) -> _Number:
    """Return what falls from ``first`` at step 0 to ``last`` at step ``steps`` along a cosine."""
    return last + (first - last) * 0.5 * (1 + math.cos(math.pi * step / steps))


def _loss(logits: Tensor, rows: Rows, aim: Tensor | None, loss: str) -> Tensor:
    targeted = rows.target != ANY
    if loss == "logit":
        pivot = torch.where(targeted, rows.target, rows.label)[:, None]
        return torch.where(targeted, -1.0, 1.0).to(logits) * logits.gather(1, pivot)[:, 0]
    return rows.margin(logits, aim)
