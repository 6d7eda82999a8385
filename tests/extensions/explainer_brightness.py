"""An explainer in one file: features in the order of their value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.explainers.explainer import Attribution
from holdfast.models.model import Access


@dataclass(frozen=True)
class Brightness(Attribution):
    """Features in the order of their value."""

    absolute: bool = True
    seed: int = 0
    name: ClassVar[str] = "brightness"
    source: ClassVar[str] = "this test"
    requires: ClassVar[Access] = Access.DECISIONS

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        return cases.features.pool(cases.x)

    def rows(self, features: int) -> int:
        return 0
