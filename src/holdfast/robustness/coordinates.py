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
_ADDED = 3  # the largest number of coordinates that a swap moves instead
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
        _learn(lanes, coordinate, trial, left & ~grouped, changed)
        lanes.group = torch.where(grouped, lanes.group * torch.where(changed, 1.3, 0.8), lanes.group)
        lanes.move(proposed, changed)


def _next(lanes: Lanes) -> tuple[Tensor, Tensor]:
    """Return the coordinate with the most to gain, ``[P]``, n for the whole move, and whether any is left, ``[P]``."""
    size = _sizes(lanes)
    gap = size - lanes.floor
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


def _learn(lanes: Lanes, coordinate: Tensor, trial: Tensor, left: Tensor, changed: Tensor) -> None:
    """Store what the answers say about the floors."""
    at = coordinate[:, None]
    failed, swapped = (left & ~changed)[:, None], (changed & ~left)[:, None]
    floor, tested = lanes.floor.gather(1, at), lanes.tested.gather(1, at)
    lanes.floor = lanes.floor.scatter(1, at, torch.where(failed, trial, floor)).masked_fill(swapped, 0)
    lanes.tested = lanes.tested.scatter(1, at, tested | failed) & ~swapped


def _drop(lanes: Lanes, seed: int, draw: int) -> Tensor:
    """Return the moves without a random group of coordinates."""
    moved = lanes.delta != 0
    numbers, place = lanes.number.unique(return_inverse=True)
    noise = torch.stack([normal(lanes.delta.shape[1], seed, 4096 * draw + one) for one in numbers.tolist()])
    noise = smooth(noise, lanes.rows.shape).to(lanes.delta)[place]
    dropped = _least(noise.masked_fill(~moved, math.inf), lanes.group.long())
    return lanes.delta.masked_fill(dropped, 0)


def _swap(lanes: Lanes, seed: int, draw: int) -> Tensor:
    """Return shorter moves in which some coordinates return to x and others move instead."""
    rows, n = lanes.rows, lanes.delta.shape[1]
    numbers, place = lanes.number.unique(return_inverse=True)
    drawn = [torch.rand(3 * n + 3, generator=generator(mixed(seed, 4096 * draw + one))) for one in numbers.tolist()]
    even = torch.stack(drawn).to(rows.x)[place]
    drop, take, spot, (how, share, many) = even[:, :n], even[:, n : 2 * n], even[:, 2 * n : 3 * n], even[:, 3 * n :].T
    moved = lanes.delta != 0
    dropped = _least(drop.masked_fill(~moved, 2), 1 + (many > _DROPPED).long()) & moved
    base = lanes.delta.masked_fill(dropped, 0)
    goal = lanes.length * (1 - _CUT * share.square() - 1e-3)
    low, high = (torch.maximum(rows.low, -lanes.length[:, None]), torch.minimum(rows.high, lanes.length[:, None]))
    fresh = low + (high - low) * spot
    fresh = fresh * _least(take.masked_fill(~rows.free | dropped, 2), 1 + (_ADDED * (1 - many)).long())
    other = _other(lanes)
    mixed_in = torch.where(take < 0.5, other, lanes.delta) - base
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
