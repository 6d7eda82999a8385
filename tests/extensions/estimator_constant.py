"""An estimator in one file: every open feature is worth its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from holdfast.cases import Cases
from holdfast.criteria.criterion import Criterion
from holdfast.explainers.estimators import Draw, Estimate, Estimator
from holdfast.models.model import Access


@dataclass(frozen=True)
class Numbers(Estimator):
    """Every open feature is worth its number."""

    name: ClassVar[str] = "numbers"
    requires: ClassVar[Access] = Access.DECISIONS

    def __call__(self, draw: Draw) -> Estimate:
        values = torch.arange(draw.unchosen.shape[1]).to(draw.cases.x).expand(len(draw.cases), -1)
        return Estimate(values, None, torch.ones(len(draw.cases), dtype=torch.bool))

    def rows(self, objective: Criterion, samples: int) -> int:
        return 0

    def bytes_held(self, cases: Cases, samples: int) -> int:
        return 0
