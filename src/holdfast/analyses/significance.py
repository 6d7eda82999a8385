"""Significance: paired tests of one method against the others, with and without Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from holdfast.analyses.intervals import Sampled, bootstraps
from holdfast.analyses.result import Result, Row, bars, known
from holdfast.errors import HoldfastError
from holdfast.palette import INK, OTHER, RELEVANT

if TYPE_CHECKING:
    from holdfast.figures import Plot  # imports matplotlib

Verdict = Literal["win", "draw", "loss", "undefined"]
"""The outcome of a comparison for the first method; undefined if there are fewer than two pairs."""


@dataclass(frozen=True)
class Comparison:
    """One method against another by one criterion, in pairs over the same cases.

    Intervals are percentiles of the paired bootstrap. p-values are two-sided. What fewer than two pairs cannot show is
    NaN.

    Attributes:
        criterion: The name of the criterion.
        method: The first method.
        other: The method it is compared with.
        cases: Pairs that were compared.
        excluded: Pairs that were left out, because a value is not finite.
        gain: The mean difference; positive if the first method is better.
        interval: The interval of ``gain``.
        ratio: The mean of the first method over that of the other; NaN unless both are positive.
        ratio_interval: The interval of ``ratio``.
        t: The statistic of the paired t-test.
        p_t: Its p-value.
        p_wilcoxon: The p-value of Wilcoxon's signed-rank test.
        holm_t: ``p_t`` after Holm's correction over all comparisons that were made together.
        holm_wilcoxon: ``p_wilcoxon`` after Holm's correction.
        level: A p-value below it is significant. Intervals cover ``1 - level``.
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
        """The verdict of the t-test without correction, which the paper counts."""
        return self._verdict(self.p_t)

    @property
    def corrected(self) -> Verdict:
        """The verdict of the t-test after Holm's correction."""
        return self._verdict(self.holm_t)

    def _verdict(self, p: float) -> Verdict:
        """Return the verdict of a test with this p-value."""
        if math.isnan(p):
            return "undefined"
        if p >= self.level:
            return "draw"
        return "win" if self.gain > 0 else "loss"


@dataclass(frozen=True)
class Significance(Result):
    """One method against all others by all criteria.

    Attributes:
        comparisons: One for each criterion and other method.
    """

    comparisons: tuple[Comparison, ...]

    def table(self) -> list[Row]:
        """Return one row for each comparison."""
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
        """Count the comparisons by verdict.

        Args:
            corrected: Use the verdicts after Holm's correction.

        Returns:
            The number of wins, draws, losses and undefined comparisons.
        """
        verdicts = [c.corrected if corrected else c.verdict for c in self.comparisons]
        kinds: tuple[Verdict, ...] = ("win", "draw", "loss", "undefined")
        return {kind: verdicts.count(kind) for kind in kinds}

    def draw(self, ax: Any) -> None:
        """Draw the gain over each other method with its interval; darker where it holds after Holm's correction."""
        from holdfast.figures import plain  # whoever has axes has loaded matplotlib

        criteria, methods = ({getattr(c, key) for c in self.comparisons} for key in ("criterion", "method"))
        names = [
            (f"{c.method} over " if len(methods) > 1 else "")
            + c.other
            + (f", {c.criterion}" if len(criteria) > 1 else "")
            for c in self.comparisons
        ]
        low, high = ([c.interval[end] for c in self.comparisons] for end in (0, 1))
        label = "gain" if len(methods) > 1 else f"gain of {plain(self.comparisons[0].method)}"
        bars(ax, names, [c.gain for c in self.comparisons], low, high, label)
        for patch, one in zip(ax.patches[-len(names) :], self.comparisons, strict=True):
            patch.set_facecolor(RELEVANT if one.corrected in ("win", "loss") else OTHER)
        ax.axvline(0, color=INK, linewidth=0.8)

    def plot(self) -> Plot:
        """Return a figure with one panel for each criterion."""
        from matplotlib.patches import Patch

        from holdfast.figures import Plot, cut, house, plain, shorten  # imports matplotlib

        criteria = list(dict.fromkeys(c.criterion for c in self.comparisons))
        plot = Plot(height=0.6 + 0.75 * len(criteria) + 0.25 * len(self.comparisons))
        with house():
            for ax, name in zip(plot.panels(len(criteria)), criteria, strict=True):
                Significance(tuple(c for c in self.comparisons if c.criterion == name)).draw(ax)
                ax.set_title(cut(plain(name)))
                shorten(ax)
            kinds = {"difference holds after Holm's correction": RELEVANT, "no difference can be shown": OTHER}
            handles = [Patch(color=colour, label=label) for label, colour in kinds.items()]
            plot.legend(handles=handles, loc="outside lower center", ncols=2)
        return plot


def significance(
    values: Mapping[str, Mapping[str, Tensor]],
    method: str | None,
    higher_is_better: Mapping[str, bool],
    *,
    level: float = 0.05,
    resamples: int = 10_000,
    seed: int = 0,
) -> Significance:
    """Compare a method with every other one, or every method with every other one, by paired tests.

    >>> values = {"Insertion": {"ours": torch.tensor([3.0, 4.0, 6.0]), "other": torch.tensor([1.0, 2.0, 3.0])}}
    >>> significance(values, "ours", {"Insertion": True}).counts()
    {'win': 1, 'draw': 0, 'loss': 0, 'undefined': 0}

    Args:
        values: ``values[criterion][method]`` is a tensor ``[B]`` with one value for each case, the same cases for all
            methods. Pairs with a value that is not finite are left out and counted.
        method: The method to compare with the others. None: compare every pair of methods, in the order of ``values``.
        higher_is_better: By criterion: whether a higher value is better.
        level: A p-value below it is significant. Intervals cover ``1 - level``.
        resamples: Number of bootstrap samples.
        seed: Seed of the bootstrap.

    Returns:
        The comparisons, corrected together.

    Raises:
        HoldfastError: There is nothing to compare, values do not come in pairs, or an argument is out of range.
    """
    if not 0 < level < 1 or resamples < 1:
        raise HoldfastError(f"level must be between 0 and 1 and resamples at least 1, got {level} and {resamples}.")
    pairs = [
        _compare(criterion, one, other, by_method, higher_is_better, level)
        for criterion, by_method in values.items()
        for one, other in _pairs(by_method, method)
    ]
    if not pairs:
        raise HoldfastError("there is nothing to compare: give at least two methods for one criterion.")
    sampled = [one for _, *both in pairs for one in both]
    ends = iter(bootstraps(sampled, resamples, seed, level))  # together: they share their draws
    comparisons = [replace(c, interval=next(ends), ratio_interval=next(ends)) for c, *_ in pairs]
    corrected = [holm([getattr(c, name) for c in comparisons]) for name in ("p_t", "p_wilcoxon")]
    triples = zip(comparisons, *corrected, strict=True)
    return Significance(tuple(replace(c, holm_t=t, holm_wilcoxon=w) for c, t, w in triples))


def _pairs(by_method: Mapping[str, Tensor], method: str | None) -> Iterable[tuple[str, str]]:
    """Return the pairs of methods to compare."""
    if method is None:
        return combinations(by_method, 2)
    return [(method, other) for other in by_method if other != method]


def holm(p: list[float]) -> list[float]:
    """Correct p-values for multiple comparisons by Holm's step-down method (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    Args:
        p: The p-values. NaN stays NaN and does not count as a comparison.

    Returns:
        The corrected p-values, in the same order.
    """
    defined = sorted((value, place) for place, value in enumerate(p) if not math.isnan(value))
    result, largest = [math.nan] * len(p), 0.0
    for rank, (value, place) in enumerate(defined):
        largest = max(largest, min(1.0, value * (len(defined) - rank)))
        result[place] = largest
    return result


def _compare(
    criterion: str,
    method: str,
    other: str,
    by_method: Mapping[str, Tensor],
    higher_is_better: Mapping[str, bool],
    level: float,
) -> tuple[Comparison, Sampled, Sampled]:
    """Compare two methods by one criterion, without intervals and corrected p-values.

    Returns:
        The comparison, and what its two intervals are made from.
    """
    if method not in by_method or criterion not in higher_is_better:
        raise HoldfastError(f"{criterion} needs values of {method!r} and an entry in higher_is_better.")
    ours, theirs = (torch.as_tensor(by_method[name]).double().cpu() for name in (method, other))
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise HoldfastError(
            f"{criterion}: paired tests need one value for each of the same cases, got shapes {tuple(ours.shape)} of "
            f"{method} and {tuple(theirs.shape)} of {other}."
        )
    finite = torch.isfinite(ours) & torch.isfinite(theirs)
    sign = 1.0 if higher_is_better[criterion] else -1.0
    gain = (sign * (ours - theirs))[finite]
    t, p_t, p_wilcoxon = _tests(gain.numpy())
    undefined = (math.nan, math.nan)
    positive = len(gain) > 0 and float(ours[finite].mean()) > 0 and float(theirs[finite].mean()) > 0
    compared = Comparison(
        criterion=criterion,
        method=method,
        other=other,
        cases=len(gain),
        excluded=int((~finite).sum()),
        gain=float(gain.mean()) if len(gain) else math.nan,
        interval=undefined,
        ratio=float(ours[finite].mean() / theirs[finite].mean()) if positive else math.nan,
        ratio_interval=undefined,
        t=t,
        p_t=p_t,
        p_wilcoxon=p_wilcoxon,
        holm_t=math.nan,
        holm_wilcoxon=math.nan,
        level=level,
    )
    return compared, Sampled(gain), Sampled(ours[finite], theirs[finite]) if positive else Sampled(gain[:0])


def _tests(gain: np.ndarray) -> tuple[float, float, float]:
    """Return Student's t, its p-value and Wilcoxon's p-value; NaN for fewer than two gains."""
    from scipy import stats  # takes half a second to import

    if len(gain) < 2:
        return math.nan, math.nan, math.nan
    if not gain.any():  # both methods have the same values
        return 0.0, 1.0, 1.0
    if gain.std() <= 1e-12 * abs(gain).max():  # the same gain in every case: t is infinite
        return math.copysign(math.inf, gain[0]), 0.0, float(stats.wilcoxon(gain).pvalue)
    tested = stats.ttest_1samp(gain, 0)
    return float(tested.statistic), float(tested.pvalue), float(stats.wilcoxon(gain).pvalue)
