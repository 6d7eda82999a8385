"""Rounds of a search from decisions that estimate the boundary's normal and turn the move towards it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from holdfast.draws import normal
from holdfast.models.model import Access
from holdfast.robustness.lanes import Lanes, allowed, euclidean, fitted, smooth, unit, values

_ANGLES = 5  # queries for the angle between the normal and its last estimate
_NEAR = 0.5  # the distance of the points that measure the angle, as a share of the distance of samples
_TURNS = 7  # queries for the turn of the move
_CUTS = 6  # queries along the ray
_BLOCKS = 4  # parts of the samples; the offset is corrected after each
_PULL = 0.3  # the share of the move's own direction in the estimate: at the nearest point they agree
_EVEN = 0.3  # the share of samples' squares that is the same for every coordinate
_SLACKS = (1e-4, 3e-3, 0.03)  # the nearest point of the estimated plane is tried so far behind it
_OVERHEAD = _ANGLES + len(_SLACKS) + _TURNS + _CUTS
LEAST_TURN = _OVERHEAD + 7  # queries of the shortest round that is useful
_EXPLORED = 1.15  # draws of a coordinate that cannot move where the normal points, beyond this size, are still tried


def round_cost(coordinates: int) -> int:
    """Return the queries of one round for each lane, for this many coordinates."""
    return samples_of(coordinates) + _OVERHEAD


def samples_of(coordinates: int) -> int:
    """Return the sampled points of one round."""
    return max(8, round(4 * math.sqrt(coordinates)))


def turn_round(lanes: Lanes, seed: int, draw: int, queries: int, share: float) -> None:
    """Estimate the normals, and turn the moves of all lanes towards them.

    Args:
        lanes: The lanes; changed in place.
        seed: For the samples.
        draw: The number of the round.
        queries: The queries for each lane, at least ``LEAST_TURN``.
        share: The distance of samples from the witness, as a share of its length.
    """
    if lanes.rows.model.access >= Access.SCORES:
        _measure_slope(lanes, seed, draw, queries - _OVERHEAD + _ANGLES, share)
    else:
        _vote(lanes, seed, draw, queries - _OVERHEAD, share)
    push = torch.linalg.vecdot(lanes.normal, lanes.delta).clamp_min(0)
    for slack in _SLACKS:
        rows = lanes.rows
        lanes.offer(lanes.norm.nearest(-lanes.normal, push * (1 + slack), rows.low, rows.high, exact=True))
    _turn(lanes)
    lanes.shorten(_CUTS)


def _samples(lanes: Lanes, seed: int, draw: int, count: int, share: float) -> Tensor:
    """Return directions ``[P, count, n]`` in which every coordinate can move, across the estimated normal."""
    rows, n = lanes.rows, lanes.delta.shape[1]
    numbers, place = lanes.number.unique(return_inverse=True)
    noise = torch.stack([normal(n * count, seed, 1000 * draw + one).view(n, count).T for one in numbers.tolist()])
    direction = (smooth(noise, rows.shape) if (draw // 2) % 2 else noise).to(rows.x)[place] * _scale(lanes)[:, None]
    reach = (share * euclidean(lanes.delta) / math.sqrt(n))[:, None]
    down, up = lanes.delta - rows.low < reach, rows.high - lanes.delta < reach
    outwards = (down & (lanes.normal < 0)) | (up & (lanes.normal > 0))
    direction = torch.where(down[:, None], direction.abs(), torch.where(up[:, None], -direction.abs(), direction))
    direction = direction.masked_fill(outwards[:, None] & (direction.abs() < _EXPLORED), 0)
    inside = lanes.normal * (rows.free & ~down & ~up)
    if rows.model.access < Access.SCORES:
        along = torch.linalg.vecdot(direction, lanes.normal[:, None])
        square = inside.square().sum(1).clamp_min(1e-30)
        direction = direction - (along / square[:, None])[..., None] * inside[:, None]
    return unit(direction)


def _scale(lanes: Lanes) -> Tensor:
    """Return how far each coordinate is sampled, ``[P, n]``: farther where the normal and the move are large."""
    free = lanes.rows.free
    energy = smooth(unit(lanes.normal).square() + unit(lanes.delta).square(), lanes.rows.shape) * free
    mean = energy.sum(1, keepdim=True) / free.sum(1, keepdim=True)
    return (_EVEN + (1 - _EVEN) * energy / mean.clamp_min(1e-30)).sqrt() * free


def _vote(lanes: Lanes, seed: int, draw: int, count: int, share: float) -> None:
    """Correct the normals by the decisions at points beside the witness."""
    rows = lanes.rows
    reach = share * euclidean(lanes.delta)
    lanes.normal = unit((1 - _PULL) * lanes.normal + _PULL * unit(lanes.delta))
    samples, found = _samples(lanes, seed, draw, count, share), torch.zeros_like(lanes.delta)
    for block in samples.split(math.ceil(count / _BLOCKS), 1):
        shift = lanes.delta + (lanes.offset * reach)[:, None] * lanes.normal
        step = allowed(rows, shift[:, None] + reach[:, None, None] * block) - lanes.delta[:, None]
        vote = -values(rows, lanes.delta[:, None] + step).sign()
        mean = vote.mean(1, keepdim=True)
        found = found + ((vote - mean)[..., None] * step).sum(1)
        quantile = math.sqrt(2) * (0.97 * mean[:, 0]).erfinv()
        lanes.offset = (lanes.offset - 0.8 * quantile / math.sqrt(lanes.delta.shape[1])).clamp(-1, 1)
    across = unit(found - torch.linalg.vecdot(found, lanes.normal)[:, None] * lanes.normal)
    low, high = torch.zeros_like(reach), torch.full_like(reach, math.pi / 2)
    for _ in range(_ANGLES):
        angle = (low + high) / 2
        point = angle.cos()[:, None] * across - angle.sin()[:, None] * lanes.normal
        changed = values(rows, allowed(rows, lanes.delta + _NEAR * reach[:, None] * point)[:, None])[:, 0] < 0
        low, high = torch.where(changed, angle, low), torch.where(changed, high, angle)
    angle = ((low + high) / 2)[:, None]
    lanes.normal = unit(angle.cos() * lanes.normal + angle.sin() * across)


def _measure_slope(lanes: Lanes, seed: int, draw: int, count: int, share: float) -> None:
    """Correct the slopes by the margins at points beside the witness."""
    rows, count = lanes.rows, min(count - 1, lanes.delta.shape[1])
    reach = (share / 5 * euclidean(lanes.delta))[:, None, None]
    step = (
        allowed(rows, lanes.delta[:, None] + reach * _samples(lanes, seed, draw, count, share)) - lanes.delta[:, None]
    )
    margin = values(rows, torch.cat([lanes.delta[:, None], lanes.delta[:, None] + step], 1))
    rest = margin[:, :1] - margin[:, 1:] - torch.linalg.vecdot(step, lanes.normal[:, None])
    lanes.normal = lanes.normal + fitted(step, rest[..., None])[:, 0]


def _turn(lanes: Lanes) -> None:
    """Turn the moves towards the normals and shorten them, along the curve that is the semicircle over x in L2."""
    rows, whole, length = lanes.rows, lanes.delta, lanes.length
    normal = torch.where(lanes.normal < 0, lanes.normal * (whole > rows.low), lanes.normal * (whole < rows.high))
    ray = unit(whole)
    rest = normal - torch.linalg.vecdot(normal, ray)[:, None] * ray
    # Where the two agree, the rest is rounding and no direction.
    across = rest / torch.maximum(euclidean(rest), 1e-4 * euclidean(normal)).clamp_min(1e-30)[:, None]
    across = across * euclidean(whole)[:, None]
    low, high = torch.zeros_like(length), torch.full_like(length, math.pi / 2)
    angle = lanes.angle
    for _ in range(_TURNS):
        moved = whole + angle.tan()[:, None] * across
        changed = lanes.offer(lanes.norm.project(moved, length * angle.cos(), rows.low, rows.high))
        low, high = torch.where(changed, angle, low), torch.where(changed, high, angle)
        angle = torch.minimum((low + high) / 2, torch.where(low > 0, 2 * low, high / 2))
    lanes.angle = torch.where(low > 0, low, high).clamp(0.01, 1.2)
