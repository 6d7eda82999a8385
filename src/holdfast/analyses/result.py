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
_BLOCK = 1000  # bootstrap samples drawn at once
_KEPT = 2**24  # numbers of a draw (128 MB) that are kept for the next interval over as many values


class Result(ABC):
    """A frozen dataclass of tensors. ``pandas.DataFrame(result.table())`` is its table."""

    @abstractmethod
    def table(self) -> list[Row]:
        """Return flat rows with the same columns; None where a value is undefined."""

    @abstractmethod
    def plot(self, ax: Any) -> None:
        """Draw the result on matplotlib axes."""


def known(value: float | Tensor) -> float | None:
    """Return a number for a table: None if it is NaN."""
    number = float(value)
    return None if math.isnan(number) else number


def bootstrap(
    values: Tensor, resamples: int = 10_000, seed: int = 0, level: float = 0.05, over: Tensor | None = None
) -> tuple[float, float]:
    """Return the bootstrap percentile interval of a mean, or of a ratio of means.

    Args:
        values: ``[B]``.
        resamples: How many bootstrap samples to draw.
        seed: Seed of the draws.
        level: The interval covers ``1 - level``.
        over: ``[B]``: the interval is of the mean of ``values`` over the mean of these, resampled in pairs.

    Returns:
        Both ends; NaN for fewer than two values.
    """
    if len(values) < 2:
        return math.nan, math.nan
    top, bottom = values.double().cpu(), None if over is None else over.double().cpu()
    found = [
        weights @ top if bottom is None else (weights @ top) / (weights @ bottom)
        for weights in _resampled(len(values), resamples, seed % 2**63)
    ]
    ends = torch.tensor([level / 2, 1 - level / 2], dtype=torch.double)
    low, high = torch.quantile(torch.cat(found), ends).tolist()
    return low, high


def _resampled(count: int, resamples: int, seed: int) -> Iterable[Tensor]:
    """Return the weight of each value in every resample, ``[resamples, count]``, in blocks."""
    return _kept(count, resamples, seed) if count * resamples <= _KEPT else _drawn(count, resamples, seed)


@lru_cache(maxsize=2)
def _kept(count: int, resamples: int, seed: int) -> tuple[Tensor, ...]:
    return tuple(_drawn(count, resamples, seed))


def _drawn(count: int, resamples: int, seed: int) -> Iterator[Tensor]:
    drawing = generator(seed)
    for start in range(0, resamples, _BLOCK):
        drawn = torch.randint(count, (min(_BLOCK, resamples - start), count), generator=drawing)
        times = torch.zeros(drawn.shape, dtype=torch.double)
        yield times.scatter_add_(1, drawn, torch.full_like(times, 1 / count))


def estimate(values: Tensor) -> Estimate | None:
    """Return mean and 95 % interval of ``values [B]`` without NaN; None if nothing is left."""
    values = values[~values.isnan()]
    return Estimate(float(values.double().mean()), *bootstrap(values)) if len(values) else None


def means(values: Tensor) -> tuple[list[float], list[float], list[float]]:
    """Return mean and both ends of the 95 % interval of every row of ``values [M, B]``, without NaN."""
    rows = [row[~row.isnan()] for row in values]
    ends = [bootstrap(row) for row in rows]
    middle = [float(row.mean()) for row in rows]
    return middle, [low for low, _ in ends], [high for _, high in ends]


def plain(name: str) -> str:
    """Return a name as matplotlib shows it literally: dollars would start a formula, an underscore would hide it."""
    return ("\u200b" + name if name.startswith("_") else name).replace("$", r"\$")


def bars(ax: Any, names: list[str], values: list[float], low: list[float], high: list[float], label: str) -> None:
    """Draw horizontal bars with intervals, the first on top; NaN is not drawn."""
    places = range(len(names))
    below = [value - least for value, least in zip(values, low, strict=True)]
    above = [most - value for value, most in zip(values, high, strict=True)]
    ax.barh(places, values, xerr=[below, above], color="#94a3b8", ecolor="#334155", capsize=2)
    ax.set_yticks(list(places), [plain(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(label)
