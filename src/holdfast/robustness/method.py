"""What every robustness method is: a search that proposes, and a base that masks, clips and re-measures."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, final

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress, chunked
from holdfast.errors import HoldfastError
from holdfast.model import Queries
from holdfast.robustness.rows import Rows
from holdfast.robustness.steps import clip, norm

BoundKind = Literal["upper", "lower", "exact"]


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
    ``turned [B, K]`` is the class the witness gets, -1 where censored. ``gap [B, K]``, for an ensemble: how many times
    larger the radius of its first search alone was, ``inf`` where that one found nothing.
    """

    radius: Tensor
    witness: Tensor
    turned: Tensor
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

    bound: ClassVar[BoundKind] = "upper"
    p: float

    def __post_init__(self) -> None:
        if self.p not in (1, 2, math.inf):
            raise HoldfastError(f"p must be 1, 2 or inf, got {self.p!r}.")
        object.__setattr__(self, "p", float(self.p))

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
        cases.model.require_eval()
        subsets = cases.subsets(subsets)
        before = cases.model.queries
        start = self.warm(cases, subsets) if start is None else _check_start(start, cases, subsets)
        b, k = subsets.shape[:2]
        radius = cases.x.new_full((b * k,), math.inf)
        turned = torch.full((b * k,), -1, device=cases.x.device)
        witness = cases.x.repeat_interleave(k, 0)
        flat = torch.zeros_like(radius, dtype=torch.bool)
        early: list[Tensor] = []

        def work(piece: slice) -> None:
            rows = Rows.of(cases, subsets, piece)
            found = self.search(rows, _start_of(start, piece, k, rows))
            radius[piece], witness[piece], turned[piece] = measure(rows, found.delta, self.p)
            flat[piece] = found.flat
            if found.early is not None:
                early.append(found.early)

        for piece, _ in chunked(work, b * k, cases.model.chunk(cases.x)):
            if progress is not None:
                progress(piece.stop, b * k)
        share(radius.view(b, k), witness.view(b, k, -1), turned.view(b, k), subsets)
        gap = torch.cat(early).view(b, k) / radius.view(b, k) if early else None
        gap = None if gap is None else torch.where(torch.isinf(radius.view(b, k)) | gap.isnan(), 1, gap)
        return Radii(
            radius.view(b, k),
            witness.view(b, k, *cases.x.shape[1:]),
            turned.view(b, k),
            self.bound,
            cases.model.queries - before,
            repr(self),
            _notes(flat, radius, gap),
            gap,
        )


def measure(rows: Rows, delta: Tensor, p: float) -> tuple[Tensor, Tensor, Tensor]:
    """Radius, witness and its class as the model itself sees them: ``inf``, x and -1 where nothing changed."""
    points = rows.points(clip(delta.nan_to_num(0), rows.low, rows.high))
    logits = rows.model(points)
    changed = rows.changed(logits)
    radius = torch.where(changed, norm(points.flatten(1) - rows.x, p), math.inf)
    shaped = changed.reshape(-1, *[1] * len(rows.shape))
    witness = torch.where(shaped, points, rows.x.reshape(points.shape))
    return radius, witness, torch.where(changed, logits.argmax(1), -1)


def share(radius: Tensor, witness: Tensor, turned: Tensor, subsets: Tensor) -> None:
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
            witness[case, rows] = witness[case, source]
            turned[case, rows] = turned[case, source]


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
