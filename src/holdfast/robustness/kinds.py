"""The three kinds of robustness method: attacks, certificates and exact methods."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple, final

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.errors import HoldfastError
from holdfast.robustness.method import Robustness
from holdfast.robustness.radii import BoundKind, Measurements
from holdfast.robustness.rows import Rows
from holdfast.robustness.sharing import share_exact, share_lower_bounds, share_witnesses
from holdfast.robustness.steps import clip
from holdfast.robustness.witnesses import measure

_ROUNDING = 1e-6  # relative difference of two radii that refutes no proof
_FACTORS = (1.001, 1.003, 1.01, 1.03, 1.1)  # multiples of a move to try where rounding undoes the change


class Moves(NamedTuple):
    """What the search of an attack proposes.

    Attributes:
        delta: A move for each row, ``[R, n]``.
        flat: Bool ``[R]``: the gradient was zero at x. None: nowhere.
        first_radius: The radius that the first search of an ensemble found, ``[R]``. None without an ensemble.
    """

    delta: Tensor
    flat: Tensor | None = None
    first_radius: Tensor | None = None


class Solution(NamedTuple):
    """What an exact method found.

    Attributes:
        delta: A move for each row, ``[R, n]``. Zero where no change was found.
        proven: Bool ``[R]``: the move is proven to be the smallest change of the decision; if the move is zero and
            does not change it, the row is proven unreachable.
        lower: Proven lower bounds ``[R]`` for rows that are not settled. None: nothing is known of them.
    """

    delta: Tensor
    proven: Tensor
    lower: Tensor | None = None


class Attack(Robustness):
    """A method that searches for witnesses and gives upper bounds. Implement ``search``.

    No claim of a search is trusted. Its moves are cut to mask and box and measured on the model itself; a move that
    does not change the decision gives no radius. A row without a witness is censored. Within one call, a witness for
    S also serves every superset of S.
    """

    bound: ClassVar[BoundKind] = "upper"

    @abstractmethod
    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        """Propose a small move that changes the decision of each row.

        Args:
            rows: R rows.
            start: Moves ``[R, n]`` to begin from, inside mask and box; None if none are known.

        Returns:
            The moves.
        """

    def warm_start(self, cases: Cases, subsets: Tensor) -> Tensor | None:
        """Return points ``[B, K or 1, *shape]`` to start from if the caller names none; None: start from x."""
        return None

    @final
    def _start(self, cases: Cases, subsets: Tensor, start: Tensor | None) -> Tensor | None:
        return self.warm_start(cases, subsets) if start is None else start

    @final
    def _measure(self, rows: Rows, start: Tensor | None) -> Measurements:
        moves = self.search(rows, start)
        _check_shape("search", moves.delta, rows.x.shape)
        radius, witness, new_class = measure(rows, moves.delta, self.norm, _FACTORS)
        none = torch.zeros_like(radius, dtype=torch.bool)
        flat = none if moves.flat is None else moves.flat
        lower = torch.zeros_like(radius)
        return Measurements(radius, new_class, none, flat, lower, witness.flatten(1), moves.first_radius)

    @final
    def _share(self, measured: Measurements, subsets: Tensor) -> None:
        share_witnesses(measured, subsets)


class Certificate(Robustness):
    """A method that proves lower bounds. Implement ``certify``. It has no witnesses.

    A bound of infinity means that the row is proven unreachable. Two kinds of rows need no proof: a row whose decision
    is not its label has radius 0, and a row without a coordinate that can move is unreachable. NaN and negative bounds
    count as 0. Within one call, a bound for T also holds for every subset of T.
    """

    bound: ClassVar[BoundKind] = "lower"

    @abstractmethod
    def certify(self, rows: Rows) -> Tensor:
        """Return a lower bound on the radius of each row.

        Args:
            rows: R rows.

        Returns:
            Bounds ``[R]``; ``inf`` where no allowed move changes the decision.
        """

    @final
    def _start(self, cases: Cases, subsets: Tensor, start: Tensor | None) -> None:
        return None

    @final
    def _measure(self, rows: Rows, start: Tensor | None) -> Measurements:
        bound = self.certify(rows)
        _check_shape("certify", bound, rows.label.shape)
        changed = rows.changed(rows.model(rows.points(torch.zeros_like(rows.x)), exact=True))
        radius = torch.where(bound.isnan(), 0, bound).to(rows.x).clamp_min(0)
        radius = radius.masked_fill(~rows.free.any(1), math.inf).masked_fill(changed, 0)
        every = torch.ones_like(changed)
        return Measurements(radius, torch.full_like(rows.label, -1), every, ~every, radius.clone())

    @final
    def _share(self, measured: Measurements, subsets: Tensor) -> None:
        share_lower_bounds(measured, subsets)


class Exact(Robustness):
    """A method that solves for the radius itself. Implement ``solve``.

    Moves are cut to mask and box and measured on the model itself, as those of an attack. A proof counts only if the
    move lies inside the mask and changes the decision, or if the move is zero: then the row is proven unreachable. A
    row that was not settled keeps its upper bound, or is censored, and the lower bound that was proven. Within one
    call, witnesses serve supersets and proofs serve subsets. ``Rows.hint`` is what the caller knows already; a method
    that uses it is faster where a caller asks about many similar subsets, as ``Greedy`` does.
    """

    bound: ClassVar[BoundKind] = "exact"

    @abstractmethod
    def solve(self, rows: Rows) -> Solution:
        """Find the smallest change of each row's decision.

        Args:
            rows: R rows.

        Returns:
            The moves, and where they are proven to be the smallest.
        """

    @final
    def _start(self, cases: Cases, subsets: Tensor, start: Tensor | None) -> Tensor | None:
        return start

    @final
    def _measure(self, rows: Rows, start: Tensor | None) -> Measurements:
        delta, proven, known = self.solve(rows)
        _check_shape("solve", delta, rows.x.shape)
        radius, witness, new_class = measure(rows, delta, self.norm)
        inside = (clip(delta, rows.low, rows.high) == delta).all(1)
        nothing = (delta == 0).all(1)
        proven = proven & inside & (torch.isfinite(radius) | nothing)
        known = torch.zeros_like(radius) if known is None else known.nan_to_num(0).clamp_min(0).to(radius)
        if rows.hint is not None:
            known = torch.maximum(known, rows.hint.lower)
        if rows.model.domain is not None:  # what a method solves without the domain is a lower bound with it
            length = self.norm.length(delta)
            known = torch.where(proven & ~nothing, torch.maximum(known, length), known)
            proven = proven & (nothing | (radius <= length * (1 + _ROUNDING)))
        known = known.masked_fill(known > radius * (1 + _ROUNDING), 0)  # a witness refutes it
        proven = proven | (radius == 0) | ~rows.free.any(1)
        lower = torch.where(proven, radius, torch.minimum(known, radius))
        return Measurements(radius, new_class, proven, torch.zeros_like(proven), lower, witness.flatten(1))

    @final
    def _share(self, measured: Measurements, subsets: Tensor) -> None:
        share_exact(measured, subsets)


def _check_shape(method: str, result: Tensor, shape: torch.Size) -> None:
    if result.shape != shape:
        raise HoldfastError(f"{method} must return a tensor of shape {tuple(shape)}, got {tuple(result.shape)}.")
