"""What every explainer is: a way to find an order of the features."""

from __future__ import annotations

from abc import ABC, abstractmethod

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.ranking import Ranking


class Explainer(ABC):
    """``explainer(cases) -> Ranking``. Subclass as a frozen dataclass with its settings; ``repr`` is its provenance."""

    @abstractmethod
    def __call__(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        """Order the features of every case, most relevant first."""
