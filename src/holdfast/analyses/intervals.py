"""Bootstrap intervals of means and of ratios of means. Intervals over the same number of values share their draws."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from holdfast.draws import generator

_BLOCK = 1000  # bootstrap samples at once
_CACHED = 2**27  # most draws, of one byte each, that are kept for the next intervals over the same number of values
_KEPT = 10_000  # most intervals that are kept


class Sampled(NamedTuple):
    """What is resampled for one interval: the mean of ``values [B]``, or its ratio to the mean of ``over [B]``."""

    values: Tensor
    over: Tensor | None = None


Ends = tuple[float, float]
_known: dict[tuple[object, ...], Ends] = {}  # a report shows the same mean in several tables


def bootstrap(
    values: Tensor, resamples: int = 10_000, seed: int = 0, level: float = 0.05, over: Tensor | None = None
) -> Ends:
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
    return bootstraps([Sampled(values, over)], resamples, seed, level)[0]


def bootstraps(of: Sequence[Sampled], resamples: int = 10_000, seed: int = 0, level: float = 0.05) -> list[Ends]:
    """Return the intervals that ``bootstrap`` returns, one for each item. It is faster than one call for each.

    Args:
        of: The values, and what they are divided by.
        resamples: Number of bootstrap samples.
        seed: Seed of the draws.
        level: The intervals cover ``1 - level``.
    """
    settings = (resamples, seed % 2**63, level)
    exact = [Sampled(_exact(one.values), None if one.over is None else _exact(one.over)) for one in of]
    keys: list[tuple[object, ...]] = [
        (_digest(one.values), one.over is not None and _digest(one.over), *settings) for one in exact
    ]
    found = {key: _known[key] for key in keys if key in _known}
    new = {key: one for key, one in zip(keys, exact, strict=True) if key not in found}
    for count in {len(one.values) for one in new.values()}:
        alike = {key: one for key, one in new.items() if len(one.values) == count}
        found |= dict(zip(alike, _ends([*alike.values()], count, *settings), strict=True))
    if len(_known) + len(new) > _KEPT:
        _known.clear()
    _known.update(found)
    return [found[key] for key in keys]


def _exact(values: Tensor) -> Tensor:
    return values.detach().double().cpu()


def _digest(values: Tensor) -> bytes:
    return hashlib.sha256(values.numpy().tobytes()).digest()


def _ends(of: Sequence[Sampled], count: int, resamples: int, seed: int, level: float) -> list[Ends]:
    """Return the intervals over the same number of values."""
    if count < 2:
        return [(math.nan, math.nan)] * len(of)
    samples: list[list[Tensor]] = [[] for _ in of]
    for weights in _resampled(count, resamples, seed):
        for one, drawn in zip(of, samples, strict=True):
            top = weights @ one.values
            drawn.append(top if one.over is None else top / (weights @ one.over))
    ends = torch.tensor([level / 2, 1 - level / 2], dtype=torch.double)
    pairs = [torch.quantile(torch.cat(drawn), ends).tolist() for drawn in samples]
    return [(low, high) for low, high in pairs]


def _resampled(count: int, resamples: int, seed: int) -> Iterator[Tensor]:
    """Yield the weight of each value in every bootstrap sample, ``[resamples, count]``, in blocks.

    A block is valid until the next one is asked for.
    """
    once = np.full(256, 1 / count)
    once[0] = 0
    weight = once.cumsum()  # as often added as the value was drawn
    weights = torch.empty(min(_BLOCK, resamples), count, dtype=torch.double)
    small = count * resamples <= _CACHED
    blocks: Iterable[Tensor] = _cached(count, resamples, seed) if small else _drawn(count, resamples, seed)
    for times in blocks:
        rows = weights[: len(times)]
        np.take(weight, times.numpy(), out=rows.numpy(), mode="clip")
        yield rows


@lru_cache(maxsize=2)
def _cached(count: int, resamples: int, seed: int) -> tuple[Tensor, ...]:
    """Return all blocks of ``_drawn``, cached."""
    return tuple(_drawn(count, resamples, seed))


def _drawn(count: int, resamples: int, seed: int) -> Iterator[Tensor]:
    """Yield how often each value is drawn, in blocks of bytes. No value is drawn 256 times: the chance is below 1/255!.

    With fewer than 256 values, there are fewer than 256 draws.
    """
    drawing = generator(seed)
    for start in range(0, resamples, _BLOCK):
        drawn = torch.randint(count, (min(_BLOCK, resamples - start), count), generator=drawing)
        one = torch.ones((), dtype=torch.uint8).expand(drawn.shape)
        yield torch.zeros(drawn.shape, dtype=torch.uint8).scatter_add_(1, drawn, one)
