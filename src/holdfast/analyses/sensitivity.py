"""How much of an explanation survives a small change of the input?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from holdfast.analyses.result import Result, Row, bars, known, means
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.draws import normal
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.ranking import check_size


@dataclass(frozen=True, eq=False)
class Sensitivity(Result):
    """SENS ``[explainers, B]``: 1 less the smallest overlap of the top features at x and at a neighbour.

    The paper's formula prints a maximum, which the neighbour y = x makes 0 whatever the explanation; its text speaks of
    the worst case, which is what this is. Over sampled neighbours, so a lower bound. NaN where the explanation of x, or
    those of all neighbours, had no order to speak of.
    """

    explainers: tuple[str, ...]
    values: Tensor
    radius: float
    samples: int
    top: float | int

    def table(self) -> list[Row]:
        rows = zip(self.explainers, *means(self.values), self.values.isnan().sum(1).tolist(), strict=True)
        return [
            {
                "explainer": name,
                "sensitivity": known(mean),
                "low": known(low),
                "high": known(high),
                "cases": self.values.shape[1] - excluded,
                "excluded": excluded,
            }
            for name, mean, low, high, excluded in rows
        ]

    def plot(self, ax: Any) -> None:
        bars(ax, list(self.explainers), *means(self.values), "sensitivity")
        ax.set_xlim(0, 1)


def sensitivity(
    cases: Cases,
    explainers: Mapping[str, Explainer],
    *,
    radius: float = 0.1,
    top: float | int = 0.2,
    samples: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> Sensitivity:
    """Explain ``samples`` neighbours of every input, at most ``radius`` away (L2) and inside the bounds.

    Neighbours are asked about the class of x, and are drawn alike for every case.
    """
    check_size(top, "top")
    if not explainers or not radius > 0 or samples < 1:
        raise HoldfastError(f"sensitivity needs explainers, radius > 0 and samples >= 1, got {radius} and {samples}.")
    near = neighbours(cases, radius, samples, seed)
    found = []
    for explainer in explainers.values():
        here, there = explainer(cases), explainer(near)
        own, theirs = here.top([top])[:, 0], there.top([top])[:, 0].view(len(cases), samples, -1)
        overlap = (own[:, None] & theirs).sum(2).double() / own.sum(1, keepdim=True)
        # An order that means nothing says nothing about the next one.
        overlap = overlap.masked_fill(there.uninformative.view(len(cases), samples), math.inf).amin(1)
        found.append((1 - overlap).masked_fill(here.uninformative | torch.isinf(overlap), math.nan))
        if progress is not None:
            progress(len(found), len(explainers))
    return Sensitivity(tuple(explainers), torch.stack(found).cpu(), radius, samples, top)


def neighbours(cases: Cases, radius: float, samples: int, seed: int = 0) -> Cases:
    """``B * samples`` cases: each input moved within its features by noise, uniform in the ball of ``radius``."""
    free = (cases.features.ids >= 0).expand(-1, *cases.x.shape[1:])
    width = cases.x[0].numel()
    noise = torch.stack([normal(width, seed, draw) for draw in range(samples)]).to(cases.x)
    noise = noise.view(1, samples, *cases.x.shape[1:])
    share = torch.special.ndtr(normal(samples, seed, samples)).to(cases.x)[None]
    length = radius * share ** (1 / free.flatten(1).sum(1, keepdim=True))
    noise = torch.where(free[:, None], noise, 0)
    size = noise.flatten(2).norm(dim=2).clamp_min(torch.finfo(noise.dtype).tiny)
    noise = noise * (length / size).reshape(len(noise), samples, *[1] * (cases.x.ndim - 1))
    x = (cases.x[:, None] + noise).flatten(0, 1)
    x = x if cases.model.low is None else x.clamp(cases.model.low, cases.model.high)
    return replace(cases[torch.arange(len(cases), device=x.device).repeat_interleave(samples)], x=x)
