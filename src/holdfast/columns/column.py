"""One column of a table: its kind, its unit, its range, and what counts as one unit of change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from holdfast.domain import HOT
from holdfast.errors import HoldfastError
from holdfast.settings import Positive, Range, Settings, shown_value

Kind = Literal["numeric", "integer", "ordered", "categorical"]
ScaledBy = Literal["", "sd", "mad", "range"]
Category = str | bool | int | float
"""One of the values of an ordered or categorical column."""
Finite = Annotated[float, Range(-1e300, 1e300)]
LARGEST_WHOLE = 2**50
"""Whole numbers up to here are found again after scaling."""


@dataclass(frozen=True)
class Column(Settings):
    """A column of a table.

    A numeric, integer or ordered column is one coordinate. A categorical one has a coordinate for each category; they
    form one feature.

    >>> Column("income", unit="€", low=0, high=90_000, scale=10_000).step
    0.0
    >>> Column("size", "ordered", categories=["S", "M", "L"]).width
    1

    Attributes:
        name: Its name.
        kind: ``"numeric"``, ``"integer"`` (whole numbers), ``"ordered"`` (categories from low to high) or
            ``"categorical"`` (categories without an order).
        unit: The unit of its values, for readers.
        categories: The categories of an ordered or categorical column, in order.
        low: The smallest value. Of categories: 0.
        high: The largest value. Of ordered categories: the number of the last one; of others: 1.
        scale: How much counts as one unit of change; of ordered categories, how many places. Unused by others, where
            every change of the category has length 1 in L2.
        scaled_by: What the scale is, for readers: ``"sd"``, ``"mad"``, ``"range"``, or empty if it was given.
        fixed: Whether the value never changes.
        rising: Whether the value may only become larger.
        falling: Whether the value may only become smaller.
    """

    name: str
    kind: Kind = "numeric"
    unit: str = ""
    categories: tuple[str | bool | int | float, ...] = ()
    low: Finite = 0.0
    high: Finite = 1.0
    scale: Positive = 1.0
    scaled_by: ScaledBy = ""
    fixed: bool = False
    rising: bool = False
    falling: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise HoldfastError("a column needs a name, got an empty one.")
        if self.rising and self.falling:
            raise HoldfastError(f"column {self.name!r} cannot be both rising and falling: make it fixed instead.")
        if self.has_categories:
            self._check_categories()
        elif self.categories:
            raise HoldfastError(f"column {self.name!r} is {self.kind} and has no categories: leave them out.")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        object.__setattr__(self, "scale", float(self.scale))
        if not self.low < self.high:
            raise HoldfastError(
                f"the range of column {self.name!r} must be low < high, got {self.low:g} to {self.high:g}."
            )
        whole = all(end == int(end) and abs(end) <= LARGEST_WHOLE for end in (self.low, self.high))
        if self.kind == "integer" and not whole:
            raise HoldfastError(
                f"the range of column {self.name!r} must be whole numbers of at most 15 digits, got {self.low:g} to "
                f"{self.high:g}."
            )
        scaled = [end / self.scale for end in (self.low, self.high)]
        if not all(map(math.isfinite, scaled)) or not scaled[0] < scaled[1] or not 1e-290 < self.scale < 1e290:
            raise HoldfastError(
                f"column {self.name!r} cannot be scaled by {self.scale:g}: choose one nearer to its values."
            )

    def _check_categories(self) -> None:
        if self.kind == "categorical" and (self.rising or self.falling):
            raise HoldfastError(f"column {self.name!r} has categories without an order and can neither rise nor fall.")
        if len(self.categories) < 2:
            raise HoldfastError(
                f"column {self.name!r} needs two or more categories, got {shown_value(list(self.categories))}."
            )
        if any(isinstance(one, float) and not math.isfinite(one) for one in self.categories):
            raise HoldfastError(f"the categories of column {self.name!r} must be finite, without NaN.")
        if any(isinstance(one, str) and not one.strip() for one in self.categories):
            raise HoldfastError(f"the categories of column {self.name!r} must not be empty texts.")
        if len(set(self.categories)) != len(self.categories) or len(self.numbers_by_text) != len(self.categories):
            twice = next(one for n, one in enumerate(self.categories) if str(one) in map(str, self.categories[:n]))
            raise HoldfastError(f"the categories of column {self.name!r} must differ, got {twice!r} twice.")
        object.__setattr__(self, "low", 0.0)
        object.__setattr__(self, "high", float(len(self.categories) - 1) if self.kind == "ordered" else 1.0)
        if self.kind == "categorical":
            object.__setattr__(self, "scale", 1.0)
            object.__setattr__(self, "scaled_by", "")

    # ------------------------------------------------------------------ coordinates

    @property
    def has_categories(self) -> bool:
        """Whether its values are categories."""
        return self.kind in ("ordered", "categorical")

    @property
    def width(self) -> int:
        """The number of its coordinates."""
        return len(self.categories) if self.kind == "categorical" else 1

    @property
    def step(self) -> float:
        """The distance of neighbouring values in scaled units; 0 if there is none."""
        return 1 / self.scale if self.kind in ("integer", "ordered") else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value of a coordinate, in scaled units."""
        if self.kind == "categorical":
            return 0.0, HOT
        if self.step:
            return self.low * self.step, self.high * self.step
        return self.low / self.scale, self.high / self.scale

    @property
    def numbers_by_text(self) -> dict[str, int]:
        """The number of each category by its text, as files hold it."""
        return {str(category): number for number, category in enumerate(self.categories)}

    # ------------------------------------------------------------------ plain data

    @property
    def plain(self) -> dict[str, Any]:
        """The column as plain data for JSON, without what is as by default."""
        every = {name: getattr(self, name) for name in self.__dataclass_fields__}
        needless = {"low", "high", "scale"} if self.kind == "categorical" else set()
        needless |= {"low", "high"} if self.kind == "ordered" else set()
        shown = {"name", "kind"} | (set() if self.has_categories else {"low", "high", "scale"})
        defaults = {name: one.default for name, one in self.__dataclass_fields__.items()}
        kept = {n: v for n, v in every.items() if n in shown or (v != defaults[n] and n not in needless)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}
