"""The plainest explanations, to compare with: the gradient, and chance."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from holdfast.cases import Cases
from holdfast.chunks import Progress, chunked
from holdfast.explainers.explainer import Explainer
from holdfast.ranking import Ranking
from holdfast.robustness.rows import margin


@dataclass(frozen=True)
class Grad(Explainer):
    """The size of the margin's gradient at x (Simonyan et al. 2013), summed over the coordinates of a feature."""

    def __call__(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        cases.model.require_eval()

        def work(piece: slice) -> torch.Tensor:
            part = cases[piece]
            _, slope = part.model.gradient(part.x, lambda logits: margin(logits, part.label, part.target))
            return part.features.pool(slope.abs())

        parts = [part for _, part in chunked(work, len(cases), cases.model.chunk(cases.x))]
        return Ranking.by_score(cases, torch.cat(parts), repr(self))


@dataclass(frozen=True)
class Random(Explainer):
    """A random order, drawn for the place a case has in its batch: what an explanation must beat."""

    seed: int = 0

    def __call__(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        generator = torch.Generator().manual_seed(self.seed % 2**63)
        scores = torch.rand(len(cases), cases.features.count, generator=generator)
        return Ranking.by_score(cases, scores.to(cases.x), repr(self))
