"""The domain of inputs: which points inside the bounds a model can be asked about, such as whole numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.settings import Positive, read_setting
from holdfast.tensors import read_tensor

HOT = sqrt(0.5)
"""The value of a chosen category: changing the category moves two coordinates, by a length of 1 in L2."""
_NO_GROUP = -1
_ROUNDING = 4  # steps of the precision of a point by which it may differ from an allowed one


@dataclass(frozen=True, eq=False)
class Domain:
    """Which points ``[n]`` are inputs: numbers on a grid, one category of several, numbers that may only grow.

    >>> domain = Domain(torch.tensor([0.5, 0, 0]), groups=(torch.tensor([1, 2]),), hot=1.0)
    >>> origin = torch.tensor([[1.0, 1.0, 0.0]])
    >>> domain.nearest(torch.tensor([[1.3, 0.4, 0.6]]), origin)
    tensor([[1.5000, 0.0000, 1.0000]])

    Bounds are kept elsewhere. If they lie on the grid, a point inside them has its nearest allowed point inside, too.

    Attributes:
        step: ``[n]``: allowed values are multiples of it; 0: all numbers. Double precision is kept for points of less.
        groups: The coordinates of each categorical feature. One of them is ``hot``, the others are 0.
        hot: The value of the coordinate of the chosen category.
        rising: Bool ``[n]``: coordinates that may only be as large as in the original input, or larger. None: no one.
        falling: Bool ``[n]``: those that may only be as small, or smaller. None: no one.
    """

    step: Tensor
    groups: tuple[Tensor, ...] = ()
    hot: float = HOT
    rising: Tensor | None = None
    falling: Tensor | None = None

    def __post_init__(self) -> None:
        step = read_tensor(self.step, "step", "numbers >= 0, one for each coordinate")
        step = step if step.is_floating_point() else step.double()
        if step.ndim != 1 or not len(step) or not bool((torch.isfinite(step) & (step >= 0)).all()):
            raise HoldfastError(f"step must be finite numbers >= 0 of shape [n], got shape {tuple(step.shape)}.")
        rising, falling = (self._flags(name, step) for name in ("rising", "falling"))
        if bool((rising & falling).any()):
            both = int((rising & falling).nonzero()[0])
            raise HoldfastError(f"coordinate {both} may neither rise nor fall: leave it out of every subset instead.")
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "hot", read_setting(self.hot, Positive, "hot"))
        object.__setattr__(self, "rising", rising)
        object.__setattr__(self, "falling", falling)
        object.__setattr__(self, "groups", tuple(self._group(one, step) for one in self.groups))
        object.__setattr__(self, "_owner", self._owners(step, (rising | falling) | (step > 0)))

    def _flags(self, name: str, step: Tensor) -> Tensor:
        given: Any = getattr(self, name)
        if given is None:
            return torch.zeros(len(step), dtype=torch.bool, device=step.device)
        flags = read_tensor(given, name, f"bool [{len(step)}]")
        if flags.dtype != torch.bool or flags.shape != step.shape:
            raise HoldfastError(f"{name} must be bool [{len(step)}], got {flags.dtype} of {tuple(flags.shape)}.")
        return flags.to(step.device)

    @staticmethod
    def _group(given: Any, step: Tensor) -> Tensor:
        group = read_tensor(given, "a group", "the numbers of its coordinates")
        whole = not group.is_floating_point() and group.dtype != torch.bool and group.ndim == 1
        if not whole or len(group) < 2 or not bool(((group >= 0) & (group < len(step))).all()):
            raise HoldfastError(
                f"a group must be two or more coordinates from 0 to {len(step) - 1}, got {group.tolist()}."
            )
        return group.long().to(step.device)

    def _owners(self, step: Tensor, other: Tensor) -> Tensor:
        """Return the number of the group of each coordinate, ``[n]``."""
        owner = torch.full((len(step),), _NO_GROUP, device=step.device)
        members = torch.cat([*self.groups, owner.new_zeros(0)])
        if len(members.unique()) != len(members) or bool(other[members].any()):
            raise HoldfastError("a coordinate of a group must be in one group, without a step, rising or falling.")
        for number, group in enumerate(self.groups):
            owner[group] = number
        return owner

    # ------------------------------------------------------------------ using a domain

    def __len__(self) -> int:
        return len(self.step)

    def to(self, device: torch.device | str) -> Domain:
        """Return this domain on a device."""
        if torch.device(device) == self.step.device:
            return self
        groups = tuple(group.to(device) for group in self.groups)
        rising, falling = (None if one is None else one.to(device) for one in (self.rising, self.falling))
        return replace(self, step=self.step.to(device), groups=groups, rising=rising, falling=falling)

    @property
    def is_everything(self) -> bool:
        """Whether every point is an input, so that nothing has to be rounded."""
        assert self.rising is not None
        assert self.falling is not None
        return not self.groups and not bool((self.rising | self.falling | (self.step > 0)).any())

    def nearest(self, points: Tensor, origin: Tensor) -> Tensor:
        """Round points to the nearest inputs.

        In a group the largest coordinate wins. If several are as large, that of the origin does, or else the first.

        Args:
            points: ``[R, n]``, on the device of the domain.
            origin: The original inputs ``[R, n]``; they are in the domain.

        Returns:
            Inputs ``[R, n]`` in the precision of ``points``.

        Raises:
            HoldfastError: The shapes do not fit.
        """
        points, origin = self._read(points, origin)
        wide = torch.promote_types(points.dtype, self.step.dtype)
        eps = max(torch.finfo(one.dtype).eps for one in (points, origin, self.step))
        near = self._on_grid(points.to(wide), origin.to(wide), self.step.to(wide), _ROUNDING * eps).to(points.dtype)
        return self._one_of_each(near, origin.to(near)) if self.groups else near

    def contains(self, points: Tensor, origin: Tensor) -> Tensor:
        """Return whether points are inputs, up to rounding of their precision.

        Args:
            points: ``[R, n]``, on the device of the domain.
            origin: The original inputs ``[R, n]``; they are in the domain.

        Returns:
            Bool ``[R]``.

        Raises:
            HoldfastError: The shapes do not fit.
        """
        points, origin = self._read(points, origin)
        near = self.nearest(points, origin)
        # A point is often computed as origin + move, so its error is that of the larger of them.
        size = torch.maximum(points.abs(), origin.to(points).abs())
        return ((points - near).abs() <= _ROUNDING * torch.finfo(points.dtype).eps * size).all(1)

    def _read(self, points: Any, origin: Any) -> tuple[Tensor, Tensor]:
        """Return points and their origin as tensors; refuse other shapes, types and devices."""
        n, device = len(self), self.step.device
        points = read_tensor(points, "points", f"floating-point numbers [R, {n}]")
        origin = read_tensor(origin, "their origin", f"floating-point numbers [R, {n}]")
        if points.ndim != 2 or points.shape[1] != n or origin.shape != points.shape:
            shapes = f"{tuple(points.shape)} and {tuple(origin.shape)}"
            raise HoldfastError(f"points and their origin must be [R, {n}], got {shapes}.")
        if not points.is_floating_point() or not origin.is_floating_point():
            raise HoldfastError(f"points and their origin must be floating point, got {points.dtype}, {origin.dtype}.")
        if points.device != device or origin.device != device:
            raise HoldfastError(
                f"the domain is on {device}, its points on {points.device}: use domain.to({str(points.device)!r})."
            )
        return points, origin

    def _on_grid(self, points: Tensor, origin: Tensor, step: Tensor, precision: float) -> Tensor:
        """Round to multiples of the step, no lower than the origin where values rise, no higher where they fall."""
        assert self.rising is not None
        assert self.falling is not None
        gridded = step > 0
        unit = step.masked_fill(~gridded, 1)
        place, first = (points / unit).round(), origin / unit
        slack = precision * first.abs()  # an origin on the grid is its own limit, however it was rounded
        place = torch.where(self.rising, torch.maximum(place, (first - slack).ceil()), place)
        place = torch.where(self.falling, torch.minimum(place, (first + slack).floor()), place)
        gridpoint = torch.where((place - first).abs() <= slack, origin, place * unit)
        free = torch.where(self.rising, torch.maximum(points, origin), points)
        free = torch.where(self.falling, torch.minimum(free, origin), free)
        return torch.where(gridded, gridpoint, free)

    def _one_of_each(self, points: Tensor, origin: Tensor) -> Tensor:
        """Let the largest coordinate of each group be ``hot`` and the others 0, all groups at once."""
        owner: Tensor = vars(self)["_owner"]
        member = owner != _NO_GROUP
        n, groups = len(self), len(self.groups)
        place = owner.masked_fill(~member, groups).expand(len(points), -1)  # one more slot for all other coordinates

        def largest(values: Tensor) -> Tensor:
            best = values.new_full((len(values), groups + 1), torch.finfo(values.dtype).min)
            return best.scatter_reduce(1, place, values, "amax").gather(1, place)

        winners = points == largest(points)
        chosen = origin == largest(origin)
        rank = torch.arange(n, 0, -1, device=points.device).to(torch.float64) + n * chosen
        rank = rank.masked_fill(~winners, 0)
        won = winners & (rank == largest(rank))
        hot = torch.zeros_like(points).masked_fill(won, self.hot)
        return torch.where(member, hot, points)
