"""A criterion in one file: how many features are called relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.models.model import Access


@dataclass(frozen=True)
class Size(Criterion):
    """How many features are called relevant, weighted by their value."""

    name: ClassVar[str] = "size"
    family: ClassVar[str] = "Sizes"
    higher_is_better: ClassVar[bool] = True
    requires: ClassVar[Access] = Access.DECISIONS

    def measure(self, cases: Cases, relevant: Tensor, progress: Progress | None) -> Tensor:
        return (relevant * cases.features.pool(cases.x)[:, None]).sum(2)
