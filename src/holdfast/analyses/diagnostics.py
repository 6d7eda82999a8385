"""How far a reported radius can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from holdfast.analyses.result import Result, Row, bars, known
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.curve import SIZES
from holdfast.errors import HoldfastError
from holdfast.ranking import Ranking, size_text
from holdfast.robustness import Judge, MinNorm, Robustness

SEARCH = MinNorm(steps=40, restarts=2)
"""The one search that is compared with a judge, unless another is named."""


@dataclass(frozen=True, eq=False)
class Diagnostics(Result):
    """Radii with the top features held: ``[B, P]`` of a judge and, seed by seed, ``[seeds, B, P]`` of one search.

    ``alone [B, P]`` are the radii of one search when every size is asked by itself, ``moving [B, P]`` how many features
    may move at each.
    """

    sizes: tuple[float, ...] | tuple[int, ...]
    judged: Tensor
    searched: Tensor
    alone: Tensor
    moving: Tensor
    judge: str
    search: str

    def censored(self) -> Tensor:
        """The share of cases, at each size, for which no change was found by the judge."""
        return torch.isinf(self.judged).double().mean(0)

    def gap(self) -> Tensor:
        """How many times looser one search is than the judge, ``[seeds, B, P]``; NaN where either found nothing."""
        both = torch.isfinite(self.searched) & torch.isfinite(self.judged) & (self.judged > 0)
        return torch.where(both, self.searched / self.judged, torch.nan)

    def spread(self) -> Tensor:
        """The largest over the smallest radius among seeds, ``[B, P]``; NaN where some seed found nothing."""
        ratio = self.searched.amax(0) / self.searched.amin(0)
        return torch.where(torch.isfinite(ratio), ratio, torch.nan)

    def violations(self) -> Tensor:
        """How often more features, those of the size before, were harder to leave than those of this one, ``[P]``.

        That cannot be true of the exact radii, and is what sharing witnesses repairs. NaN for the first size, and where
        a size adds no feature.
        """
        fewer = self.moving[:, 1:] < self.moving[:, :-1]
        rises = fewer & (self.alone[:, :-1] > self.alone[:, 1:] * (1 + 1e-6))
        share = rises.sum(0).double() / fewer.sum(0)
        return torch.cat([torch.tensor([torch.nan], dtype=torch.double), share])

    def table(self) -> list[Row]:
        gap, spread, violations = self.gap(), self.spread(), self.violations()
        return [
            {
                "held": size,
                "cases": len(self.judged),
                "censored by the judge": float(self.censored()[place]),
                "censored by one search": float(torch.isinf(self.searched[:, :, place]).double().mean()),
                "one search / judge, mean": known(gap[:, :, place].nanmean()),
                "one search / judge, largest": known(_nanmax(gap[:, :, place])),
                "of ratios": int((~gap[:, :, place].isnan()).sum()),
                "largest / smallest of seeds, mean": known(spread[:, place].nanmean()),
                "monotonicity violations": known(violations[place]),
            }
            for place, size in enumerate(self.sizes)
        ]

    def plot(self, ax: Any) -> None:
        gap = self.gap().flatten(0, 1)
        columns = [gap[:, place] for place in range(gap.shape[1])]
        low, high = ([sign * float(_nanmax(sign * column)) for column in columns] for sign in (-1, 1))
        names = [f"{size_text(size)} held" for size in self.sizes]
        bars(ax, names, gap.nanmean(0).tolist(), low, high, "one search / judge")
        ax.set_xlim(left=min([1.0, *(end for end in low if end < 1)]))  # 1 is what a perfect search would have


def diagnostics(
    cases: Cases,
    ranking: Ranking,
    *,
    sizes: Sequence[float] | Sequence[int] = SIZES,
    judge: Robustness | None = None,
    search: MinNorm | None = None,
    seeds: int = 5,
    progress: Progress | None = None,
) -> Diagnostics:
    """Measure the same subsets by a judge, by one search from several seeds, and by one search each on its own."""
    judge, search = judge or Judge(), search or SEARCH
    if seeds < 2:
        raise HoldfastError(f"a spread needs at least two seeds, got {seeds}.")
    if not sizes or list(sizes) != sorted(set(sizes)):
        raise HoldfastError(f"sizes must rise, got {list(sizes)}.")
    moving = ~ranking.top(sizes)
    asked: list[tuple[Robustness, Tensor]] = [(judge, moving)]
    asked += [(replace(search, seed=search.seed + seed), moving) for seed in range(seeds)]
    # Asked one at a time, subsets share no witness.
    asked += [(search, moving[:, place : place + 1]) for place in range(len(sizes))]
    radii = []
    for method, subsets in asked:
        radii.append(method(cases, subsets).radius.cpu())
        if progress is not None:
            progress(len(radii), len(asked))
    return Diagnostics(
        tuple(sizes),
        radii[0],
        torch.stack(radii[1 : 1 + seeds]),
        torch.cat(radii[1 + seeds :], 1),
        moving.sum(2).cpu(),
        repr(judge),
        repr(search),
    )


def _nanmax(values: Tensor) -> Tensor:
    known = values[~values.isnan()]
    return known.max() if len(known) else torch.tensor(torch.nan)
