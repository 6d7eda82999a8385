"""Sensitivity: how much of an explanation changes when the input changes a little."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

import holdfast.published as published
from holdfast.analyses.analysis import Analysis, Computed, Draw, Stored, Subject
from holdfast.analyses.result import Result, Row, bars, estimate, known, means
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.draws import normal
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.prose import counted
from holdfast.ranking import Ranking, check_size, size_text
from holdfast.settings import Count, Positive, Read
from holdfast.sizes import read_size
from holdfast.table import Table


@dataclass(frozen=True, eq=False)
class Sensitivity(Result):
    """SENS: 1 minus the smallest overlap of the top features at x and at a neighbour.

    The paper's formula has a maximum of the overlap, which makes SENS 0 for every explanation (take y = x). Its text
    describes the worst case, which is computed here. It is a lower bound, because neighbours are sampled.

    Attributes:
        explainers: Names of the explainers.
        values: ``[explainers, B]``; NaN where the explanation of x, or those of all neighbours, are uninformative.
        radius: The largest L2 distance of a neighbour.
        samples: The number of neighbours.
        top: The size of the compared sets: a share (float) or a number (int).
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

    def draw(self, ax: Any) -> None:
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
    """Explain neighbours of every input and compare their top features.

    Neighbours keep the label and target of x. The same noise is used for every case.

    Args:
        cases: B cases to explain.
        explainers: Explainers by name.
        radius: The largest L2 distance of a neighbour. Neighbours stay inside the bounds.
        top: The size of the compared sets: a share (float) or a number (int).
        samples: The number of neighbours.
        seed: Seed of the draws.
        progress: Called with (done, total) explainers.

    Returns:
        The sensitivity of each explainer.

    Raises:
        HoldfastError: There is no explainer, or an argument is out of range.
    """
    check_size(top, "top")
    if not explainers or not radius > 0 or samples < 1:
        raise HoldfastError(f"sensitivity needs explainers, radius > 0 and samples >= 1, got {radius} and {samples}.")
    near = neighbours(cases, radius, samples, seed)
    values = []
    for explainer in explainers.values():
        here, there = explainer(cases), explainer(near)
        own, theirs = here.top([top])[:, 0], there.top([top])[:, 0].view(len(cases), samples, -1)
        overlap = (own[:, None] & theirs).sum(2).double() / own.sum(1, keepdim=True)
        # An uninformative neighbour cannot be compared.
        overlap = overlap.masked_fill(there.uninformative.view(len(cases), samples), math.inf).amin(1)
        values.append((1 - overlap).masked_fill(here.uninformative | torch.isinf(overlap), math.nan))
        if progress is not None:
            progress(len(values), len(explainers))
    return Sensitivity(tuple(explainers), torch.stack(values).cpu(), radius, samples, top)


def neighbours(cases: Cases, radius: float, samples: int, seed: int = 0) -> Cases:
    """Draw neighbours of every input, uniformly from the L2 ball around it. Only features move.

    Args:
        cases: B cases.
        radius: The radius of the ball.
        samples: The number of neighbours of each input.
        seed: Seed of the draws.

    Returns:
        ``B * samples`` cases with the neighbours of each input in succession, clipped to the bounds.
    """
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


@dataclass(frozen=True)
class SensitivityAnalysis(Analysis):
    """Explanations of neighbours, compared with those of the inputs.

    Attributes:
        methods: Names of the methods; None: all of the tables.
        examples: The number of examples to use, from the first on.
        radius: The largest L2 distance of a neighbour.
        top: The size of the compared sets, as a share of the features.
        samples: The number of neighbours.
        seed: Seed of the draws.
    """

    methods: tuple[str, ...] | None = None
    examples: Count = 100
    radius: Positive = 0.1
    top: Annotated[float, Read(read_size)] = 0.2
    samples: Count = 10
    seed: int = 0
    name: ClassVar[str] = "sensitivity"
    title: ClassVar[str] = "Sensitivity: do explanations stay when inputs hardly change?"
    subject: ClassVar[Subject] = Subject.EXPLAINERS

    def compute(self, cases: Cases, subject: Explainer | Ranking, progress: Progress | None) -> Computed:
        assert isinstance(subject, Explainer)
        settings: dict[str, Any] = {"radius": self.radius, "top": self.top, "samples": self.samples}
        result = sensitivity(cases, {"method": subject}, **settings, seed=self.seed, progress=progress)
        arrays = {name: np.array(value) for name, value in settings.items()}
        return Computed({"values": result.values[0].numpy(), **arrays})

    def rows(self, cases: Cases, explainer: Explainer) -> int | None:
        each = explainer.rows(cases.features.count)
        return None if each is None else each * (1 + self.samples) * len(cases)

    @classmethod
    def read(cls, stored: Stored) -> Sensitivity | None:
        blocks = stored.arrays(cls.name)
        if not blocks:
            return None
        values = [torch.cat([torch.from_numpy(one["values"]) for one in of]) for of in blocks.values()]
        first = next(iter(blocks.values()))[0]
        radius, samples, top = (first[name].item() for name in ("radius", "samples", "top"))
        return Sensitivity(tuple(blocks), torch.stack(values), radius, samples, top)

    @classmethod
    def tables(cls, result: Sensitivity, stored: Stored) -> list[Table]:
        paper = published.sensitivity(stored.published)
        rows = [
            (name, estimate(values), *([paper.get(name)] if paper else []))
            for name, values in zip(result.explainers, result.values, strict=True)
        ]
        neighbours, examples = counted(result.samples, "neighbour"), counted(result.values.shape[1], "example")
        note = (
            f"1 minus the smallest share of the top {size_text(result.top)} that stays when the input moves by at most "
            f"{result.radius:g}, over {neighbours} of {examples}: a lower bound. Neighbours outside the bounds of the "
            "model are moved to them."
        )
        columns = ("method", "sensitivity", *(["paper"] if paper else []))
        return [Table("sensitivity", "Sensitivity", columns, tuple(rows), note)]

    @classmethod
    def figures(cls, result: Sensitivity) -> dict[str, Draw]:
        return {"Sensitivity": result.draw}
