"""What every analysis returns: rows for a table, and a drawing on axes that are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

Row = dict[str, Any]


class Result(ABC):
    """A frozen dataclass of arrays. ``pandas.DataFrame(result.table())`` is the table."""

    @abstractmethod
    def table(self) -> list[Row]:
        """One flat row a line, the same columns in all of them; what is undefined is None."""

    @abstractmethod
    def plot(self, ax: Any) -> None:
        """Draw it on matplotlib axes."""


def bars(ax: Any, names: list[str], values: list[float], low: list[float], high: list[float], label: str) -> None:
    """Horizontal bars with intervals, the first on top."""
    places = range(len(names))
    below = [value - least for value, least in zip(values, low, strict=True)]
    above = [most - value for value, most in zip(values, high, strict=True)]
    ax.barh(places, values, xerr=[below, above], color="#94a3b8", ecolor="#334155", capsize=2)
    ax.set_yticks(list(places), names)
    ax.invert_yaxis()
    ax.set_xlabel(label)
