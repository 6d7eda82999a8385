"""Steps in closed form over mask ∩ box ∩ norm ball.

Rows are flat: ``[R, n]``. Mask and box are one thing here, the interval ``low <= delta <= high`` that a coordinate
may move in: outside the subset ``low = high = 0``. Every step stays inside, so nothing leaks off a mask, and is exact
but for what ``reach`` says of GPUs.
A drop or radius that the interval does not allow gives the farthest move that it does.

``torch.where(mask, x, 0)`` is written ``masked_fill`` here: it would send the number to a GPU anew each time.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_BLIND = 6  # kinks that a GPU goes past without looking


def norm(delta: Tensor, p: float) -> Tensor:
    """``||delta||_p`` of each row."""
    length: Tensor = torch.linalg.vector_norm(delta.flatten(1), p, dim=1)
    return length


def clip(delta: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The point of the interval nearest to ``delta``, in every norm at once."""
    return torch.minimum(torch.maximum(delta, low), high)


def nearest(slope: Tensor, drop: Tensor, low: Tensor, high: Tensor, p: float, exact: bool = False) -> Tensor:
    """argmin ``||delta||_p`` with ``<slope, delta> <= -drop``: the nearest point of a linearised boundary.

    L2 moves ``min(t |slope|, room)`` and Linf ``min(t, room)`` with one t a row; L1 fills the steepest coordinates to
    the edge of their room first. ``exact`` makes sure of the last digits on a GPU too, which must then wait.
    """
    size, room = slope.abs(), _room(slope, low, high)
    if p == 1:
        move = _fill(size, room, size, drop)
    else:
        weight = size if p == 2 else (size > 0).to(size)
        move = torch.minimum(weight * reach(weight, room, size, drop, exact)[:, None], room)
    return -slope.sign() * move


def farthest(slope: Tensor, radius: Tensor, low: Tensor, high: Tensor, p: float) -> Tensor:
    """argmin ``<slope, delta>`` with ``||delta||_p <= radius``: the most that a linear function can fall."""
    size, room = slope.abs(), _room(slope, low, high)
    if p == 1:
        move = _fill(size, room.masked_fill(size == 0, 0), torch.ones_like(size), radius)
    elif p == 2:
        move = _shorten(size, room, radius)
    else:
        move = torch.minimum(radius[:, None], room)
    return -slope.sign() * move


def project(delta: Tensor, radius: Tensor, low: Tensor, high: Tensor, p: float) -> Tensor:
    """The point of ball ∩ interval nearest to ``delta`` in the Euclidean norm."""
    inside = clip(delta, low, high)
    if p == math.inf:
        return clip(inside, -radius[:, None], radius[:, None])
    size, room = delta.abs(), torch.where(delta > 0, high, -low)
    move = _shorten(size, room, radius) if p == 2 else _soften(size, room, radius)
    return torch.where((norm(inside, p) <= radius)[:, None], inside, delta.sign() * move)


def _room(slope: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """How far each coordinate may go down its slope."""
    return torch.where(slope > 0, -low, high)


def _shorten(size: Tensor, room: Tensor, radius: Tensor) -> Tensor:
    """``min(t size, room)`` with L2 norm ``radius``; its square is piecewise linear in t squared."""
    t = reach(size.square(), room.square(), torch.ones_like(size), radius.square()).sqrt()
    return torch.minimum(size * t[:, None], room)


def reach(weight: Tensor, room: Tensor, value: Tensor, goal: Tensor, exact: bool = False) -> Tensor:
    """The t with ``sum value * min(t weight, room) = goal``, or a huge one when that is out of reach.

    The sum is concave and piecewise linear in t: Newton from t = 0 climbs to the root, never passes it,
    and is there after a few kinks. A GPU does not look whether it is there, which would make it wait, but
    stops after six unless asked to be ``exact``: the odd row then falls a little short.
    """
    idle, none = weight == 0, torch.zeros_like(weight[:1, :1])
    stop = (room / weight).masked_fill_(idle, 0)
    gain, most = value * weight, (value * room).masked_fill_(idle, 0)
    huge = torch.full_like(goal[:1], torch.finfo(goal.dtype).max ** 0.25)
    t = torch.zeros_like(goal)
    blind = weight.is_cuda and not exact
    for _ in range(_BLIND if blind else weight.shape[1] + 1):
        free = stop > t[:, None]
        slope = torch.where(free, gain, none).sum(1)
        stopped = torch.where(free, none, most).sum(1)
        new = torch.where(slope > 0, (goal - stopped) / slope, huge)
        before, t = t, torch.maximum(t, new)
        if not blind and bool((t <= before * (1 + 1e-6)).all()):
            break
    return t


def _fill(size: Tensor, room: Tensor, value: Tensor, goal: Tensor) -> Tensor:
    """Fill coordinates to their room, steepest first, until ``sum value * move = goal``: a greedy knapsack."""
    order = size.argsort(1, descending=True)
    room, value = room.gather(1, order), value.gather(1, order)
    idle = value == 0
    worth = (value * room).masked_fill_(idle, 0).cumsum(1)
    left = goal[:, None].repeat(1, worth.shape[1])
    left[:, 1:] = (left[:, 1:] - worth[:, :-1]).clamp_min_(0)
    move = torch.minimum(room, (left / value).masked_fill_(idle, 0))
    return torch.zeros_like(move).scatter_(1, order, move)


def _soften(size: Tensor, room: Tensor, radius: Tensor) -> Tensor:
    """``clip(size - t, 0, room)`` with L1 norm ``radius``; t by bisection."""
    low, high, none = torch.zeros_like(radius), size.amax(1), torch.zeros_like(size)
    for _ in range(24):
        t = (low + high) / 2
        above = torch.clamp(size - t[:, None], none, room).sum(1) > radius
        low, high = torch.where(above, t, low), torch.where(above, high, t)
    return torch.clamp(size - high[:, None], none, room)
