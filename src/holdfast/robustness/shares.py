"""How much each feature contributes to reaching a linearised boundary."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.features import Features
from holdfast.robustness.steps import multiplier


@dataclass(frozen=True, eq=False)
class LinearBoundary:
    """The linearised boundaries of R rows and the nearest point of each.

    Attributes:
        slope: The gradient of the margin, ``[R, n]``.
        drop: By how much the margin must fall, ``[R]``.
        move: The smallest move that lets it fall by ``drop``, or the farthest that the interval allows, ``[R, n]``.
        limit: How far each coordinate may move against its slope, inside mask and box, ``[R, n]``.
        box_limit: The same if the mask allowed every coordinate, ``[R, n]``.
        radius: The norm of ``move``, extrapolated where the boundary is out of reach, ``[R]``.
        features: The features, which sum coordinates; their ids are shared or those of each row.
        shape: The shape of one input.
    """

    slope: Tensor
    drop: Tensor
    move: Tensor
    limit: Tensor
    box_limit: Tensor
    radius: Tensor
    features: Features
    shape: tuple[int, ...]

    @property
    def size(self) -> Tensor:
        """Return the size of the slope, ``[R, n]``."""
        return self.slope.abs()

    def pool(self, values: Tensor) -> Tensor:
        """Sum coordinates ``[R, n]`` to features ``[R, d]``."""
        return self.features.pool(values.view(-1, *self.shape))

    def spread(self, values: Tensor) -> Tensor:
        """Give each coordinate ``[R, n]`` the value of its feature ``[R, d]``."""
        return self.features.spread(values).expand(-1, *self.shape).flatten(1)

    def potential(self) -> Tensor:
        """Return the share of each feature in the largest drop that the box allows, ``[R, d]``."""
        size = self.size
        added = self.pool(size * torch.where(torch.isfinite(self.box_limit), self.box_limit, size))
        return added / added.sum(1, keepdim=True).clamp_min(1e-12)

    def moves_at_price(self, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the multiplier t of the step, the moves at this price, and the slope that can still give way.

        Args:
            weight: The move of each coordinate for a unit of t, ``[R, n]``.

        Returns:
            t ``[R, 1]``; the moves ``[R, n]`` that every coordinate, free or not, would make at the price t; and the
            summed slope ``[R]`` of the free coordinates that are not at their limit.
        """
        size = self.size
        t = multiplier(weight, self.limit, size, self.drop)[:, None]
        return t, torch.minimum(t * weight, self.box_limit), ((t * weight < self.limit) * size).sum(1)


def knapsack_shares(boundary: LinearBoundary) -> Tensor:
    """Return by which share of the radius each feature changes it in L1, ``[R, d]``.

    L1 moves the steepest coordinates first. Without a feature that moves, the next steepest coordinates replace it.
    With a feature that did not move, the least steep coordinates that moved are no longer needed.
    """
    size, move, drop, radius = boundary.size, boundary.move.abs(), boundary.drop, boundary.radius
    alone = drop[:, None] / size.clamp_min(1e-12)  # the move of one coordinate that makes the whole drop
    mean = radius / drop.clamp_min(1e-12)
    used = boundary.pool(move)
    spare = torch.minimum(boundary.limit - move, alone)
    lost = _replacement_length(boundary, size, spare, boundary.pool(size * move), mean) - used
    order = size.argsort(1)
    gentler = torch.zeros_like(size).scatter(1, order, (size * move).gather(1, order).cumsum(1))
    gain = torch.minimum(boundary.box_limit, gentler / size.clamp_min(1e-12))  # replaces the less steep coordinates
    goal, length = boundary.pool(size * gain), boundary.pool(gain)
    part = (drop[:, None] / goal.clamp_min(1e-12)).clamp_max(1)  # a group together adds no more than the drop
    spared = _replacement_length(boundary, -size, move, part * goal, mean) - part * length
    return torch.where(used > 0, lost, spared).clamp_min(0) / radius[:, None]


def _replacement_length(boundary: LinearBoundary, size: Tensor, limit: Tensor, goal: Tensor, mean: Tensor) -> Tensor:
    """Return the length ``[R, d]`` of moves up to ``limit`` that drop by ``goal`` without the feature itself.

    Coordinates move in the order of ``size``, largest first; negative sizes reverse the order. A drop out of reach
    costs twice the ``mean`` price.
    """
    order = size.argsort(dim=1, descending=True)
    steep, worth = size.gather(1, order), (size.abs() * limit).gather(1, order)
    gains, lengths = worth.cumsum(1), limit.gather(1, order).cumsum(1)
    own_gain = own_length = torch.zeros_like(goal)
    for _ in range(3):  # the feature's own moves do not count, so that the last coordinate lies farther down the order
        wanted = goal + own_gain
        last = torch.searchsorted(gains, wanted.contiguous()).clamp_max(size.shape[1] - 1)
        ahead = limit * (size >= boundary.spread(steep.gather(1, last)))
        own_length, own_gain = boundary.pool(ahead), boundary.pool(ahead * size.abs())
    wanted = goal + own_gain
    last = torch.searchsorted(gains, wanted.contiguous()).clamp_max(size.shape[1] - 1)
    reached, price = gains.gather(1, last), steep.gather(1, last).abs().clamp_min(1e-12)
    short = (wanted - reached).clamp_min(0)
    return lengths.gather(1, last) - (reached - wanted).clamp_min(0) / price + 2 * short * mean[:, None] - own_length
