"""Results of analyses: rows for a table, a plot, and means with intervals."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from holdfast.draws import generator
from holdfast.table import Estimate

Row = dict[str, Any]
"""A row of a table: values by column."""
_BLOCK = 1000  # bootstrap samples drawn at once
_CACHED = 2**24  # most weights (128 MB) that are cached for the next interval over the same number of values


class Result(ABC):
    """The result of an analysis: a frozen dataclass of tensors.

    ``pandas.DataFrame(result.table())`` makes a data frame of it.
    """

    @abstractmethod
    def table(self) -> list[Row]:
        """Return flat rows with the same columns; None where a value is undefined."""

    @abstractmethod
    def plot(self, ax: Any) -> None:
        """Draw the result.

        Args:
            ax: Axes of matplotlib.
        """


def known(value: float | Tensor) -> float | None:
    """Return a value for a table: a float, or None if it is NaN."""
    number = float(value)
    return None if math.isnan(number) else number


def bootstrap(
    values: Tensor, resamples: int = 10_000, seed: int = 0, level: float = 0.05, over: Tensor | None = None
) -> tuple[float, float]:
    """Return the bootstrap percentile interval of a mean, or of a ratio of means.

    Args:
        values: Values ``[B]``.
        resamples: Number of bootstrap samples.
        seed: Seed of the draws.
        level: The interval covers ``1 - level``.
        over: Values ``[B]`` of the denominator, resampled in pairs with ``values``. None: there is none, and the
            interval is that of the mean.

    Returns:
        Both ends of the interval; NaN for fewer than two values.
    """
    if len(values) < 2:
        return math.nan, math.nan
    top, bottom = values.double().cpu(), None if over is None else over.double().cpu()
    samples = [
        weights @ top if bottom is None else (weights @ top) / (weights @ bottom)
        for weights in _resampled(len(values), resamples, seed % 2**63)
    ]
    ends = torch.tensor([level / 2, 1 - level / 2], dtype=torch.double)
    low, high = torch.quantile(torch.cat(samples), ends).tolist()
    return low, high


def _resampled(count: int, resamples: int, seed: int) -> Iterable[Tensor]:
    """Return the weight of each value in every bootstrap sample, ``[resamples, count]``, in blocks."""
    return _cached(count, resamples, seed) if count * resamples <= _CACHED else _drawn(count, resamples, seed)


@lru_cache(maxsize=2)
def _cached(count: int, resamples: int, seed: int) -> tuple[Tensor, ...]:
    """Return all blocks of weights, cached."""
    return tuple(_drawn(count, resamples, seed))


def _drawn(count: int, resamples: int, seed: int) -> Iterator[Tensor]:
    """Yield the blocks of weights."""
    drawing = generator(seed)
    for start in range(0, resamples, _BLOCK):
        drawn = torch.randint(count, (min(_BLOCK, resamples - start), count), generator=drawing)
        times = torch.zeros(drawn.shape, dtype=torch.double)
        yield times.scatter_add_(1, drawn, torch.full_like(times, 1 / count))


def estimate(values: Tensor) -> Estimate | None:
    """Return the mean of ``values [B]`` with its 95 % interval. NaN is left out; None if nothing else is there."""
    values = values[~values.isnan()]
    return Estimate(float(values.double().mean()), *bootstrap(values)) if len(values) else None


def means(values: Tensor) -> tuple[list[float], list[float], list[float]]:
    """Return the means of the rows of ``values [M, B]`` and both ends of their 95 % intervals. NaN is left out."""
    rows = [row[~row.isnan()] for row in values]
    ends = [bootstrap(row) for row in rows]
    middle = [float(row.mean()) for row in rows]
    return middle, [low for low, _ in ends], [high for _, high in ends]


def plain(name: str) -> str:
    """Return a name that matplotlib shows as it is: ``$`` would start a formula, a first ``_`` would hide the name."""
    return ("\u200b" + name if name.startswith("_") else name).replace("$", r"\$")


def bars(ax: Any, names: list[str], values: list[float], low: list[float], high: list[float], label: str) -> None:
    """Draw horizontal bars with intervals, the first one on top. NaN is not drawn.

    Args:
        ax: Axes of matplotlib.
        names: The name of each bar.
        values: The length of each bar.
        low: The lower end of each interval.
        high: The upper end of each interval.
        label: The label of the axis of values.
    """
    places = range(len(names))
    below = [value - least for value, least in zip(values, low, strict=True)]
    above = [most - value for value, most in zip(values, high, strict=True)]
    ax.barh(places, values, xerr=[below, above], color="#94a3b8", ecolor="#334155", capsize=2)
    ax.set_yticks(list(places), [plain(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(label)
