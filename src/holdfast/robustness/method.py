"""What every robustness method is: a search that proposes, and a base that masks, clips and re-measures."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, final

import torch
from torch import Tensor

from holdfast.cases import Cases, check_cases
from holdfast.chunks import Progress, chunked
from holdfast.errors import HoldfastError
from holdfast.models.model import Access, Queries, check_access
from holdfast.registry import Registry
from holdfast.robustness.norms import Norm, norm_of
from holdfast.robustness.rows import Rows
from holdfast.robustness.steps import clip

BoundKind = Literal["upper", "lower", "exact"]
_FARTHER = (1.001, 1.003, 1.01, 1.03, 1.1)  # times as far, where the edge of a decision was lost to rounding


class Found(NamedTuple):
    """What a search proposes: a move for each row, and which rows had no slope to follow at the start.

    ``early [R]``: the radius that the first search of an ensemble had reached.
    """

    delta: Tensor
    flat: Tensor
    early: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Radii:
    """Robustness-S of every case and subset.

    ``radius [B, K]`` is the norm of ``witness [B, K, *shape] - x``, re-measured on the model; ``inf`` where no
    witness was found (*censored*: the true value is unknown, not infinite; the witness is then x itself).
    ``new_class [B, K]`` is the class the witness gets, -1 where censored. ``gap [B, K]``, for an ensemble: how many times
    larger the radius of its first search alone was, ``inf`` where that one found nothing.
    """

    radius: Tensor
    witness: Tensor
    new_class: Tensor
    bound: BoundKind
    queries: Queries
    method: str
    notes: tuple[str, ...] = ()
    gap: Tensor | None = None

    @property
    def censored(self) -> Tensor:
        """Where no witness was found: bool ``[B, K]``."""
        return torch.isinf(self.radius)


class Robustness(ABC):
    """``method(cases, subsets) -> Radii``. Subclass as a frozen dataclass with one method, ``search``.

    Nothing a search claims is trusted: its moves are masked and clipped, the model is asked again, and what does
    not change the decision is not a radius. Within one call a witness for S also serves every superset of S.
    """

    registry: ClassVar[Registry[Robustness]] = Registry("robustness method", "holdfast.robustness")
    name: ClassVar[str]
    presets: ClassVar[tuple[str, ...]] = ()
    requires: ClassVar[Access] = Access.GRADIENTS
    bound: ClassVar[BoundKind] = "upper"
    p: float

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Robustness.registry.add(cls)

    @property
    def needs(self) -> Access:
        """What this instance requires of a model, given its settings."""
        return self.requires

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", norm_of(self.p).p)

    @property
    @final
    def norm(self) -> Norm:
        """The norm that radii are measured in."""
        return norm_of(self.p)

    @abstractmethod
    def search(self, rows: Rows, start: Tensor | None) -> Found:
        """Propose a move ``[R, n]`` for each row; ``start [R, n]`` is a move to begin from, if one is known."""

    @property
    def rows(self) -> int | None:
        """About how many rows a subset puts through the model; None if not known."""
        return None

    def warm(self, cases: Cases, subsets: Tensor) -> Tensor | None:
        """Points ``[B, K or 1, *shape]`` to begin from when the caller names none."""
        return None

    @final
    def __call__(
        self, cases: Cases, subsets: Any, *, start: Tensor | None = None, progress: Progress | None = None
    ) -> Radii:
        """Robustness-S for ``subsets`` bool ``[B, K, d]``, True = the feature may move.

        ``start [B, K, *shape]`` (or ``[B, 1, *shape]``) gives points to begin from, such as the witnesses of a
        similar question; they are masked to each subset.
        """
        check_cases(cases)
        check_access(self, cases.model, lambda: _fitting(cases.model.access))
        subsets = cases.subsets(subsets)
        before = cases.model.queries
        witness = cases.x[:, None].repeat(1, subsets.shape[1], *[1] * (cases.x.ndim - 1))
        start = None if start is None else _check_start(start, cases, subsets)
        radius, new_class, flat, early = self._fill(cases, subsets, start, witness.flatten(2), progress)
        gap = None if early is None else early / radius
        gap = None if gap is None else torch.where(torch.isinf(radius) | gap.isnan(), 1, gap).clamp_min(1)
        return Radii(
            radius,
            witness,
            new_class,
            self.bound,
            cases.model.queries - before,
            repr(self),
            _notes(flat.flatten(), radius.flatten(), gap),
            gap,
        )

    @final
    def radius(self, cases: Cases, subsets: Any, *, progress: Progress | None = None) -> Tensor:
        """The same radii ``[B, K]`` alone: thousands of subsets of a photograph fit memory, their witnesses do not."""
        check_cases(cases)
        check_access(self, cases.model, lambda: _fitting(cases.model.access))
        return self._fill(cases, cases.subsets(subsets), None, None, progress)[0]

    def _fill(
        self, cases: Cases, subsets: Tensor, start: Tensor | None, witness: Tensor | None, progress: Progress | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Radii, classes, flat rows and early radii ``[B, K]``; ``witness [B, K, n]`` is written to where wanted."""
        start = self.warm(cases, subsets) if start is None else start
        b, k = subsets.shape[:2]
        radius = cases.x.new_full((b * k,), math.inf)
        new_class = torch.full((b * k,), -1, device=cases.x.device)
        flat = torch.zeros_like(radius, dtype=torch.bool)
        early: list[Tensor] = []

        def work(piece: slice) -> None:
            rows = Rows.of(cases, subsets, piece)
            found = self.search(rows, _start_of(start, piece, k, rows))
            farther = _FARTHER if self.bound == "upper" else ()
            radius[piece], points, new_class[piece] = measure(rows, found.delta, self.norm, farther)
            flat[piece] = found.flat
            if witness is not None:
                witness.view(b * k, -1)[piece] = points.flatten(1)
            if found.early is not None:
                early.append(found.early)

        for piece, _ in chunked(work, b * k, cases.model.chunk(cases.x)):
            if progress is not None:
                progress(piece.stop, b * k)
        radius, new_class, flat = radius.view(b, k), new_class.view(b, k), flat.view(b, k)
        share(radius, witness, new_class, subsets)
        return radius, new_class, flat, torch.cat(early).view(b, k) if early else None


def _fitting(access: Access) -> list[str]:
    return [name for name, cls in Robustness.registry.classes().items() if cls.requires <= access]


def measure(rows: Rows, delta: Tensor, norm: Norm, farther: tuple[float, ...] = ()) -> tuple[Tensor, Tensor, Tensor]:
    """Radius, witness and its class as the model itself sees them: ``inf``, x and -1 where nothing changed.

    A search ends a hair's breadth past the boundary, and rounding (another batch size, another form of the network)
    can move it: a point that falls short goes a little ``farther`` out before it is given up, so many times as far.
    """
    delta = clip(delta.nan_to_num(0), rows.low, rows.high)
    points = rows.points(delta)
    logits = rows.model(points, exact=True)
    changed = rows.changed(logits)
    for times in farther:
        short = ~changed & (delta != 0).any(1)
        if not bool(short.any()):
            break
        some = rows.at(short)
        points[short] = some.points(clip(times * delta[short], some.low, some.high))
        logits[short] = rows.model(points[short], exact=True)
        changed = rows.changed(logits)
    radius = torch.where(changed, norm.length(points.flatten(1) - rows.x), math.inf)
    shaped = changed.reshape(-1, *[1] * len(rows.shape))
    witness = torch.where(shaped, points, rows.x.reshape(points.shape))
    return radius, witness, torch.where(changed, logits.argmax(1), -1)


def share(radius: Tensor, witness: Tensor | None, new_class: Tensor, subsets: Tensor) -> None:
    """Let a witness for S serve every superset of S asked about the same case (g is monotone), in place."""
    for case in range(len(radius) if radius.shape[1] > 1 else 0):
        inside = subsets[case].to(torch.float32)
        for block in torch.arange(len(inside), device=inside.device).split(1024):
            # S is inside T when no feature of S is outside T.
            serves = (1 - inside[block]) @ inside.T == 0
            best, source = torch.where(serves, radius[case], math.inf).min(1)
            better = best < radius[case, block]
            rows, source = block[better], source[better]
            radius[case, rows] = best[better]
            if witness is not None:
                witness[case, rows] = witness[case, source]
            new_class[case, rows] = new_class[case, source]


def _check_start(start: Tensor, cases: Cases, subsets: Tensor) -> Tensor:
    b, k = subsets.shape[:2]
    shape = tuple(cases.x.shape[1:])
    start = torch.as_tensor(start)
    if tuple(start.shape) not in {(b, k, *shape), (b, 1, *shape)} or not bool(torch.isfinite(start).all()):
        raise HoldfastError(
            f"start must be finite points {(b, k, *shape)} or {(b, 1, *shape)}, got {tuple(start.shape)}."
        )
    return start.to(cases.x)


def _start_of(start: Tensor | None, piece: slice, k: int, rows: Rows) -> Tensor | None:
    if start is None:
        return None
    row = torch.arange(piece.start, piece.stop, device=start.device)
    points = start[row // k, row % k if start.shape[1] > 1 else torch.zeros_like(row)]
    return clip(points.flatten(1) - rows.x, rows.low, rows.high)


def _notes(flat: Tensor, radius: Tensor, gap: Tensor | None) -> tuple[str, ...]:
    notes = []
    if bool(flat.any()):
        lost = int((flat & torch.isinf(radius)).sum())
        notes.append(
            f"the gradient is zero at the start of {int(flat.sum())} of {len(flat)} rows; random points were tried "
            f"and {lost} of these rows stayed censored, which says nothing about their robustness."
        )
    if gap is not None and bool((torch.isfinite(gap) & (gap > 1)).any()):
        both = gap[torch.isfinite(gap) & torch.isfinite(radius.view_as(gap))]
        notes.append(
            f"the ensemble's first search alone was {float(both.mean()) - 1:.1%} looser on average, "
            f"{float(both.max()) - 1:.1%} at most; it missed {int(torch.isinf(gap).sum())} rows that do turn."
        )
    return tuple(notes)
