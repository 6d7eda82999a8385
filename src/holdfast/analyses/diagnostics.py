"""How far a reported radius can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from holdfast.analyses.result import Result, Row, bars
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.curve import SIZES
from holdfast.errors import HoldfastError
from holdfast.ranking import Ranking
from holdfast.robustness import Judge, MinNorm, Robustness


@dataclass(frozen=True, eq=False)
class Diagnostics(Result):
    """Radii with the top features held: ``[B, P]`` of a judge and, seed by seed, ``[seeds, B, P]`` of one search.

    ``violations``: of the pairs of nested subsets, the share in which the larger one was found harder to leave than the
    smaller, each searched alone. That cannot be true of the exact radii, and is what sharing witnesses repairs.
    """

    sizes: tuple[float, ...]
    judged: Tensor
    searched: Tensor
    violations: float
    judge: str
    search: str

    def censored(self) -> Tensor:
        """The share of cases, at each size, for which no change was found by the judge."""
        return torch.isinf(self.judged).double().mean(0)

    def gap(self) -> Tensor:
        """How many times looser one search is than the judge, ``[seeds, B, P]``; NaN where either found nothing."""
        ratio = self.searched / self.judged
        return torch.where(torch.isfinite(ratio) & (self.judged > 0), ratio, torch.nan)

    def spread(self) -> Tensor:
        """The largest over the smallest radius among seeds, ``[B, P]``; NaN where some seed found nothing."""
        ratio = self.searched.amax(0) / self.searched.amin(0)
        return torch.where(torch.isfinite(ratio), ratio, torch.nan)

    def table(self) -> list[Row]:
        gap, spread = self.gap(), self.spread()
        return [
            {
                "share held": size,
                "censored by the judge": float(self.censored()[place]),
                "censored by one search": float(torch.isinf(self.searched[:, :, place]).double().mean()),
                "one search / judge, mean": _known(gap[:, :, place].nanmean()),
                "one search / judge, largest": _known(_nanmax(gap[:, :, place])),
                "largest / smallest of seeds, mean": _known(spread[:, place].nanmean()),
                "monotonicity violations": self.violations,
            }
            for place, size in enumerate(self.sizes)
        ]

    def plot(self, ax: Any) -> None:
        gap = self.gap().flatten(0, 1)
        mean = gap.nanmean(0).nan_to_num(1).tolist()
        high = [_nanmax(gap[:, place]).nan_to_num(1).item() for place in range(gap.shape[1])]
        low = [-_nanmax(-gap[:, place]).nan_to_num(-1).item() for place in range(gap.shape[1])]
        names = [f"{size:.0%} held" for size in self.sizes]
        bars(ax, names, mean, low, high, "one search / judge")
        ax.axvline(1, color="#334155", linewidth=0.8)


def diagnostics(
    cases: Cases,
    ranking: Ranking,
    *,
    sizes: Sequence[float] = SIZES,
    judge: Robustness | None = None,
    search: MinNorm | None = None,
    seeds: int = 5,
    progress: Progress | None = None,
) -> Diagnostics:
    """Measure the same subsets by a judge, by one search from several seeds, and by one search each on its own."""
    judge, search = judge or Judge(), search or MinNorm(steps=40, restarts=2)
    if seeds < 2:
        raise HoldfastError(f"a spread needs at least two seeds, got {seeds}.")
    moving = ~ranking.top(sizes)
    judged = judge(cases, moving).radius
    searched = []
    for seed in range(seeds):
        searched.append(replace(search, seed=search.seed + seed)(cases, moving).radius)
        if progress is not None:
            progress(seed + 1, seeds + 1)
    # Subsets shrink along the sizes; asked one at a time, no witness is shared between them.
    alone = torch.cat([search(cases, moving[:, place : place + 1]).radius for place in range(len(sizes))], 1)
    rises = alone[:, :-1] > alone[:, 1:]
    return Diagnostics(
        tuple(float(size) for size in sizes),
        judged.cpu(),
        torch.stack(searched).cpu(),
        float(rises.double().mean()) if rises.numel() else 0.0,
        repr(judge),
        repr(search),
    )


def _nanmax(values: Tensor) -> Tensor:
    known = values[~values.isnan()]
    return known.max() if len(known) else torch.tensor(torch.nan)


def _known(value: Tensor) -> float | None:
    return None if bool(value.isnan()) else float(value)
