"""Diagnostics: how exact the reported radii are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from holdfast.analyses.analysis import Analysis, Computed, Draw, Stored, Subject
from holdfast.analyses.result import Result, Row, bars, known
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.curve import SIZES
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.models.model import Access
from holdfast.prose import counted
from holdfast.ranking import Ranking, size_text
from holdfast.robustness import Judge, MinNorm, Robustness
from holdfast.robustness.decision_based import DecisionBased
from holdfast.settings import Count, Range
from holdfast.table import Table

SEARCH = MinNorm(steps=40, restarts=2)
"""The single search that is compared with the judge by default."""
DECISIONS = DecisionBased.quick()
"""The same for models without gradients, and for tables."""


@dataclass(frozen=True, eq=False)
class Diagnostics(Result):
    """Radii with the top features fixed, measured in several ways.

    Attributes:
        sizes: The P sizes of the fixed set.
        judged: Radii of the judge, ``[B, P]``.
        searched: Radii of a single search from several seeds, ``[seeds, B, P]``.
        alone: Radii of a single search when every size is measured separately, ``[B, P]``.
        moving: The number of features that may move, ``[B, P]``.
        judge: The settings of the judge.
        search: The settings of the single search.
    """

    sizes: tuple[float, ...] | tuple[int, ...]
    judged: Tensor
    searched: Tensor
    alone: Tensor
    moving: Tensor
    judge: str
    search: str

    def censored(self) -> Tensor:
        """Return the share of cases for which the judge found no change, ``[P]``."""
        return torch.isinf(self.judged).double().mean(0)

    def gap(self) -> Tensor:
        """Return the radius of a single search over the judge's, ``[seeds, B, P]``; NaN where either is censored."""
        both = torch.isfinite(self.searched) & torch.isfinite(self.judged) & (self.judged > 0)
        return torch.where(both, self.searched / self.judged, torch.nan)

    def spread(self) -> Tensor:
        """Return the largest over the smallest radius among seeds, ``[B, P]``; NaN where one is censored."""
        ratio = self.searched.amax(0) / self.searched.amin(0)
        return torch.where(torch.isfinite(ratio), ratio, torch.nan)

    def violations(self) -> Tensor:
        """Return how often freeing more features increased the radius, ``[P]``. Exact radii never increase.

        Sharing witnesses between subsets prevents it. NaN for the first size, and where a size adds no feature.
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

    def draw(self, ax: Any) -> None:
        gap = self.gap().flatten(0, 1)
        columns = [gap[:, place] for place in range(gap.shape[1])]
        low, high = ([sign * float(_nanmax(sign * column)) for column in columns] for sign in (-1, 1))
        names = [f"{size_text(size)} held" for size in self.sizes]
        bars(ax, names, gap.nanmean(0).tolist(), low, high, "one search / judge")
        ax.set_xlim(left=min([1.0, *(end for end in low if end < 1)]))  # 1 for a search as good as the judge


def diagnostics(
    cases: Cases,
    ranking: Ranking,
    *,
    sizes: Sequence[float] | Sequence[int] = SIZES,
    judge: Robustness | None = None,
    search: Robustness | None = None,
    seeds: int = 5,
    progress: Progress | None = None,
) -> Diagnostics:
    """Measure the same subsets by a judge, by a single search from several seeds, and by one search for each subset.

    Args:
        cases: The cases of the ranking.
        ranking: The ranking whose top features are fixed.
        sizes: The sizes of the fixed set: rising shares (float) or numbers (int).
        judge: The judge; default ``Judge()``.
        search: The single search, which has a seed; default ``SEARCH``, or ``DECISIONS`` without gradients.
        seeds: The number of seeds of the single search.
        progress: Called with (done, total) measurements.

    Returns:
        The radii of all measurements.

    Raises:
        HoldfastError: There are fewer than two seeds, or sizes do not rise.
    """
    judge = judge or Judge()
    search = search or (SEARCH if _has_gradients(cases) else DECISIONS)
    varied: Any = search
    if seeds < 2:
        raise HoldfastError(f"a spread needs at least two seeds, got {seeds}.")
    if not sizes or list(sizes) != sorted(set(sizes)):
        raise HoldfastError(f"sizes must rise, got {list(sizes)}.")
    moving = ~ranking.top(sizes)
    measurements: list[tuple[Robustness, Tensor]] = [(judge, moving)]
    measurements += [(replace(varied, seed=varied.seed + seed), moving) for seed in range(seeds)]
    # Measured separately, subsets share no witness.
    measurements += [(search, moving[:, place : place + 1]) for place in range(len(sizes))]
    radii = []
    for method, subsets in measurements:
        radii.append(method(cases, subsets).radius.cpu())
        if progress is not None:
            progress(len(radii), len(measurements))
    return Diagnostics(
        tuple(sizes),
        radii[0],
        torch.stack(radii[1 : 1 + seeds]),
        torch.cat(radii[1 + seeds :], 1),
        moving.sum(2).cpu(),
        repr(judge),
        repr(search),
    )


def _has_gradients(cases: Cases) -> bool:
    """Return whether a search along gradients ends at inputs."""
    domain = cases.model.domain
    return cases.model.access >= Access.GRADIENTS and (domain is None or domain.is_everything)


def _nanmax(values: Tensor) -> Tensor:
    known = values[~values.isnan()]
    return known.max() if len(known) else torch.tensor(torch.nan)


@dataclass(frozen=True)
class DiagnosticsAnalysis(Analysis):
    """How exact the radii of the main method's top features are.

    Attributes:
        examples: The number of examples to use, from the first on.
        judge: The robustness method that measures radii.
        seeds: The number of seeds of the single search.
        sizes: The sizes of the fixed set; None: the sizes of the experiment.
    """

    examples: Count = 20
    judge: Robustness = field(default_factory=Judge)
    seeds: Annotated[int, Range(2)] = 5
    sizes: tuple[float, ...] | tuple[int, ...] | None = None
    name: ClassVar[str] = "diagnostics"
    title: ClassVar[str] = "How far radii can be trusted"
    subject: ClassVar[Subject] = Subject.MAIN_RANKING

    def compute(self, cases: Cases, subject: Explainer | Ranking, progress: Progress | None) -> Computed:
        assert isinstance(subject, Ranking)
        sizes = SIZES if self.sizes is None else self.sizes
        result = diagnostics(cases, subject, sizes=sizes, judge=self.judge, seeds=self.seeds, progress=progress)
        tensors = {"judged": result.judged, "searched": result.searched, "alone": result.alone, "moving": result.moving}
        arrays = {name: value.numpy() for name, value in tensors.items()} | {"sizes": np.array(sizes)}
        return Computed(arrays if _has_gradients(cases) else arrays | {"by_decisions": np.array([True])})

    def rows(self, cases: Cases, explainer: Explainer) -> int | None:
        # The judge once, the search from every seed, and the search once more for every size.
        search = (SEARCH if _has_gradients(cases) else DECISIONS).rows
        each = None if self.judge.rows is None or search is None else self.judge.rows + (self.seeds + 1) * search
        return None if each is None else each * len(SIZES if self.sizes is None else self.sizes) * len(cases)

    @classmethod
    def read(cls, stored: Stored) -> Diagnostics | None:
        for blocks in stored.arrays(cls.name).values():
            joined = {
                name: torch.from_numpy(np.concatenate([one[name] for one in blocks], int(name == "searched")))
                for name in ("judged", "searched", "alone", "moving")
            }
            search = repr(DECISIONS if "by_decisions" in blocks[0] else SEARCH)
            sizes = tuple(blocks[0]["sizes"].tolist())
            return Diagnostics(sizes, **joined, judge=stored.settings_of(cls.name), search=search)
        return None

    @classmethod
    def tables(cls, result: Diagnostics, stored: Stored) -> list[Table]:
        rows = result.table()
        columns = [key for key in rows[0] if key not in ("cases", "of ratios")]
        cells = tuple((size_text(row["held"]), *(row[key] for key in columns[1:])) for row in rows)
        examples = counted(len(result.judged), "example")
        note = (
            f"The top features of {stored.main} held, on {examples}: how many times larger the radius of a single "
            "search is than the judge's, how far seeds differ, and how often freeing more features increased the "
            "radius (impossible if exact)."
        )
        return [Table("diagnostics", "How far radii can be trusted", tuple(columns), cells, note)]

    @classmethod
    def figures(cls, result: Diagnostics) -> dict[str, Draw]:
        return {"Radius of a single search over the judge's": result.draw}
