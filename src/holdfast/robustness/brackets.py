"""What many measurements of one exact method say together about the radii of further subsets.

A witness bounds the radius of every subset that holds all features it moves. A proven lower bound of a subset holds for
every part of it. So a search over subsets, such as greedy selection, asks the method only what is still open.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.robustness.method import Robustness

_ROUGH = 0.2  # by which share a radius may exceed its lower bound when a subset is measured for the first time


class Bracket(NamedTuple):
    """Bounds of the radii of K subsets of one case.

    Attributes:
        low: The largest known lower bound of each radius, ``[K]``: proven, or the radius that a full measurement left
            unproven.
        high: The smallest known upper bound, ``[K]``.
        proven: The largest proven lower bound, ``[K]``.
        witness: The number of the witness that ``high`` is the length of, ``[K]``; -1: none.
    """

    low: Tensor
    high: Tensor
    proven: Tensor
    witness: Tensor


class Brackets:
    """The radii of some cases, as far as measurements tell.

    Args:
        cases: B cases.
        method: An exact method.
    """

    def __init__(self, cases: Cases, method: Robustness):
        self.cases, self.method = cases, method
        self._known = [_Known.of(cases[case]) for case in range(len(cases))]

    def of(self, case: int, subsets: Tensor) -> Bracket:
        """Return what is known of subsets of a case, bool ``[K, d]``: True where a feature may move."""
        return self._known[case].bracket(subsets)

    def measure(self, which: Tensor, subsets: Tensor, *, rough: bool = False) -> None:
        """Measure one subset of each of some cases, and remember what that says.

        Args:
            which: The numbers of the cases, ``[Q]``.
            subsets: Bool ``[Q, d]``.
            rough: Whether a bracket is enough.
        """
        cases = self.cases[which]
        start, lower = cases.x[:, None].clone(), torch.zeros_like(cases.x.flatten(1)[:, :1])
        for place, (case, subset) in enumerate(zip(which.tolist(), subsets, strict=True)):
            bracket = self.of(case, subset[None])
            lower[place] = bracket.proven
            if bracket.witness >= 0:
                start[place, 0] = self._known[case].witness[bracket.witness[0]]
        tolerance = _ROUGH if rough else 0.0
        radii = self.method(cases, subsets[:, None], start=start, lower=lower, tolerance=tolerance)
        nominal = torch.where(radii.proven, radii.radius, radii.lower) if rough else radii.radius
        moved = cases.features.pool((radii.witness[:, 0] != cases.x).to(cases.x)) > 0
        for place, case in enumerate(which.tolist()):
            known = self._known[case]
            known.bound(subsets[place], radii.lower[place, 0], nominal[place, 0])
            if bool(torch.isfinite(radii.radius[place, 0])):
                known.witnessed(moved[place], radii.radius[place, 0], radii.witness[place, 0])


class _Known:
    """Measurements of one case."""

    def __init__(self, subset: Tensor, bounds: Tensor, moved: Tensor, radius: Tensor, witness: Tensor):
        self.subset, self.bounds = subset, bounds  # bool [E, d]; proven and nominal lower bounds [E, 2]
        self.moved, self.radius, self.witness = moved, radius, witness  # bool [W, d]; [W]; [W, *shape]

    @classmethod
    def of(cls, case: Cases) -> _Known:
        none = torch.zeros(0, case.features.count, dtype=torch.bool, device=case.x.device)
        return cls(none, case.x.new_zeros(0, 2), none, case.x.new_zeros(0), case.x[:0])

    def bound(self, subset: Tensor, proven: Tensor, nominal: Tensor) -> None:
        self.subset = torch.cat([self.subset, subset[None]])
        self.bounds = torch.cat([self.bounds, torch.stack([proven, nominal])[None]])

    def witnessed(self, moved: Tensor, radius: Tensor, witness: Tensor) -> None:
        self.moved, self.radius = torch.cat([self.moved, moved[None]]), torch.cat([self.radius, radius[None]])
        self.witness = torch.cat([self.witness, witness[None]])

    def bracket(self, subsets: Tensor) -> Bracket:
        k, dtype = len(subsets), self.radius.dtype
        low, proven = torch.zeros(k, dtype=dtype), torch.zeros(k, dtype=dtype)
        high, witness = torch.full((k,), math.inf, dtype=dtype), torch.full((k,), -1)
        if len(self.subset):  # products count the features that are missing
            around = subsets.to(dtype) @ (~self.subset).to(dtype).T == 0
            proven, low = (one.where(around, 0).amax(1) for one in self.bounds.T[:, None].expand(-1, k, -1))
        if len(self.radius):
            inside = (~subsets).to(dtype) @ self.moved.to(dtype).T == 0
            high, witness = self.radius.expand(k, -1).where(inside, math.inf).min(1)
            witness = witness.masked_fill(torch.isinf(high), -1)
        return Bracket(torch.minimum(low, high), high, torch.minimum(proven, high), witness)
