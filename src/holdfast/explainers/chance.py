"""Chance: what an explanation must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.explainers.explainer import Explainer
from holdfast.ranking import Ranking


@dataclass(frozen=True)
class Random(Explainer):
    """A random order, drawn for the place a case has in its batch."""

    seed: int = 0
    source: ClassVar[str] = "none"

    def __call__(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        generator = torch.Generator().manual_seed(self.seed % 2**63)
        scores = torch.rand(len(cases), cases.features.count, generator=generator)
        return Ranking.by_score(cases, scores.to(cases.x), repr(self))

    def rows(self, features: int) -> int:
        return 0
