"""The random explainer: the baseline that an explanation must beat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.draws import generator
from holdfast.explainers.explainer import Explainer
from holdfast.models.model import Access
from holdfast.ranking import Ranking


@dataclass(frozen=True)
class Random(Explainer):
    """A random order, drawn for each case from the seed and its input, whatever other cases are in the batch.

    Attributes:
        seed: Seed of the order.
    """

    seed: int = 0
    name: ClassVar[str] = "random"
    source: ClassVar[str] = "none"
    requires: ClassVar[Access] = Access.DECISIONS

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        scores = torch.stack([self._drawn(cases[case]) for case in range(len(cases))])
        return Ranking.by_score(cases, scores.to(cases.x), repr(self))

    def _drawn(self, case: Cases) -> Tensor:
        """Draw the scores of one case, ``[d]``."""
        moving = case.x[(case.features.ids >= 0).expand_as(case.x)]  # without padding
        digest = hashlib.sha256(f"{self.seed} ".encode() + moving.double().cpu().numpy().tobytes()).digest()
        return torch.rand(case.features.count, generator=generator(int.from_bytes(digest[:7], "big")))

    def rows(self, features: int) -> int:
        return 0
