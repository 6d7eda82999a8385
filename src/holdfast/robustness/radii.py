"""Radii: the result of a robustness method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.models.model import Queries
from holdfast.prose import brief, counted

if TYPE_CHECKING:
    from holdfast.figures import Plot  # imports matplotlib

BoundKind = Literal["upper", "lower", "exact"]


@dataclass(frozen=True, eq=False)
class Radii:
    """Robustness-S of every case and subset.

    A radius is infinite for one of two reasons. *Censored*: no witness was found, and the true value is unknown.
    *Unreachable*: a proof says that no allowed change of the subset changes the decision.

    Attributes:
        radius: ``[B, K]``. An upper bound or an exact value is the norm of ``witness - x``, measured on the model
            itself. A lower bound is what the certificate returned.
        witness: Points ``[B, K, *shape]`` that change the decision; x itself where there is none.
        new_class: The class of each witness, ``[B, K]``; -1 where there is none.
        proven: Bool ``[B, K]``: a proof says that no smaller change exists. Never true of an attack, always true of a
            certificate. An exact method that could not settle a row gives an upper bound with False.
        bound: Which side of the true value the radii lie on: ``"upper"``, ``"lower"`` or ``"exact"``.
        queries: Rows put through the model.
        method: The ``repr`` of the method.
        notes: Sentences that the reader of the radii needs.
        lower: Proven lower bounds ``[B, K]``: the radius itself where it is proven, 0 where nothing is known. With
            ``radius`` they bracket the true value of a row that an exact method could not settle.
        gap: ``[B, K]``, of an ensemble: the radius of its first search divided by the final radius; ``inf`` where the
            first search found no witness. None for other methods.
    """

    radius: Tensor
    witness: Tensor
    new_class: Tensor
    proven: Tensor
    bound: BoundKind
    queries: Queries
    method: str
    lower: Tensor
    notes: tuple[str, ...] = ()
    gap: Tensor | None = None

    def __repr__(self) -> str:
        known = self.radius[torch.isfinite(self.radius)]
        sides = {"exact": "exact"}.get(self.bound, f"{self.bound} bounds")
        span = f" from {float(known.min()):.4g} to {float(known.max()):.4g}" if len(known) else ""
        counts = {"censored": self.censored, "unreachable": self.unreachable}
        facts = [f"{int(which.sum())} {kind}" for kind, which in counts.items() if bool(which.any())]
        cases, subsets = counted(len(self.radius), "case"), counted(self.radius.shape[1], "subset")
        return f"Radii({', '.join([f'{cases} x {subsets}', sides + span, *facts])}, by {brief(self.method)})"

    def plot(self, names: Sequence[str] | None = None) -> Plot:
        """Draw the radii of all subsets, one point for each case, with lower bounds where they are known.

        Args:
            names: What the K subsets are called. Default: their numbers.

        Raises:
            HoldfastError: ``names`` are not K texts.
        """
        from holdfast.robustness.radius_figure import draw  # imports matplotlib

        count = self.radius.shape[1]
        given = range(count) if names is None else names
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != count:
            raise HoldfastError(f"names must be one text for each of {counted(count, 'subset')}, got {names!r}.")
        title = f"Radii of {counted(len(self.radius), 'case')} by {brief(self.method)}"
        return draw(self.radius, self.lower, self.proven, [*map(str, given)], self.bound, title)

    @property
    def censored(self) -> Tensor:
        """Where no witness was found and none is proven not to exist: bool ``[B, K]``."""
        return torch.isinf(self.radius) & ~self.proven

    @property
    def unreachable(self) -> Tensor:
        """Where a proof says that no allowed change of the subset changes the decision: bool ``[B, K]``."""
        return torch.isinf(self.radius) & self.proven

    @property
    def witnessed(self) -> Tensor:
        """Where there is a witness: bool ``[B, K]``. Certificates have none."""
        return self.new_class >= 0


@dataclass(eq=False)
class Measurements:
    """Radii while they are collected: R rows, or ``[B, K]`` once all rows are measured.

    Attributes:
        radius: ``[R]``.
        new_class: ``[R]``; -1 without a witness.
        proven: Bool ``[R]``.
        flat: Bool ``[R]``: the gradient was zero where the search began.
        lower: Proven lower bounds, ``[R]``.
        witness: ``[R, n]``; None where witnesses are not kept.
        first_radius: The radius that the first search of an ensemble found, ``[R]``; None without an ensemble.
    """

    radius: Tensor
    new_class: Tensor
    proven: Tensor
    flat: Tensor
    lower: Tensor
    witness: Tensor | None = None
    first_radius: Tensor | None = None


_WORTH_NOTING = 0.01  # a smaller difference between searches says little


def gap_of(measured: Measurements) -> Tensor | None:
    """Return by which factor the first search of an ensemble was looser, ``[B, K]``; None without an ensemble."""
    if measured.first_radius is None:
        return None
    gap = measured.first_radius / measured.radius
    return torch.where(torch.isinf(measured.radius) | gap.isnan(), 1, gap).clamp_min(1)


def notes_on(measured: Measurements, gap: Tensor | None, bound: BoundKind) -> tuple[str, ...]:
    """Return the sentences that the reader of these radii needs."""
    notes = []
    radius, flat = measured.radius, measured.flat
    if bool(flat.any()):
        lost = int((flat & torch.isinf(radius)).sum())
        notes.append(
            f"the gradient is zero at the start of {int(flat.sum())} of {flat.numel()} rows; random points were tried "
            f"and {lost} of these rows stayed censored, which says nothing about their robustness."
        )
    if gap is not None:
        both = gap[torch.isfinite(gap) & torch.isfinite(radius)]
        largest, missed = float(both.max()) - 1 if len(both) else 0.0, int(torch.isinf(gap).sum())
        if largest >= _WORTH_NOTING or missed:
            more = f", and found no change in {missed} of {gap.numel()} rows" if missed else ""
            notes.append(f"a single search gave radii up to {largest:.1%} larger than the judge's{more}.")
    if bound == "exact" and not bool(measured.proven.all()):
        notes.append(
            f"{int((~measured.proven).sum())} of {radius.numel()} rows were not settled: their radii are upper bounds, "
            "and Radii.lower has the lower ones."
        )
    return tuple(notes)
