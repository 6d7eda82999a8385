"""The norms that radii are measured in: L1, L2 and Linf, with the steps that each norm makes.

A norm is one class. Its steps combine the closed-form primitives of ``steps.py``; no other module branches on p.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.robustness.shares import LinearBoundary, knapsack_shares
from holdfast.robustness.steps import clip, descent_limit, fill_steepest, multiplier, scale_to_length, soft_threshold

_TANGENT = 0.9  # a loss of more than this share of the slope costs as the tangent at it says


class Norm(ABC):
    """A norm of flat moves ``[R, n]``.

    Attributes:
        p: 1, 2 or infinity.
        stride: The first step of DDN as a share of the radius.
    """

    p: ClassVar[float]
    stride: ClassVar[float]

    @final
    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @final
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    @final
    def __hash__(self) -> int:
        return hash(type(self))

    @final
    def length(self, delta: Tensor) -> Tensor:
        """Return ``||delta||_p`` of each row, ``[R]``."""
        length: Tensor = torch.linalg.vector_norm(delta.flatten(1), self.p, dim=1)
        return length

    @property
    @abstractmethod
    def dual(self) -> Norm:
        """The dual norm, which measures slopes: 1/p + 1/q = 1."""

    @abstractmethod
    def nearest(self, slope: Tensor, drop: Tensor, low: Tensor, high: Tensor, *, exact: bool = False) -> Tensor:
        """Return the nearest point of a linearised boundary: argmin ``||delta||_p`` with ``<slope, delta> <= -drop``.

        Args:
            slope: ``[R, n]``.
            drop: ``[R]``, not negative.
            low: The smallest allowed move of each coordinate, ``[R, n]``, at most 0.
            high: The largest, at least 0.
            exact: Compute the last digits on a GPU too, which then has to wait; see ``steps.multiplier``.

        Returns:
            The move ``[R, n]``; the farthest allowed one where the drop is out of reach.
        """

    @abstractmethod
    def farthest(self, slope: Tensor, radius: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return the steepest move inside a ball: argmin ``<slope, delta>`` with ``||delta||_p <= radius``.

        Args:
            slope: ``[R, n]``.
            radius: ``[R]``.
            low: The smallest allowed move of each coordinate, ``[R, n]``.
            high: The largest.

        Returns:
            The move ``[R, n]``.
        """

    @abstractmethod
    def project(self, delta: Tensor, radius: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return the point of ball and interval that is nearest to ``delta`` in the Euclidean norm.

        Args:
            delta: ``[R, n]``.
            radius: The radius of the ball in this norm, ``[R]``.
            low: The smallest allowed move of each coordinate, ``[R, n]``.
            high: The largest.

        Returns:
            The move ``[R, n]``.
        """

    @abstractmethod
    def savings(self, delta: Tensor) -> Tensor:
        """Return how much shorter moves ``[R, n]`` are without each of their coordinates, ``[R, n]``."""

    @abstractmethod
    def ddn_step(self, slope: Tensor, delta: Tensor, radius: Tensor) -> Tensor:
        """Return a step along the slope, about as long as the current move ``delta``; DDN goes against it."""

    @abstractmethod
    def pgd_step(self, slope: Tensor, delta: Tensor, length: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return a step of this ``length [R]`` against the slope, starting at ``delta`` inside the interval."""

    @abstractmethod
    def shares(self, boundary: LinearBoundary) -> tuple[Tensor, Tensor]:
        """Return the share of each feature in a linearised boundary, and where the shares are meaningful.

        Every coordinate, free or not, would move ``u`` at the current price t of a drop. In L2, losing it saves
        ``u^2`` of the squared radius and costs ``2 t |w| u`` for the others to replace it: ``t^2 w^2`` in all where
        the box is not active. In Linf and L1 the costs are linear. Where every free coordinate is at its limit, none
        can replace another and there is no price.

        Args:
            boundary: The linearised boundaries of R rows.

        Returns:
            Shares ``[R, d]``, not negative, and bool ``[R]``: False where there is no price.
        """

    @abstractmethod
    def relative_effects(self, shares: Tensor, free: Tensor) -> Tensor:
        """Return the relative change of the radius when a feature is held or freed.

        With ``g(S) = m / ||w_S||_q``, a share s of the slope changes g by a factor ``(1 - s)^-a`` when it is lost and
        ``(1 + s)^-a`` when it is added: a = 1/2 in L2, a = 1 in Linf. L1 shares are relative changes already.

        Args:
            shares: What ``shares`` returned, ``[R, d]``.
            free: Bool ``[R, d]``: True where the feature may move, so that the effect is that of holding it.

        Returns:
            The sizes of the relative changes, ``[R, d]``.
        """


@final
class L1(Norm):
    """The sum of absolute values: moves few coordinates, the steepest first."""

    p = 1.0
    stride = 1.0  # the projection removes most of a step

    @property
    def dual(self) -> Norm:
        return Linf()

    def nearest(self, slope: Tensor, drop: Tensor, low: Tensor, high: Tensor, *, exact: bool = False) -> Tensor:
        size = slope.abs()
        return -slope.sign() * fill_steepest(size, descent_limit(slope, low, high), size, drop)

    def farthest(self, slope: Tensor, radius: Tensor, low: Tensor, high: Tensor) -> Tensor:
        size = slope.abs()
        limit = descent_limit(slope, low, high).masked_fill(size == 0, 0)
        return -slope.sign() * fill_steepest(size, limit, torch.ones_like(size), radius)

    def project(self, delta: Tensor, radius: Tensor, low: Tensor, high: Tensor) -> Tensor:
        inside = clip(delta, low, high)
        move = soft_threshold(delta.abs(), torch.where(delta > 0, high, -low), radius)
        return torch.where((self.length(inside) <= radius)[:, None], inside, delta.sign() * move)

    def savings(self, delta: Tensor) -> Tensor:
        return delta.abs()

    def ddn_step(self, slope: Tensor, delta: Tensor, radius: Tensor) -> Tensor:
        return _as_long_as(delta, slope)

    def pgd_step(self, slope: Tensor, delta: Tensor, length: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return self.farthest(slope, length, low - delta, high - delta)

    def shares(self, boundary: LinearBoundary) -> tuple[Tensor, Tensor]:
        return knapsack_shares(boundary), torch.ones_like(boundary.drop, dtype=torch.bool)

    def relative_effects(self, shares: Tensor, free: Tensor) -> Tensor:
        return shares


@final
class L2(Norm):
    """The Euclidean norm."""

    p = 2.0
    stride = 0.3

    @property
    def dual(self) -> Norm:
        return self

    def nearest(self, slope: Tensor, drop: Tensor, low: Tensor, high: Tensor, *, exact: bool = False) -> Tensor:
        size, limit = slope.abs(), descent_limit(slope, low, high)
        t = multiplier(size, limit, size, drop, exact)
        return -slope.sign() * torch.minimum(size * t[:, None], limit)

    def farthest(self, slope: Tensor, radius: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return -slope.sign() * scale_to_length(slope.abs(), descent_limit(slope, low, high), radius)

    def project(self, delta: Tensor, radius: Tensor, low: Tensor, high: Tensor) -> Tensor:
        inside = clip(delta, low, high)
        move = scale_to_length(delta.abs(), torch.where(delta > 0, high, -low), radius)
        return torch.where((self.length(inside) <= radius)[:, None], inside, delta.sign() * move)

    def savings(self, delta: Tensor) -> Tensor:
        length = self.length(delta)[:, None]
        return length - (length.square() - delta.square()).clamp_min(0).sqrt()

    def ddn_step(self, slope: Tensor, delta: Tensor, radius: Tensor) -> Tensor:
        return _as_long_as(delta, slope)

    def pgd_step(self, slope: Tensor, delta: Tensor, length: Tensor, low: Tensor, high: Tensor) -> Tensor:
        slope = slope * (low < high)
        return -length[:, None] * (slope / self.length(slope).clamp_min(1e-30)[:, None])

    def shares(self, boundary: LinearBoundary) -> tuple[Tensor, Tensor]:
        size = boundary.size
        t, move, slack = boundary.moves_at_price(size)
        squared = self.length(boundary.move).square().clamp_min(1e-24)[:, None]
        return boundary.pool((2 * t * size * move - move.square()) / squared), slack > 0

    def relative_effects(self, shares: Tensor, free: Tensor) -> Tensor:
        return _power_effects(shares, free, 0.5)


@final
class Linf(Norm):
    """The largest absolute value: moves every coordinate by the same amount where the interval allows it."""

    p = math.inf
    stride = 0.3

    @property
    def dual(self) -> Norm:
        return L1()

    def nearest(self, slope: Tensor, drop: Tensor, low: Tensor, high: Tensor, *, exact: bool = False) -> Tensor:
        size, limit = slope.abs(), descent_limit(slope, low, high)
        weight = (size > 0).to(size)
        t = multiplier(weight, limit, size, drop, exact)
        return -slope.sign() * torch.minimum(weight * t[:, None], limit)

    def farthest(self, slope: Tensor, radius: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return -slope.sign() * torch.minimum(radius[:, None], descent_limit(slope, low, high))

    def project(self, delta: Tensor, radius: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return clip(clip(delta, low, high), -radius[:, None], radius[:, None])

    def savings(self, delta: Tensor) -> Tensor:
        size = delta.abs()
        largest = size.topk(min(2, size.shape[1]), dim=1).values
        return (size - largest[:, -1:]).clamp_min(0) if size.shape[1] > 1 else size

    def ddn_step(self, slope: Tensor, delta: Tensor, radius: Tensor) -> Tensor:
        return slope.sign() * radius[:, None]

    def pgd_step(self, slope: Tensor, delta: Tensor, length: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return -length[:, None] * (slope * (low < high)).sign()

    def shares(self, boundary: LinearBoundary) -> tuple[Tensor, Tensor]:
        size = boundary.size
        t, move, slack = boundary.moves_at_price((size > 0).to(size))
        return boundary.pool(size * move / (t * slack[:, None])), slack > 0

    def relative_effects(self, shares: Tensor, free: Tensor) -> Tensor:
        return _power_effects(shares, free, 1.0)


def norm_of(p: Any) -> Norm:
    """Return the norm with this p.

    Args:
        p: 1, 2 or infinity.

    Returns:
        The norm.

    Raises:
        HoldfastError: p is another number, or no number.
    """
    for norm in (L1(), L2(), Linf()):
        if isinstance(p, Real) and p == norm.p:
            return norm
    raise HoldfastError(f"p must be 1, 2 or inf, got {p!r}.")


def _as_long_as(delta: Tensor, slope: Tensor) -> Tensor:
    """Return the slope scaled to the Euclidean length of ``delta``."""
    smallest = torch.finfo(slope.dtype).tiny
    return slope * (L2().length(delta) / L2().length(slope).clamp_min(smallest))[:, None]


def _power_effects(shares: Tensor, free: Tensor, power: float) -> Tensor:
    """Return ``(1 - s)^-power - 1`` where a feature is free and ``1 - (1 + s)^-power`` where it is not."""
    near = shares.clamp_max(_TANGENT)
    steep = power * (1 - _TANGENT) ** (-power - 1)
    if_held = (1 - near) ** -power - 1 + steep * (shares - near)
    return torch.where(free, if_held, 1 - (1 + shares) ** -power)
