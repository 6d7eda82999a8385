"""One row of a table for a reader: each column with its rank, its value, and what a change makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.columns.changes import Change, value_text
from holdfast.columns.column import Category
from holdfast.columns.columns import Columns


@dataclass(frozen=True)
class Cell:
    """One column of a row.

    Attributes:
        name: The name of the column.
        rank: Its place in the order of relevance, 1 for the first; None if the column is fixed.
        value: Its value; None if only its coordinates are known.
        text: The value for readers.
        after: The value after the change; None if it does not change.
        after_text: That value for readers.
        amount: By how much it changes in scaled units; NaN for categories without an order, None without a change.
        amount_text: The amount for readers, such as ``"+0.31 sd"``.
    """

    name: str
    rank: int | None
    value: Category | None
    text: str
    after: Category | None = None
    after_text: str = ""
    amount: float | None = None
    amount_text: str = ""

    @property
    def title(self) -> str:
        """The name for readers."""
        return readable(self.name)

    @property
    def length(self) -> float:
        """The length of the change in scaled units; another category counts as 1, no change as 0."""
        return 0.0 if self.amount is None else 1.0 if math.isnan(self.amount) else abs(self.amount)

    @property
    def plain(self) -> dict[str, Any]:
        """The cell as plain data for JSON. ``scales`` is None for categories without an order."""
        after = None if self.amount is None else {"value": self.after, "scales": _number(self.amount)}
        return {"name": self.name, "rank": self.rank, "value": self.value, "becomes": after}


def cells_of(
    columns: Columns, row: Mapping[str, Category], order: Sequence[str], changes: Sequence[Change]
) -> tuple[Cell, ...]:
    """Return the columns of a row in order of relevance, fixed ones last.

    Args:
        columns: The columns.
        row: The values of the row.
        order: Names of the columns that are not fixed, most relevant first.
        changes: The changes to show, one for each column at most.
    """
    changed = {change.name: change for change in changes}
    fixed = [name for name in columns.names if name not in order]
    cells = []
    for place, name in enumerate([*order, *fixed]):
        change, text = changed.get(name), value_text(columns[name], row[name])
        rank = place + 1 if place < len(order) else None
        if change is None:
            cells.append(Cell(name, rank, row[name], text))
        else:
            after = (change.after, change.after_text, change.amount, change.scales_text)
            cells.append(Cell(name, rank, row[name], text, *after))
    return tuple(cells)


def readable(name: str) -> str:
    """Return the name of a column for readers."""
    return name.replace("_", " ")


def _number(value: float) -> float | None:
    return None if value != value else value
