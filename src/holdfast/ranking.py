"""An order of the features: what an explanation says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.draws import generator
from holdfast.errors import HoldfastError


@dataclass(frozen=True, eq=False)
class Ranking:
    """The features of each case, most relevant first: ``order [B, d]``, with ``scores [B, d]`` that fall along it.

    ``scores`` are indexed by feature and rank exactly as ``order`` does. ``count [B]`` is the number of features the
    case has; what is past it is padding that moves nothing, and comes last. ``uncertain [B]``, where errors are known, is
    the share of the features whose place ahead of a cut is not settled: a standard error less and they would miss it.
    ``empty [B]``: the order of a case says nothing, as its ``notes`` explain.
    """

    order: Tensor
    scores: Tensor
    count: Tensor
    method: str = ""
    uncertain: Tensor | None = None
    notes: tuple[str, ...] = ()
    uninformative: Tensor = None  # type: ignore[assignment]  # none of them, unless said

    def __post_init__(self) -> None:
        if self.uninformative is None:
            object.__setattr__(self, "uninformative", torch.zeros_like(self.count, dtype=torch.bool))
        if self.order.shape != self.scores.shape or self.order.ndim != 2:
            raise HoldfastError(
                f"order and scores must both be [B, d], got {tuple(self.order.shape)} and {tuple(self.scores.shape)}."
            )
        every = torch.arange(self.order.shape[1], device=self.order.device)
        if not bool((self.order.sort(1).values == every).all()):
            raise HoldfastError(f"order must name each of the {len(every)} features of a case once.")

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, which: slice) -> Ranking:
        uncertain = None if self.uncertain is None else self.uncertain[which]
        return Ranking(
            self.order[which],
            self.scores[which],
            self.count[which],
            self.method,
            uncertain,
            self.notes,
            self.uninformative[which],
        )

    @classmethod
    def by_score(cls, cases: Cases, scores: Tensor, method: str = "", ties: int | None = None) -> Ranking:
        """Features in falling order of their scores.

        Of equal ones the first comes first, or with a seed ``ties`` whichever a draw of that seed puts first: the same
        draw for every case.
        """
        if scores.shape != (len(cases), cases.features.count):
            expected = (len(cases), cases.features.count)
            raise HoldfastError(f"scores must be [B, d] = {expected}, got {tuple(scores.shape)}.")
        if not bool(torch.isfinite(scores).all()):
            raise HoldfastError("scores hold NaN or infinity: they give no order.")
        present = features_of(cases)
        drawn = torch.arange(scores.shape[1])
        if ties is not None:
            # Among the first features the same whatever follows, which randperm does not promise.
            drawn = torch.rand(scores.shape[1], generator=generator(ties)).argsort()
        drawn = drawn.to(scores.device)
        order = scores.masked_fill(~present, -math.inf)[:, drawn].argsort(dim=1, descending=True, stable=True)
        scores = torch.where(present, scores, scores.masked_fill(~present, math.inf).amin(1, keepdim=True))
        return cls(drawn[order], scores, present.sum(1), method)

    @classmethod
    def joined(cls, rankings: Sequence[Ranking]) -> Ranking:
        """Rankings of several batches of cases as one; notes and doubts stay behind."""
        order, scores = torch.cat([one.order for one in rankings]), torch.cat([one.scores for one in rankings])
        count, empty = torch.cat([one.count for one in rankings]), torch.cat([one.uninformative for one in rankings])
        return cls(order, scores, count, uninformative=empty)

    def top(self, sizes: Sequence[float | int] | Tensor) -> Tensor:
        """The most relevant features as subsets bool ``[B, P, d]``: a float is a share, an int a number of features.

        A share of 0.0 is no feature; any other is at least one.
        """
        position = self.order.argsort(1)[:, None]
        sizes = sizes.tolist() if isinstance(sizes, Tensor) else sizes
        empty = torch.zeros_like(self.count)
        wanted = [(empty if _is_none(size) else size_of(size, self.count))[:, None] for size in sizes]
        if not wanted:
            raise HoldfastError("name at least one size.")
        return position < torch.stack(wanted, 1)


def _is_none(size: float | int) -> bool:
    return isinstance(size, float) and size == 0


def features_of(cases: Cases) -> Tensor:
    """Which of the d features each case really has, bool ``[B, d]``: the others are padding."""
    return cases.features.pool(torch.ones_like(cases.x)) > 0


def size_text(size: float | int) -> str:
    """A share in percent, a number of features as it is."""
    return f"{size:.0%}" if isinstance(size, float) else str(size)


def check_size(size: Any, name: str = "a size") -> None:
    """Refuse what is neither a share over 0 and up to 1 (float) nor a number of features from 1 (int)."""
    if isinstance(size, bool) or not isinstance(size, (int, float)):
        raise HoldfastError(f"{name} is a share of the features (float) or a number of them (int), got {size!r}.")
    if isinstance(size, int) and size < 1:
        raise HoldfastError(f"{name} must be at least one feature, got {size}.")
    if isinstance(size, float) and not 0 < size <= 1:
        raise HoldfastError(f"{name} must be a share over 0 and at most 1 (= 100 %), got {size!r}.")


def size_of(size: float | int, count: Tensor, name: str = "a size") -> Tensor:
    """How many of ``count [B]`` features a share (float) or a number (int) means: at least one, at most all."""
    check_size(size, name)
    if isinstance(size, float):
        return (size * count).round().long().clamp_min(1)
    if size > int(count.max()):
        raise HoldfastError(f"{name} must be at most the {int(count.max())} features there are, got {size}.")
    return torch.full_like(count, size).minimum(count)
