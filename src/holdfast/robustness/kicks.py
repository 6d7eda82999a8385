"""Kicks: lanes that gain no more go on from another witness near their shortest one."""

from __future__ import annotations

import torch

from holdfast.draws import normal
from holdfast.robustness.lanes import Lanes, allowed, euclidean, smooth, unit, values

_CUTS = 6  # queries along the ray
_NEAR, _FAR = 0.3, 1.7
_DROPS = 0.5  # the share of proposals that give up a coordinate


def kick(lanes: Lanes, seed: int, draw: int, queries: int) -> None:
    """Restart each lane from a proposal near its shortest witness that changes the decision.

    Args:
        lanes: The lanes; changed in place.
        seed: For the proposals.
        draw: The number of the round.
        queries: The queries for each lane.
    """
    rows, n, count = lanes.rows, lanes.delta.shape[1], queries - _CUTS
    numbers, place = lanes.number.unique(return_inverse=True)
    width = 2 * n + 3
    drawn = [normal(width * count, seed, 4096 * draw + one).view(width, count).T for one in numbers.tolist()]
    noise = torch.stack(drawn).to(rows.x)
    even = (noise[..., n:] / 2**0.5).erf().add(1).div(2)[place]
    size, share, drop = even[..., n:].unbind(2)
    step = (smooth(noise[..., :n], rows.shape)[place] * rows.free[:, None]) * (even[..., :n] < share[..., None])
    base = lanes.best[:, None].expand(-1, count, -1)
    chosen = even[..., :n].masked_fill((base == 0), -1).argmax(2, keepdim=True)
    base = torch.where((drop < _DROPS)[..., None], base.scatter(2, chosen, 0), base)
    length = ((_NEAR + _FAR * size) * euclidean(lanes.best)[:, None])[..., None]
    points = allowed(rows, base + length * unit(step))
    changed = values(rows, points) < 0
    first = changed.to(torch.uint8).argmax(1)
    lanes.restart(points[torch.arange(len(lanes)), first], changed.any(1))
    lanes.shorten(_CUTS)
