"""The state of a search for the nearest change of decision, and the two ways of walking it.

``successive_projection`` finds a boundary and slides along it by successive projection; ``ddn`` creeps closer from a witness.
Both are deterministic: randomness comes from a seed alone, never from which rows share a batch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from holdfast.cases import ANY
from holdfast.draws import normal
from holdfast.robustness.kinds import Moves
from holdfast.robustness.norms import Norm
from holdfast.robustness.rows import Rows, margin
from holdfast.robustness.steps import clip

_LEAVE = 4  # rows leave a batch once one in so many has nothing left to do: copying the others costs too
_PAUSE = 3  # steps between two looks at who is done: asking makes a GPU wait


class Search:
    """The best witness so far of every row, kept by looking at points."""

    def __init__(self, rows: Rows, norm: Norm, seed: int = 0):
        self.rows, self.norm, self.seed = rows, norm, seed
        self.radius = rows.x.new_full((len(rows),), math.inf)
        self.delta = torch.zeros_like(rows.x)
        self.spent = torch.zeros_like(self.radius)  # gradients a successive_projection has needed
        self.flat = torch.zeros(len(rows), dtype=torch.bool, device=rows.x.device)
        self.logits: Tensor | None = None  # at the best witness, or where the search looked last
        self._place: Tensor | None = None  # which rows of the whole these are
        self._parent: Search | None = None  # a search that pointed at itself would outlive its batch

    def only(self, keep: Tensor) -> Search:
        """A view of some rows, each named once; what it finds is found for the whole."""
        part = object.__new__(Search)
        part.rows, part.norm, part.seed = self.rows.at(keep), self.norm, self.seed
        part._parent, part._place = self._whole, torch.arange(len(self.rows), device=keep.device)[keep]
        part._place = part._place if self._place is None else self._place[part._place]
        return part

    @property
    def _whole(self) -> Search:
        return self if self._parent is None else self._parent

    def best(self) -> Tensor:
        """The smallest radius found for each of these rows."""
        return self._mine(self._whole.radius)

    def witness(self) -> Tensor:
        """The move that reaches it."""
        return self._mine(self._whole.delta)

    def _mine(self, whole: Tensor) -> Tensor:
        return whole if self._place is None else whole[self._place]

    def look(self, delta: Tensor, aim: Tensor | None = None, loss: str = "margin") -> tuple[Tensor, Tensor, Tensor]:
        """Ask the model at ``x + delta``: has the decision changed, how far is it from changing, and the slope of that.

        ``aim [R]`` heads for one class where it is not ``ANY``; ``loss="logit"`` follows the paper's raw logit.
        """
        rows = self.rows
        logits, value, slope = rows.look(delta, lambda logits: _loss(logits, rows, aim, loss))
        changed = rows.changed(logits)
        self._record(delta, logits, changed)
        return changed, value, slope

    def _record(self, delta: Tensor, logits: Tensor, changed: Tensor) -> None:
        whole, best, length = self._whole, self.best(), self.norm.length(delta)
        better = changed & (length < best)
        if whole.logits is None:
            whole.logits = logits.new_zeros(len(whole.rows), logits.shape[1])
        self._store(whole.logits, logits, better | torch.isinf(best))
        self._store(whole.delta, delta, better)
        self._store(whole.radius, length, better)

    def _store(self, whole: Tensor, new: Tensor, where: Tensor) -> None:
        """``whole[where] = new[where]`` without a mask as index, which would make a GPU wait."""
        where = where if new.ndim == 1 else where[:, None]
        if self._place is None:
            torch.where(where, new, whole, out=whole)
        else:
            whole[self._place] = torch.where(where, new, whole[self._place])

    def spend(self, who: Tensor) -> None:
        """Count one gradient for some of these rows."""
        self._store(self._whole.spent, self._mine(self._whole.spent) + 1, who)

    def take(self, other: Search, which: Tensor) -> None:
        """Take over what another search found for these rows in its rows ``which``."""
        if other.logits is not None:
            self._record(other.delta[which], other.logits[which], torch.isfinite(other.radius[which]))
        self._store(self._whole.flat, other.flat[which], other.flat[which])

    def rival(self, tried: Tensor) -> Tensor:
        """The untried class nearest at the best witness, ``ANY`` where none is left or the question names one."""
        if self.logits is None:
            return torch.full_like(self.rows.label, ANY)
        score = self.logits.masked_fill(tried, -math.inf)
        best, aim = score.max(1)
        return torch.where(torch.isinf(best) | (self.rows.target != ANY), ANY, aim)

    def tried(self) -> Tensor | None:
        """Classes no longer worth heading for, ``[R, classes]``: the label, and the one already reached.

        None when nothing was looked at, because no row can move or every one is decided.
        """
        if self.logits is None:
            return None
        reached = self.logits.scatter(1, self.rows.label[:, None], -math.inf).argmax(1, keepdim=True)
        tried = torch.zeros_like(self.logits, dtype=torch.bool)
        return tried.scatter(1, self.rows.label[:, None], True).scatter(1, reached, True)

    def random(self, draw: int) -> Tensor:
        """A random move within the interval; the same draw for every row, so batches do not matter."""
        rows = self.rows
        spot = normal(rows.x.shape[1], self.seed, draw).erf().add(1).div(2).to(rows.x)  # roughly even over [0, 1]
        bounded = torch.isfinite(rows.low) & torch.isfinite(rows.high)
        inside = torch.where(bounded, rows.low + spot * (rows.high - rows.low), 0)
        scale = rows.x.abs().amax(1, keepdim=True).clamp_min(1) * 2.0 ** (draw % 8 - 2)
        return torch.where(bounded, inside, clip((2 * spot - 1) * scale, rows.low, rows.high))

    def nearby(self, draw: int) -> Tensor:
        """A random move about as long as the best one found, for another look from elsewhere."""
        rows, best = self.rows, self.best()
        noise = normal(rows.x.shape[1], self.seed, draw).to(rows.x) * rows.free
        length = torch.where(torch.isfinite(best), best, 1) / self.norm.length(noise).clamp_min(1e-12)
        return clip(noise * length[:, None], rows.low, rows.high)

    def note_flat(self, slope: Tensor) -> None:
        """Remember rows that had no slope to follow where they began, though they had room to move."""
        free = self.rows.free
        flat = ~(free & (slope != 0)).any(1) & free.any(1)
        self._store(self._whole.flat, flat, flat)

    def moves(self) -> Moves:
        return Moves(self.delta, self.flat)


def successive_projection(
    search: Search,
    steps: int,
    aim: Tensor | None = None,
    start: Tensor | None = None,
    first_share: float = 1.0,
    draw: int = 0,
) -> None:
    """Successive projection: go to the point nearest x on the boundary linearised here, again and again.

    The share of the way that is gone falls from ``first_share`` to 1/20 along a cosine, which averages the kinks of the
    boundary out. A drop is overshot by ``push``, which grows while the decision holds and shrinks once it changes.
    Where the boundary proves straight from one step to the next, there is nothing left to overshoot. Rows that their
    linearised boundary cannot improve by two thousandths leave, and so do rows in a corner of their box that is not
    far enough; rows without any slope jump to random points. Rows that have not changed after a third of the steps go
    on from where they stand (DeepFool, Moosavi-Dezfooli et al. 2016): where slopes turn from step to step, as a large
    network's do, the nearest point of one linearised boundary after another may never reach the real one.
    """
    able = search.rows.free.any(1) & (search.best() > 0)
    delta = torch.zeros_like(search.rows.x) if start is None else start
    aim = torch.full_like(search.rows.label, ANY) if aim is None else aim
    push = search.rows.x.new_full((len(search.rows),), 0.05)
    done, crossed, offset = torch.zeros_like(able), torch.zeros_like(able), torch.zeros_like(push)
    search, (aim, delta, push, done, crossed, offset) = _keep(search, able, aim, delta, push, done, crossed, offset)
    behind = 1  # rows that have not crossed their boundary, when last counted
    for step in range(steps):
        if not len(search.rows):
            return
        changed, value, slope = search.look(delta, aim)
        search.spend(~done)
        if step == steps - 1:
            return
        rows = search.rows
        if step == 0:
            search.note_flat(slope)
        along = (slope * delta).sum(1)
        before, offset = offset, value - along
        if step:
            straight = changed & ((offset - before).abs() <= 1e-3 * before.abs())
            push = torch.where(changed, push / 1.3, push * 1.3).masked_fill_(straight, 0).clamp_(1e-3, 2)
        drop = offset + push * (along.abs() + value.abs())
        goal = search.norm.nearest(slope, drop.clamp_min(0), rows.low, rows.high)
        share = 1.0 if step == 0 and start is None else _fall(step, steps, first_share, 0.05)
        here, delta = delta, delta + (~done * share)[:, None] * (goal - delta)
        crossed |= value < 0
        if behind and step >= steps // 3:
            on = search.norm.nearest(slope, 1.1 * value.clamp_min(0), rows.low - here, rows.high - here)
            delta = torch.where((~crossed & ~done)[:, None], here + on, delta)
        if step % _PAUSE:
            continue
        length = search.norm.length(goal)
        done |= changed & (push < 2e-3) & (search.best() < 1.002 * length)
        short = -(slope * goal).sum(1) < 0.999 * drop  # the boundary, if straight, is out of reach
        done |= ~changed & short & (search.norm.length(goal - here) < 0.01 * length)
        delta = torch.where(done[:, None], here, delta)  # who is done stands still: when it leaves changes nothing
        lost = ~changed & (length == 0)
        any_lost, count_done, behind = torch.stack([lost.sum(), done.sum(), (~crossed).sum()]).tolist()
        if any_lost:
            delta = torch.where(lost[:, None], search.random(draw * steps + step), delta)
        if count_done * _LEAVE > len(rows):
            search, (aim, delta, push, done, crossed, offset) = _keep(
                search, ~done, aim, delta, push, done, crossed, offset
            )


def ddn(
    search: Search, steps: int, stride: float | None = None, loss: str = "margin", start: Tensor | None = None
) -> None:
    """Decoupled direction and norm (Rony et al. 2019) from the best witness, with exact steps over mask and box.

    A step down the slope, then back onto a sphere that shrinks while the decision has changed and grows while not.
    ``stride`` is the first step as a share of the radius: longer in L1, where most of a step is projected away.
    """
    stride = search.norm.stride if stride is None else stride
    able = torch.isfinite(search.best()) & (search.best() > 0)
    search, (delta,) = _keep(search, able, search.witness() if start is None else start)
    if not len(search.rows):
        return
    radius = search.best()
    for step in range(steps):
        changed, _, slope = search.look(delta, None, loss)
        if step == steps - 1:
            return
        rows, length = search.rows, search.norm.length(delta)
        shrink = _fall(step, steps, 0.03, 0.005)
        radius = torch.where(changed, torch.minimum(radius, length) * (1 - shrink), radius * (1 + shrink))
        radius = torch.minimum(radius, search.best() * (1 - 0.002))
        way = _fall(step, steps, stride, 0.03) * search.norm.ddn_step(slope * rows.free, delta, radius)
        delta = search.norm.project(delta - way, radius, rows.low, rows.high)


def _loss(logits: Tensor, rows: Rows, aim: Tensor | None, loss: str) -> Tensor:
    targeted = rows.target != ANY
    if loss == "logit":
        pivot = torch.where(targeted, rows.target, rows.label)[:, None]
        return torch.where(targeted, -1.0, 1.0).to(logits) * logits.gather(1, pivot)[:, 0]
    return margin(logits, rows.label, rows.target, aim)


def _fall(step: int, steps: int, high: float, low: float) -> float:
    return low + (high - low) * 0.5 * (1 + math.cos(math.pi * step / steps))


def _keep(search: Search, keep: Tensor, *tensors: Tensor) -> tuple[Search, tuple[Tensor, ...]]:
    """The rows worth going on with, and their part of each tensor."""
    if bool(keep.all()):
        return search, tensors
    return search.only(keep), tuple(tensor[keep] for tensor in tensors)
