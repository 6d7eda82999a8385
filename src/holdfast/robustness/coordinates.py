"""Rounds of a search from decisions that move single coordinates back towards x, drop them and swap them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from holdfast.draws import generator, mixed, normal
from holdfast.robustness.lanes import Lanes, allowed, smooth, values

_CLOSE = 1e-3  # a coordinate is settled when its floor is so near, as a share
_WHOLE = 0.97  # the first size that is tried for the whole move, as a share
_DROPPED = 0.6  # a swap with a draw beyond this drops two coordinates, otherwise one
_LOWERED = 0.5  # the share of swaps that lower these coordinates instead of dropping them
_ADDED = 3  # the largest number of coordinates that a swap moves instead
_MANY = 0.3  # the share of swaps that move up to all coordinates instead
_MIXED = 0.3  # the share of swaps that take coordinates of another search of the row
_CUT = 0.3  # the largest share of the length that a swap saves
_AMPLITUDES = 10  # halvings of the amplitude of a swap


def coordinate_round(lanes: Lanes, seed: int, draw: int, queries: int) -> None:
    """Shorten the moves coordinate by coordinate; swap coordinates where nothing is left to shorten.

    Args:
        lanes: The lanes; changed in place.
        seed: For the swaps.
        draw: The number of the round.
        queries: The queries for each lane.
    """
    for query in range(queries):
        coordinate, left = _next(lanes)
        trial = _trial(lanes, coordinate)
        fall = _fall(lanes, coordinate, trial)
        swap = _swap(lanes, seed, draw * 1000 + query)
        grouped = lanes.group >= 2
        drop = _drop(lanes, seed, draw * 1000 + query)
        proposed = allowed(lanes.rows, torch.where(grouped[:, None], drop, torch.where(left[:, None], fall, swap)))
        shorter = lanes.norm.length(proposed) <= lanes.length
        changed = (values(lanes.rows, proposed[:, None])[:, 0] < 0) & shorter
        _learn(lanes, coordinate, trial, left & ~grouped, changed, proposed)
        lanes.group = torch.where(grouped, lanes.group * torch.where(changed, 1.3, 0.8), lanes.group)
        lanes.move(proposed, changed)


def _next(lanes: Lanes) -> tuple[Tensor, Tensor]:
    """Return the coordinate with the most to gain, ``[P]``, n for the whole move, and whether any is left, ``[P]``."""
    size = _sizes(lanes)
    gap = torch.where(lanes.tested, size - lanes.floor, size)
    saving = torch.cat([lanes.norm.savings(lanes.delta), lanes.length[:, None]], 1)
    best, coordinate = (gap / size.clamp_min(1e-30) * saving).max(1)
    return coordinate, best > _CLOSE * lanes.length


def _sizes(lanes: Lanes) -> Tensor:
    return torch.cat([lanes.delta.abs(), lanes.length[:, None]], 1)


def _trial(lanes: Lanes, coordinate: Tensor) -> Tensor:
    """Return the size to try for this coordinate, ``[P, 1]``: 0 at first, then halfway to the floor."""
    at = coordinate[:, None]
    size, floor = _sizes(lanes).gather(1, at), lanes.floor.gather(1, at)
    first = torch.where(at == lanes.delta.shape[1], _WHOLE * size, torch.zeros_like(size))
    return torch.where(lanes.tested.gather(1, at), (size + floor) / 2, first)


def _fall(lanes: Lanes, coordinate: Tensor, trial: Tensor) -> Tensor:
    """Return the moves with this coordinate, or the whole move, at the size to try."""
    rows, n = lanes.rows, lanes.delta.shape[1]
    one = coordinate[:, None].clamp_max(n - 1)
    single = lanes.delta.scatter(1, one, lanes.delta.gather(1, one).sign() * trial)
    whole = lanes.norm.project(lanes.delta, trial[:, 0], rows.low, rows.high)
    return torch.where((coordinate == n)[:, None], whole, single)


def _learn(lanes: Lanes, coordinate: Tensor, trial: Tensor, left: Tensor, changed: Tensor, proposed: Tensor) -> None:
    """Store what the answers say about the floors.

    Where a swap succeeds, the coordinates that it left as they are keep their floors: steps of a tree stay where they
    are. Only whether they can be dropped is tested again.
    """
    at = coordinate[:, None]
    failed, swapped = (left & ~changed)[:, None], (changed & ~left)[:, None]
    floor, tested = lanes.floor.gather(1, at), lanes.tested.gather(1, at)
    lanes.floor = lanes.floor.scatter(1, at, torch.where(failed, torch.maximum(trial, floor), floor))
    lanes.tested = lanes.tested.scatter(1, at, tested | failed) & ~swapped
    other = torch.cat([proposed != lanes.delta, torch.ones_like(swapped)], 1)
    lanes.floor = lanes.floor.masked_fill(swapped & other, 0)


def _drop(lanes: Lanes, seed: int, draw: int) -> Tensor:
    """Return the moves without a random group of coordinates."""
    moved = lanes.delta != 0
    numbers, place = lanes.number.unique(return_inverse=True)
    noise = torch.stack([normal(lanes.delta.shape[1], seed, 4096 * draw + one) for one in numbers.tolist()])
    noise = smooth(noise, lanes.rows.shape).to(lanes.delta)[place]
    dropped = _least(noise.masked_fill(~moved, math.inf), lanes.group.long())
    return lanes.delta.masked_fill(dropped, 0)


def _swap(lanes: Lanes, seed: int, draw: int) -> Tensor:
    """Return shorter moves in which some coordinates return towards x and others move instead.

    The longer the move of a coordinate, the more often it returns: several short moves often replace a long one.
    """
    rows, n = lanes.rows, lanes.delta.shape[1]
    numbers, place = lanes.number.unique(return_inverse=True)
    drawn = [torch.rand(3 * n + 6, generator=generator(mixed(seed, 4096 * draw + one))) for one in numbers.tolist()]
    even = torch.stack(drawn).to(rows.x)[place]
    (drop, take, spot), rest = even[:, : 3 * n].view(-1, 3, n).unbind(1), even[:, 3 * n :]
    how, share, many, lowered, kept, wide = rest.T
    size = lanes.delta.abs()
    # The least of these numbers belongs to a coordinate with a probability that is proportional to its move.
    order = (-drop.clamp_min(1e-9).log() / size.clamp_min(1e-30)).masked_fill(size == 0, math.inf)
    dropped = _least(order, 1 + (many > _DROPPED).long()) & (size > 0)
    base = torch.where(dropped, torch.where(lowered < _LOWERED, kept, 0)[:, None] * lanes.delta, lanes.delta)
    goal = lanes.length * (1 - _CUT * share.square() - 1e-3)
    low, high = (torch.maximum(rows.low, -lanes.length[:, None]), torch.minimum(rows.high, lanes.length[:, None]))
    added = torch.where(wide < _MANY, n * share, _ADDED * (1 - many)).long() + 1
    fresh = low + (high - low) * spot
    fresh = fresh * _least(take.masked_fill(~rows.free | dropped, 2), added)
    mixed_in = torch.where(take < 0.5, _other(lanes), lanes.delta) - base
    fresh = torch.where((how < _MIXED)[:, None], mixed_in, torch.where(fresh != 0, fresh - base, fresh))
    least, most = torch.zeros_like(share), torch.ones_like(share)
    for _ in range(_AMPLITUDES):
        middle = (least + most) / 2
        fits = lanes.norm.length(base + middle[:, None] * fresh) <= goal
        least, most = torch.where(fits, middle, least), torch.where(fits, most, middle)
    return base + least[:, None] * fresh


def _least(value: Tensor, count: Tensor) -> Tensor:
    """Return the ``count [P]`` least values of each lane, bool ``[P, n]``."""
    rank = value.argsort(1).argsort(1)
    return rank < count[:, None]


def _other(lanes: Lanes) -> Tensor:
    """Return the witness of the next lane of the same row, ``[P, n]``."""
    index = torch.arange(len(lanes), device=lanes.row.device)
    same = lanes.row[1:] == lanes.row[:-1]
    following = torch.cat([torch.where(same, index[1:], index[:-1]), index[-1:]])
    first = torch.searchsorted(lanes.row, lanes.row)
    return lanes.delta[torch.where(following == index, first, following)]
