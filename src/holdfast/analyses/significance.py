"""Is one explanation better than the others? Paired tests over the same cases, with and without Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from holdfast.analyses.result import Result, Row, bars, bootstrap, known
from holdfast.errors import HoldfastError

Verdict = Literal["win", "draw", "loss", "undefined"]


@dataclass(frozen=True)
class Comparison:
    """One method against another by one criterion, over ``cases`` pairs; positive ``gain`` is for the first.

    Intervals are the paired bootstrap's, of the mean gain and of the ratio of means (where both are positive). p-values
    are two-sided, of the paired t-test and of Wilcoxon's signed ranks, raw and after Holm's correction over all
    comparisons made together. What one case alone cannot tell is NaN, and is undefined rather than a draw.
    """

    criterion: str
    method: str
    other: str
    cases: int
    excluded: int
    gain: float
    interval: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]
    t: float
    p_t: float
    p_wilcoxon: float
    holm_t: float
    holm_wilcoxon: float
    level: float

    @property
    def verdict(self) -> Verdict:
        """By the raw t-test, as the paper counts."""
        return self._verdict(self.p_t)

    @property
    def corrected(self) -> Verdict:
        """By the t-test after Holm's correction."""
        return self._verdict(self.holm_t)

    def _verdict(self, p: float) -> Verdict:
        if math.isnan(p):
            return "undefined"
        if p >= self.level:
            return "draw"
        return "win" if self.gain > 0 else "loss"


@dataclass(frozen=True)
class Significance(Result):
    """One method against all others over all criteria."""

    comparisons: tuple[Comparison, ...]

    def table(self) -> list[Row]:
        return [
            {
                "criterion": c.criterion,
                "method": c.method,
                "against": c.other,
                "verdict": c.verdict,
                "corrected": c.corrected,
                "gain": known(c.gain),
                "low": known(c.interval[0]),
                "high": known(c.interval[1]),
                "ratio of means": known(c.ratio),
                "t": known(c.t),
                "p": known(c.p_t),
                "p Holm": known(c.holm_t),
                "p Wilcoxon": known(c.p_wilcoxon),
                "p Wilcoxon Holm": known(c.holm_wilcoxon),
                "cases": c.cases,
                "excluded": c.excluded,
            }
            for c in self.comparisons
        ]

    def counts(self, corrected: bool = False) -> dict[Verdict, int]:
        """How many comparisons are won, drawn, lost, undefined."""
        told = [c.corrected if corrected else c.verdict for c in self.comparisons]
        kinds: tuple[Verdict, ...] = ("win", "draw", "loss", "undefined")
        return {kind: told.count(kind) for kind in kinds}

    def plot(self, ax: Any) -> None:
        """The gain over each other method with its interval."""
        names = [f"{c.other}, {c.criterion}" for c in self.comparisons]
        low, high = ([c.interval[end] for c in self.comparisons] for end in (0, 1))
        bars(ax, names, [c.gain for c in self.comparisons], low, high, "gain")
        ax.axvline(0, color="#334155", linewidth=0.8)


def significance(
    values: Mapping[str, Mapping[str, Tensor]],
    method: str,
    higher_is_better: Mapping[str, bool],
    *,
    level: float = 0.05,
    resamples: int = 10_000,
    seed: int = 0,
) -> Significance:
    """Compare ``method`` with every other one: ``values[criterion][method]`` is ``[B]``, the same cases in each.

    Pairs with a value that is not finite are left out and counted.
    """
    if not 0 < level < 1 or resamples < 1:
        raise HoldfastError(f"level must be between 0 and 1 and resamples at least 1, got {level} and {resamples}.")
    compared = [
        _compare(criterion, method, other, by_method, higher_is_better, level, resamples, seed)
        for criterion, by_method in values.items()
        for other in by_method
        if other != method
    ]
    if not compared:
        raise HoldfastError("there is nothing to compare: give at least two methods for one criterion.")
    corrected = [holm([getattr(c, name) for c in compared]) for name in ("p_t", "p_wilcoxon")]
    told = zip(compared, *corrected, strict=True)
    return Significance(tuple(replace(c, holm_t=t, holm_wilcoxon=w) for c, t, w in told))


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction of p-values; NaN stays and does not count as a comparison."""
    known = sorted((value, place) for place, value in enumerate(p) if not math.isnan(value))
    result, largest = [math.nan] * len(p), 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - rank)))
        result[place] = largest
    return result


def _compare(
    criterion: str,
    method: str,
    other: str,
    by_method: Mapping[str, Tensor],
    higher_is_better: Mapping[str, bool],
    level: float,
    resamples: int,
    seed: int,
) -> Comparison:
    if method not in by_method or criterion not in higher_is_better:
        raise HoldfastError(f"{criterion} needs values of {method!r} and an entry in higher_is_better.")
    ours, theirs = (torch.as_tensor(by_method[name]).double().cpu() for name in (method, other))
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise HoldfastError(
            f"{criterion}: {method} has values of shape {tuple(ours.shape)} and {other} of {tuple(theirs.shape)}; "
            "paired tests need one for each of the same cases."
        )
    finite = torch.isfinite(ours) & torch.isfinite(theirs)
    sign = 1.0 if higher_is_better[criterion] else -1.0
    gain = (sign * (ours - theirs))[finite]
    t, p_t, p_wilcoxon = _tests(gain.numpy())
    undefined = (math.nan, math.nan)
    positive = len(gain) > 0 and float(ours[finite].mean()) > 0 and float(theirs[finite].mean()) > 0
    return Comparison(
        criterion=criterion,
        method=method,
        other=other,
        cases=len(gain),
        excluded=int((~finite).sum()),
        gain=float(gain.mean()) if len(gain) else math.nan,
        interval=bootstrap(gain, resamples, seed, level),
        ratio=float(ours[finite].mean() / theirs[finite].mean()) if positive else math.nan,
        ratio_interval=bootstrap(ours[finite], resamples, seed, level, theirs[finite]) if positive else undefined,
        t=t,
        p_t=p_t,
        p_wilcoxon=p_wilcoxon,
        holm_t=math.nan,
        holm_wilcoxon=math.nan,
        level=level,
    )


def _tests(gain: np.ndarray) -> tuple[float, float, float]:
    """Return Student's t, its p-value, and Wilcoxon's p-value; NaN for fewer than two gains."""
    from scipy import stats  # takes half a second to import

    if len(gain) < 2:
        return math.nan, math.nan, math.nan
    if not gain.any():  # the same values for all: no difference at all
        return 0.0, 1.0, 1.0
    if gain.std() <= 1e-12 * abs(gain).max():  # the same gain for all: as sure as can be
        return math.copysign(math.inf, gain[0]), 0.0, float(stats.wilcoxon(gain).pvalue)
    tested = stats.ttest_1samp(gain, 0)
    return float(tested.statistic), float(tested.pvalue), float(stats.wilcoxon(gain).pvalue)
