"""The columns of a table: from its rows to points in scaled units, and from points to sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.columns.changes import Change, number_changes, sentence
from holdfast.columns.coding import decode_column, encode_column, kept, numbers_of, read_pair, read_points, unscaled
from holdfast.columns.column import Category, Column, Kind
from holdfast.columns.csv_tables import read_csv_rows, read_values
from holdfast.columns.frames import Values, check_names, check_same_names, read_frame, table_like
from holdfast.columns.inference import Rule, Wishes, infer
from holdfast.columns.matrices import joined
from holdfast.columns.rounding import shortened
from holdfast.columns.stored import read_columns, write_columns
from holdfast.domain import HOT, Domain
from holdfast.errors import HoldfastError, unknown_name
from holdfast.features import Features
from holdfast.files import reading
from holdfast.settings import Count, Natural, read_setting, shown_value

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Columns:
    """The columns of a table, in order: what they are called, what their values are, and how far they may move.

    A row becomes a point ``[n]`` in scaled units: a number divided by its scale, the place of an ordered category
    divided by its scale, and one coordinate for each category without an order.

    >>> columns = Columns.read({"age": [30, 40, 50], "job": ["nurse", "clerk", "nurse"]}, scale={"age": 10})
    >>> columns.encode({"job": "clerk", "age": 40})
    tensor([[4.0000, 0.7071, 0.0000]], dtype=torch.float64)
    >>> columns.decode(columns.encode({"job": "clerk", "age": 40}))
    [{'age': 40, 'job': 'clerk'}]

    Attributes:
        columns: The columns.
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        columns = read_setting(self.columns, tuple[Any, ...], "columns")
        wrong = next((one for one in columns if not isinstance(one, Column)), None)
        if wrong is not None or not columns:
            raise HoldfastError(f"columns must be one Column or more, got {shown_value(wrong or list(columns))}.")
        check_names(one.name for one in columns)
        object.__setattr__(self, "columns", tuple(columns))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        if name not in self.names:
            raise unknown_name("column", str(name), self.names)
        return self.columns[self.names.index(name)]

    def __str__(self) -> str:
        return f"Columns({', '.join(self.names)})"

    # ------------------------------------------------------------------ making columns

    @classmethod
    def read(
        cls,
        frame: Any,
        *,
        names: Sequence[str] | None = None,
        kinds: Mapping[str, Kind] = _NOTHING,
        units: Mapping[str, str] = _NOTHING,
        fixed: Sequence[str] = (),
        rising: Sequence[str] = (),
        falling: Sequence[str] = (),
        ranges: Mapping[str, tuple[float, float]] = _NOTHING,
        scale: Rule | Mapping[str, Rule | float] = "std",
        categories: Mapping[str, Sequence[Category]] = _NOTHING,
    ) -> Columns:
        """Find out from data what the columns of a table are. What is stated here by name is taken as it is.

        Whole numbers are integer columns, other numbers numeric ones; texts, truth values and categories that the table
        declares are categories. Ranges are those of the values. A column whose values are all the same is fixed.

        Args:
            frame: A DataFrame of pandas or polars, an Arrow table, a dict of columns, a list of dicts, or an array.
            names: Names of the columns of an array.
            kinds: ``"numeric"``, ``"integer"``, ``"ordered"`` or ``"categorical"``.
            units: Units for readers.
            fixed: Columns that never change.
            rising: Columns whose values may only become larger.
            falling: Columns whose values may only become smaller.
            ranges: ``(low, high)`` of numbers.
            scale: What counts as one unit of change: the standard deviation, the median absolute deviation, or the
                range of the values; by name a rule or a number. Where a spread is zero, the next of ``"std"`` and
                ``"range"`` is used.
            categories: Categories in order, also those that do not occur. Texts that look like an id need them.

        Returns:
            The columns, in the order of the table.

        Raises:
            HoldfastError: The table cannot be read or is empty; a value is missing or does not fit; a name is unknown.
        """
        given = read_frame(frame, names)
        wishes = Wishes(kinds, units, fixed, rising, falling, ranges, scale, categories)
        wishes.check(list(given))
        return cls(tuple(infer(values, wishes) for values in given.values()))

    @classmethod
    def read_csv(cls, path: str | Path, *, without: Sequence[str] = (), **stated: Any) -> Columns:
        """Find out from a .csv file what its columns are.

        Args:
            path: The file, in UTF-8; its first line names the columns.
            without: Columns to leave out, such as the class.
            stated: What is known of the columns, as for ``Columns.read``.

        Raises:
            HoldfastError: The file cannot be read, or ``Columns.read`` refuses its table.
        """
        with reading(path, "the table"):
            return cls.read(read_values(path, without, stated.get("categories", _NOTHING)), **stated)

    @classmethod
    def load(cls, path: str | Path) -> Columns:
        """Read columns that ``save`` wrote.

        Raises:
            HoldfastError: The file cannot be read, or holds something else.
        """
        return cls(tuple(read_columns(path)))

    def save(self, path: str | Path) -> None:
        """Write the columns to a JSON file."""
        write_columns(path, self.columns)

    # ------------------------------------------------------------------ what they are

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def slices(self) -> dict[str, slice]:
        """The coordinates of each column, by name."""
        found, start = {}, 0
        for column in self.columns:
            found[column.name] = slice(start, start + column.width)
            start += column.width
        return found

    @property
    def width(self) -> int:
        """The number of coordinates, n."""
        return sum(column.width for column in self.columns)

    @property
    def moving(self) -> tuple[str, ...]:
        """Names of the columns that are not fixed: those that are features, in order."""
        return tuple(column.name for column in self.columns if not column.fixed)

    def bounds(self) -> tuple[Tensor, Tensor]:
        """Return the smallest and the largest value of each coordinate in scaled units, ``[n]`` each."""
        ends = [column.bounds for column in self.columns for _ in range(column.width)]
        low, high = torch.tensor(ends, dtype=torch.float64).unbind(1)
        return low.contiguous(), high.contiguous()

    def features(self) -> Features:
        """Return one feature for each column that is not fixed, with its name. Fixed columns never move.

        Raises:
            HoldfastError: All columns are fixed.
        """
        if not self.moving:
            raise HoldfastError("all columns are fixed, so there is nothing to explain: leave one of them free.")
        groups = [range(self.width)[self.slices[name]] for name in self.moving]
        return Features.columns(groups, self.width, self.moving)

    def domain(self) -> Domain:
        """Return which points are rows of this table."""
        each = [column for column in self.columns for _ in range(column.width)]
        slices = [self.slices[column.name] for column in self.columns if column.kind == "categorical"]
        return Domain(
            torch.tensor([column.step for column in each], dtype=torch.float64),
            tuple(torch.arange(one.start, one.stop) for one in slices),
            rising=torch.tensor([column.rising for column in each]),
            falling=torch.tensor([column.falling for column in each]),
        )

    @property
    def scales(self) -> Tensor:
        """What a classifier sees is a coordinate times this, ``[n]``: see ``matrix``."""
        each = [column for column in self.columns for _ in range(column.width)]
        return torch.tensor([1 / HOT if one.kind == "categorical" else one.scale for one in each], dtype=torch.float64)

    # ------------------------------------------------------------------ rows and points

    def encode(self, frame: Any) -> Tensor:
        """Return the rows of a table as points in scaled units.

        Args:
            frame: A table as for ``Columns.read``, or a dict with one row. Columns are found by name, in any order.

        Returns:
            ``[B, n]`` in double precision.

        Raises:
            HoldfastError: A column is missing or unknown, or a value is missing, unknown or outside its range.
        """
        given = self._read(frame)
        return torch.from_numpy(np.concatenate([encode_column(one, given[one.name]) for one in self.columns], axis=1))

    def matrix(self, frame: Any, named: bool = False) -> Any:
        """Return the rows of a table as numbers to train a classifier on, ``[B, n]``.

        Numbers are as they are, an ordered category is its place, and a category without an order is one column of 0
        and 1 for each category. Give the classifier to ``hf.trees`` or ``hf.from_sklearn`` with these columns.

        Args:
            frame: A table as for ``encode``.
            named: Return a DataFrame of pandas: a classifier keeps its names, and renamed columns are noticed.
        """
        given = self._read(frame)
        return joined([numbers_of(one, given[one.name]) for one in self.columns], self.columns if named else None)

    def unscaled(self, x: Tensor) -> np.ndarray[Any, Any]:
        """Return points ``[B, n]`` in the numbers of ``matrix``; a point that is no row is read as the nearest one."""
        return unscaled(self.domain(), self.scales, x)

    def _read(self, frame: Any) -> dict[str, Values]:
        given = read_frame(frame, self.names)
        check_same_names(given, self.names)
        return given

    def decode(self, x: Any, near: Any = None) -> list[dict[str, Category]]:
        """Return points as rows of values. A point that is no row is read as the nearest one.

        ``decode(encode(rows))`` has the values of ``rows``: whole numbers and categories, numbers of single precision,
        and numbers of up to 15 digits. Other numbers may differ in their last digit if the scale is no power of two,
        because there are fewer points than such numbers; ``decode(encode(rows), rows)`` has them, too.

        Args:
            x: ``[B, n]`` in scaled units.
            near: A table of B rows, or of one: its numbers are used where they have the same coordinates.

        Returns:
            One dict for each point.

        Raises:
            HoldfastError: ``x`` has another shape, or holds NaN or infinity, or ``near`` is no table of this kind.
        """
        held = self.to_frame(x, near=near)
        return [dict(zip(self.names, row, strict=True)) for row in zip(*held.values(), strict=True)]

    def to_frame(self, x: Any, like: Any = None, near: Any = None) -> Any:
        """Return points as a table.

        Args:
            x: ``[B, n]`` in scaled units.
            like: A DataFrame of pandas or polars, or an Arrow table: the result is one of the same kind, with the same
                types of columns. None: a dict of lists.
            near: A table of B rows, or of one: its numbers are used where they have the same coordinates.

        Raises:
            HoldfastError: ``x`` has another shape, or ``like`` is something else or lacks a column.
        """
        points = read_points(x, self.width)
        parts = {one: points[:, self.slices[one.name]] for one in self.columns}
        if near is None:
            held = {one.name: decode_column(one, part) for one, part in parts.items()}
        else:
            rows = self._read(near)
            held = {one.name: kept(one, part, rows[one.name]) for one, part in parts.items()}
        return held if like is None else table_like(held, like)

    def read_rows(self, path: str | Path, first: int = 0, count: int | None = None) -> list[dict[str, Category]]:
        """Read some rows of a .csv file, ready for ``encode``. Columns that are not of this table are left out.

        Args:
            path: The file, in UTF-8; its first line names the columns.
            first: The first row to read; the row below the names is row 0.
            count: How many rows to read; None: all of them.

        Raises:
            HoldfastError: The file cannot be read, lacks a column or a row, or a value does not fit its column.
        """
        first, count = read_setting(first, Natural, "first"), read_setting(count, Count | None, "count")
        return read_csv_rows(path, self.columns, first, count)

    # ------------------------------------------------------------------ answers

    def changes(self, x: Any, witness: Any, rounded: Callable[[Tensor], Tensor] | None = None) -> list[Change]:
        """Return which columns differ between an input and a point that changes its decision.

        Args:
            x: The input ``[n]`` or ``[1, n]``.
            witness: The point, of the same shape. It must be a row of this table, as ``domain().nearest`` returns it.
            rounded: From points ``[R, n]`` to bool ``[R]``: whether they change the decision, too. With it, the numbers
                of the witness are replaced by those with the fewest digits that do, away from the input. None: numbers
                are only rounded for readers.

        Returns:
            One change for each column that differs, in the order of the table.

        Raises:
            HoldfastError: A point is no row of this table, or the witness does not change the decision.
        """
        before, after = read_pair(x, witness, self.width)
        if not bool(self.domain().to(before.device).contains(after, before)):
            raise HoldfastError("the witness is no row of this table: round it by columns.domain().nearest first.")
        if rounded is not None:
            after = shortened(self, before, after, rounded)
        old, new = self.decode(before)[0], self.decode(after)[0]
        moved = (before != after)[0]
        return [
            Change(one, old[one.name], new[one.name], number_changes(one, old[one.name], new[one.name]), bool(rounded))
            for one in self.columns
            if bool(moved[self.slices[one.name]].any()) and old[one.name] != new[one.name]
        ]

    def sentence(
        self, changes: Sequence[Change], before: str = "refused", after: str = "granted", proven: bool = False
    ) -> str:
        """Say what would have to change.

        Args:
            changes: The changes.
            before: What is decided now.
            after: What is decided after the changes.
            proven: Whether it is proven that no change of the other columns has this effect.

        Returns:
            One to three sentences.
        """
        others = len(set(self.moving) - {change.name for change in changes})
        return sentence(changes, before, after, others if proven else None)
