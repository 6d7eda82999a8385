"""Changes of columns, read aloud: "income were 41,200 instead of 38,000 (+0.31 sd)"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from holdfast.columns.column import Category, Column
from holdfast.errors import HoldfastError
from holdfast.settings import Natural, read_setting

_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_SHORT = 7  # digits: an original value of no more is shown as it is
_PREFIXES = "$€£¥"


@dataclass(frozen=True)
class Change:
    """The change of one column.

    Attributes:
        column: The column.
        before: Its value in the original input.
        after: Its value after the change.
        amount: By how much it changes in scaled units; NaN for categories without an order.
        is_exact: Whether ``after`` is short already and shown as it is. Otherwise a reader gets as few digits as
            matter, rounded away from ``before``.
    """

    column: Column
    before: Category
    after: Category
    amount: float = math.nan
    is_exact: bool = False

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return self.column.unit

    @property
    def before_text(self) -> str:
        """The original value for readers."""
        if self.column.kind != "numeric":
            return _with_unit(_category(self.before), self.unit)
        exact = Decimal(repr(float(self.before)))
        if len(exact.normalize().as_tuple().digits) > _SHORT:
            exact = _cut(exact, _quantum(self.before, self.after, 1), ROUND_HALF_EVEN)
        return _with_unit(_number(exact), self.unit)

    @property
    def after_text(self) -> str:
        """The new value for readers."""
        if self.column.kind != "numeric":
            return _with_unit(_category(self.after), self.unit)
        value = Decimal(repr(float(self.after)))
        if not self.is_exact:
            value = min(Decimal(repr(self.column.high)), max(Decimal(repr(self.column.low)), self.rounded(0)))
        return _with_unit(_number(value), self.unit)

    @property
    def amount_text(self) -> str:
        """The length of the change for readers, such as ``"+0.31 sd"``; empty if a reader learns nothing from it."""
        if self.column.kind == "ordered":
            places = round(self.amount * self.column.scale)
            return f"{places:+d} place{'' if abs(places) == 1 else 's'}"
        if math.isnan(self.amount) or (not self.column.scaled_by and self.column.scale == 1):
            return ""
        if self.column.scaled_by == "range":
            return f"{_signed(100 * self.amount)} % of the range"
        return f"{_signed(self.amount)} {self.column.scaled_by or f'× {self.column.scale:,g}'}"

    @property
    def scales_text(self) -> str:
        """By how many scales it changes, for readers, such as ``"+1.9 sd (+5 places)"`` or ``"another category"``."""
        if self.column.kind == "categorical":
            return "another category"
        if self.column.kind == "ordered":
            unit = {"": "scales", "range": "ranges"}.get(self.column.scaled_by, self.column.scaled_by)
            return f"{_signed(self.amount)} {unit} ({self.amount_text})"
        return self.amount_text or _signed(self.amount)

    def rounded(self, digits: int) -> Decimal:
        """Return the new number with fewer digits, rounded away from the original one.

        Args:
            digits: 0: two digits of the change matter; more: so many digits more.
        """
        value = Decimal(repr(float(self.after)))
        grows = float(self.after) > float(self.before)
        return _cut(value, _quantum(self.before, self.after, digits), ROUND_CEILING if grows else ROUND_FLOOR)

    def __str__(self) -> str:
        amount = self.amount_text
        name = self.name.replace("_", " ")
        return f"{name} were {self.after_text} instead of {self.before_text}" + (f" ({amount})" if amount else "")


def sentence(
    changes: Sequence[Change], before: str = "refused", after: str = "granted", others: int | None = None
) -> str:
    """Say what would have to change.

    >>> income = Column("income", low=0, high=90_000, scale=10_000, scaled_by="sd")
    >>> print(sentence([Change(income, 38_000.0, 41_187.3, 0.31873)]))
    refused; granted if income were 41,200 instead of 38,000 (+0.32 sd). Nothing else changes.

    Args:
        changes: The changes, all of them.
        before: What is decided now.
        after: What is decided after the changes.
        others: How many other columns there are, if it is proven that no change of them has this effect; None: nothing
            is proven.

    Returns:
        One to three sentences.
    """
    others = read_setting(others, Natural | None, "others")
    proof = "" if others is None else f" {_nothing_else(others)}"
    if not changes:
        return f"{before}; no change was found that makes it {after}.{proof}"
    parts = [str(change) for change in changes]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"{before}; {after} if {listed}. Nothing else changes.{proof}"


def _nothing_else(others: int) -> str:
    if not others:
        return "There are no other columns that could change."
    if others == 1:
        return "No change of the other column within its range does it."
    return f"No change of the other {count_text(others)} columns within their ranges does it."


def count_text(count: int) -> str:
    """Return a number of things for a sentence: as a word up to twelve."""
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"


def value_text(column: Column, value: Category) -> str:
    """Return a value for readers, with its unit; a number with many digits is rounded to seven."""
    if column.kind != "numeric":
        return _with_unit(_category(value), column.unit)
    number = Decimal(repr(float(value)))
    return _with_unit(
        _number(_cut(number, Decimal(1).scaleb(number.adjusted() - _SHORT + 1), ROUND_HALF_EVEN)), column.unit
    )


def number_changes(column: Column, before: Category, after: Category) -> float:
    """Return by how much a column changes in scaled units; NaN for categories without an order."""
    if column.kind == "categorical":
        return math.nan
    if column.kind == "ordered":
        return (column.categories.index(after) - column.categories.index(before)) / column.scale
    return (float(after) - float(before)) / column.scale


def _quantum(before: Category, after: Category, digits: int) -> Decimal:
    """Return the place of the second digit of a change, or of one ``digits`` later."""
    size = abs(Decimal(repr(float(after))) - Decimal(repr(float(before))))
    if not size:
        raise HoldfastError(f"there is no change to show: the value stays {before!r}.")
    return Decimal(1).scaleb(size.adjusted() - 1 - digits)


def _cut(value: Decimal, quantum: Decimal, rounding: str) -> Decimal:
    """Return a number without the digits below a place; as it is if it has none there."""
    exponent = value.as_tuple().exponent
    return value if isinstance(exponent, int) and exponent >= quantum.adjusted() else value.quantize(quantum, rounding)


def _number(value: Decimal) -> str:
    """Return a number with separators of thousands and without needless zeros."""
    if value and not -6 <= value.adjusted() < 15:
        return f"{value.normalize():g}"
    text = f"{value:,f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _category(value: Category) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _with_unit(text: str, unit: str) -> str:
    if not unit:
        return text
    if unit in _PREFIXES:
        return f"-{unit}{text[1:]}" if text.startswith("-") else unit + text
    return f"{text} {unit}"


def _signed(amount: float) -> str:
    """Return a number with its sign and two or more digits: +0.31, +12, -0.0042."""
    return f"{amount:+,.0f}" if abs(amount) >= 9.95 else f"{amount:+#.2g}"
