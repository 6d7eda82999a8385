"""The base of all robustness methods: it checks a question, measures it in chunks and shares the results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from holdfast.cases import Cases, check_cases
from holdfast.chunks import Progress, chunked
from holdfast.errors import HoldfastError
from holdfast.models.model import Access, Model, check_access, why_adapted
from holdfast.registry import Registry
from holdfast.robustness.norms import Norm, norm_of
from holdfast.robustness.radii import BoundKind, Measurements, Radii, gap_of, notes_on
from holdfast.robustness.rows import Hint, Rows
from holdfast.robustness.steps import clip
from holdfast.settings import Settings
from holdfast.tensors import read_tensor


class Robustness(Settings, ABC):
    """A method that measures Robustness-S: ``method(cases, subsets) -> Radii``.

    There are three kinds: an ``Attack`` gives upper bounds, a ``Certificate`` lower bounds, an ``Exact`` method both.
    A method is a frozen dataclass that derives from one of them and implements its one abstract method. A class that
    sets ``name`` is registered under it.

    Attributes:
        name: The name in the registry.
        presets: Names of class methods that return an instance with other settings.
        requires: What the method requires of a model.
        bound: Which side of the true value its radii lie on.
        uses_tolerance: Whether it ends earlier where a tolerance is given.
        rows_at_once: The most rows that are measured between two reports of progress; None: as many as fit.
        p: The norm: 1, 2 or infinity.
    """

    registry: ClassVar[Registry[Robustness]] = Registry("robustness method", "holdfast.robustness")
    name: ClassVar[str]
    presets: ClassVar[tuple[str, ...]] = ()
    requires: ClassVar[Access] = Access.GRADIENTS
    bound: ClassVar[BoundKind]
    uses_tolerance: ClassVar[bool] = False
    rows_at_once: ClassVar[int | None] = None
    p: float

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Robustness.registry.add(cls)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", norm_of(self.p).p)

    @property
    def needs(self) -> Access:
        """What this instance requires of a model, given its settings."""
        return self.requires

    @classmethod
    def serves(cls, model: Model) -> bool:
        """Return whether this method measures this kind of model, if the model gives enough access."""
        return True

    @property
    @final
    def norm(self) -> Norm:
        """The norm that radii are measured in."""
        return norm_of(self.p)

    @property
    def rows(self) -> int | None:
        """About how many rows go through the model for one subset; None: unknown."""
        return None

    @final
    def __call__(
        self,
        cases: Cases,
        subsets: Any,
        *,
        start: Tensor | None = None,
        lower: Tensor | None = None,
        tolerance: float = 0.0,
        progress: Progress | None = None,
    ) -> Radii:
        """Measure Robustness-S.

        Args:
            cases: B cases.
            subsets: Bool ``[B, K, d]``: K subsets for each case, True where a feature may move.
            start: Points ``[B, K, *shape]`` or ``[B, 1, *shape]`` that attacks start from, such as the witnesses of
                similar subsets. They are cut to each subset. Exact methods may use them as upper bounds; certificates
                ignore them.
            lower: Lower bounds ``[B, K]`` that are proven already. Only exact methods use them.
            tolerance: An exact method may stop at a radius that exceeds its proven lower bound by this share.
            progress: Called with (done, total) rows while it runs.

        Returns:
            The radii, with a witness for each where the method finds witnesses.

        Raises:
            HoldfastError: The cases, the model, the subsets or the starting points do not fit.
        """
        self._check(cases)
        method = self.adapted(cases.model)
        if method is not self:
            radii = method(cases, subsets, start=start, lower=lower, tolerance=tolerance, progress=progress)
            note = f"{why_adapted(self, cases.model)}: {method} was used."
            return replace(radii, notes=(note, *radii.notes))
        subsets = cases.subsets(subsets)
        before = cases.model.queries
        witness = cases.x[:, None].repeat(1, subsets.shape[1], *[1] * (cases.x.ndim - 1))
        start = None if start is None else _check_start(start, cases, subsets)
        known = _Known(start, None if lower is None else _check_lower(lower, cases, subsets), tolerance)
        measured = self._measure_all(cases, subsets, known, witness.flatten(2), progress)
        gap = gap_of(measured)
        return Radii(
            measured.radius,
            witness,
            measured.new_class,
            measured.proven,
            self.bound,
            cases.model.queries - before,
            repr(self),
            measured.lower,
            notes_on(measured, gap, self.bound) + cases.model.notes,
            gap,
        )

    @final
    def radius(self, cases: Cases, subsets: Any, *, progress: Progress | None = None) -> Tensor:
        """Measure the same radii without keeping witnesses, which may not fit memory.

        Args:
            cases: B cases.
            subsets: Bool ``[B, K, d]``.
            progress: Called with (done, total) rows while it runs.

        Returns:
            Radii ``[B, K]``.

        Raises:
            HoldfastError: The cases, the model or the subsets do not fit.
        """
        self._check(cases)
        method = self.adapted(cases.model)
        return method._measure_all(cases, cases.subsets(subsets), _Known(), None, progress).radius

    def adapted(self, model: Model) -> Robustness:
        """Return the method that measures this model: this one, or a substitute for a model that gives less access."""
        return self

    @abstractmethod
    def _start(self, cases: Cases, subsets: Tensor, start: Tensor | None) -> Tensor | None:
        """Return the points to start from, ``[B, K or 1, *shape]``, if the method uses any."""

    @abstractmethod
    def _measure(self, rows: Rows, start: Tensor | None) -> Measurements:
        """Measure R rows by themselves; ``start [R, n]`` are moves to begin from."""

    @abstractmethod
    def _share(self, measured: Measurements, subsets: Tensor) -> None:
        """Let the subsets ``[B, K, d]`` of a case learn from each other, in place."""

    def _check(self, cases: Cases) -> None:
        check_cases(cases)
        check_access(self, cases.model, Robustness.registry)

    def _measure_all(
        self, cases: Cases, subsets: Tensor, known: _Known, witness: Tensor | None, progress: Progress | None
    ) -> Measurements:
        """Measure all rows in chunks and share the results; ``witness [B, K, n]`` is written where it is kept."""
        start = self._start(cases, subsets, known.start)
        b, k = subsets.shape[:2]
        radius = cases.x.new_full((b * k,), math.inf)
        new_class = torch.full((b * k,), -1, device=cases.x.device)
        lower = torch.zeros_like(radius)
        proven, flat = (torch.zeros_like(radius, dtype=torch.bool) for _ in range(2))
        first: list[Tensor] = []

        def work(piece: slice) -> None:
            rows = Rows.of(cases, subsets, piece)
            begin = _start_of(start, piece, k, rows)
            if self.bound == "exact":
                rows = known.told(rows, begin, piece)
            part = self._measure(rows, begin)
            radius[piece], new_class[piece] = part.radius, part.new_class
            proven[piece], flat[piece], lower[piece] = part.proven, part.flat, part.lower
            if witness is not None and part.witness is not None:
                witness.view(b * k, -1)[piece] = part.witness
            if part.first_radius is not None:
                first.append(part.first_radius)

        size = cases.model.chunk(cases.x)
        for piece, _ in chunked(work, b * k, min(size, self.rows_at_once or size)):
            if progress is not None:
                progress(piece.stop, b * k)
        radius, new_class, proven, flat, lower = (one.view(b, k) for one in (radius, new_class, proven, flat, lower))
        measured = Measurements(
            radius, new_class, proven, flat, lower, witness, torch.cat(first).view(b, k) if first else None
        )
        self._share(measured, subsets)
        return measured


@dataclass(frozen=True, eq=False)
class _Known:
    """What the caller knows of all rows: points ``[B, K or 1, *shape]``, and proven lower bounds ``[B, K]``."""

    start: Tensor | None = None
    lower: Tensor | None = None
    tolerance: float = 0.0

    def told(self, rows: Rows, start: Tensor | None, piece: slice) -> Rows:
        """Return the rows of a piece with the hint for them; ``start [R, n]`` are moves inside mask and box."""
        if start is None and self.lower is None and not self.tolerance:
            return rows
        if start is not None and rows.model.domain is not None:  # a point that was cut to the mask may be no input
            moved = rows.inputs(start).flatten(1) - rows.x
            inside = (clip(moved, rows.low, rows.high) == moved).all(1, keepdim=True)
            start = torch.where(inside, moved, 0)
        lower = rows.x.new_zeros(len(rows)) if self.lower is None else self.lower.flatten()[piece]
        return replace(rows, hint=Hint(lower, start, self.tolerance))


def _check_lower(lower: Tensor, cases: Cases, subsets: Tensor) -> Tensor:
    lower = read_tensor(lower, "lower", f"bounds {tuple(subsets.shape[:2])}")
    if lower.shape != subsets.shape[:2] or bool((lower.isnan() | (lower < 0)).any()):
        raise HoldfastError(
            f"lower must be bounds {tuple(subsets.shape[:2])} that are at least 0, got {tuple(lower.shape)}."
        )
    return lower.to(cases.x)


def _check_start(start: Tensor, cases: Cases, subsets: Tensor) -> Tensor:
    b, k = subsets.shape[:2]
    shape = tuple(cases.x.shape[1:])
    start = read_tensor(start, "start", f"points {(b, k, *shape)}")
    if tuple(start.shape) not in {(b, k, *shape), (b, 1, *shape)} or not bool(torch.isfinite(start).all()):
        raise HoldfastError(
            f"start must be finite points {(b, k, *shape)} or {(b, 1, *shape)}, got {tuple(start.shape)}."
        )
    return start.to(cases.x)


def _start_of(start: Tensor | None, piece: slice, k: int, rows: Rows) -> Tensor | None:
    """Return the starting moves ``[R, n]`` of a piece of all rows, cut to their intervals."""
    if start is None:
        return None
    row = torch.arange(piece.start, piece.stop, device=start.device)
    points = start[row // k, row % k if start.shape[1] > 1 else torch.zeros_like(row)]
    return clip(points.flatten(1) - rows.x, rows.low, rows.high)
