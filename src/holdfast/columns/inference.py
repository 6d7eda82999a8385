"""What a column is, found out from its values: kind, categories, range and scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from holdfast.columns.coding import Array, category_numbers, check_range, read_numbers
from holdfast.columns.column import Category, Column, Kind, ScaledBy
from holdfast.columns.frames import Values
from holdfast.errors import HoldfastError, unknown_name
from holdfast.settings import Positive, read_setting, shown_value

Rule = Literal["std", "mad", "range"]
RULES: tuple[Rule, ...] = ("std", "mad", "range")
_NAMES: dict[Rule, ScaledBy] = {"std": "sd", "mad": "mad", "range": "range"}
MOST_CATEGORIES = 100
"""A column with more texts than this is taken for an id, unless its categories are stated."""
_FEW_ROWS = 20  # below this, texts that all differ may still be categories


@dataclass(frozen=True)
class Wishes:
    """What a caller states about the columns of a table, by name; the rest is found out from the values.

    Attributes:
        kinds: Kinds of columns.
        units: Units of their values.
        fixed: Names of columns that never change.
        rising: Names of columns whose values may only become larger.
        falling: Names of columns whose values may only become smaller.
        ranges: The smallest and the largest value of columns.
        scale: ``"std"``, ``"mad"`` or ``"range"`` for all columns, or a rule or a number for some and ``"std"`` for the
            others.
        categories: Categories of columns, in order.
    """

    kinds: Mapping[str, Kind]
    units: Mapping[str, str]
    fixed: Sequence[str]
    rising: Sequence[str]
    falling: Sequence[str]
    ranges: Mapping[str, tuple[float, float]]
    scale: Rule | Mapping[str, Rule | float]
    categories: Mapping[str, Sequence[Category]]

    def check(self, names: Sequence[str]) -> None:
        """Refuse statements of the wrong form, or about columns that the table does not have.

        Args:
            names: The names of the columns of the table.

        Raises:
            HoldfastError: A statement is malformed, or names an unknown column.
        """
        for title in ("kinds", "units", "ranges", "categories", "scale"):
            given = getattr(self, title)
            if title == "scale" and isinstance(given, str) and given in RULES:
                continue
            if not isinstance(given, Mapping):
                expected = 'a dict by column name, or "std", "mad" or "range"' if title == "scale" else "a dict by name"
                raise HoldfastError(f"{title} must be {expected}, got {shown_value(given)}.")
            self._check_known(given, names)
        for title in ("fixed", "rising", "falling"):
            given = getattr(self, title)
            if isinstance(given, str) or not isinstance(given, (Sequence, set, frozenset)):
                raise HoldfastError(f"{title} must be a list of names of columns, got {shown_value(given)}.")
            self._check_known(given, names)

    @staticmethod
    def _check_known(given: Any, names: Sequence[str]) -> None:
        for name in given:
            if name not in names:
                raise unknown_name("column", str(name), names)

    def rule(self, name: str) -> Rule | float:
        """Return the scale of a column: a rule or a number."""
        if isinstance(self.scale, str):
            return self.scale
        given = self.scale.get(name, "std")
        scale: Rule | float = read_setting(given, Rule | Positive, f"the scale of column {name!r}")
        return scale


def infer(given: Values, wishes: Wishes) -> Column:
    """Return the column that some values are of.

    Args:
        given: The values.
        wishes: What the caller states about columns.

    Returns:
        The column.

    Raises:
        HoldfastError: The values do not fit what is stated, or do not say what they are.
    """
    name = given.name
    given.check_complete()
    kind = _kind(given, wishes)
    common: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "unit": wishes.units.get(name, ""),
        "fixed": name in wishes.fixed,
        "rising": name in wishes.rising,
        "falling": name in wishes.falling,
    }
    if kind == "numeric" or kind == "integer":
        return _number_column(given, wishes, common)
    column = Column(categories=_categories(given, wishes, kind), **common)
    places = category_numbers(column, given)
    if kind == "categorical":
        return column
    scale, by = _scale(places.astype(np.float64), column.high, wishes.rule(name))
    return replace(column, scale=scale, scaled_by=by)


def _number_column(given: Values, wishes: Wishes, common: dict[str, Any]) -> Column:
    name, whole = given.name, common["kind"] == "integer"
    values = read_numbers(given, whole)
    if name in wishes.ranges:
        low, high = _range(name, wishes.ranges[name])
        check_range(name, values, low, high)
    else:
        low, high = float(values.min()), float(values.max())
        if low == high:  # nothing is known about other values: it stays as it is
            beside = max(1.0, abs(low) // 1000)
            low, high, common = low - beside, high + beside, common | {"fixed": True}
    spread = high - low if name in wishes.ranges else float(values.max() - values.min())
    scale, by = _scale(values, spread, wishes.rule(name))
    return Column(low=low, high=high, scale=scale, scaled_by=by, **common)


def _kind(given: Values, wishes: Wishes) -> Kind:
    if given.name in wishes.kinds:
        kind: Kind = read_setting(wishes.kinds[given.name], Kind, f"the kind of column {given.name!r}")
        return kind
    if given.name in wishes.categories:
        return "categorical"
    if given.categories is not None:
        return "ordered" if given.is_ordered else "categorical"
    dtype = given.values.dtype.kind
    if dtype in "iu":
        return "integer"
    if dtype == "f":
        return "numeric"
    odd = next((n for n, one in enumerate(given.values.tolist()) if not isinstance(one, (str, bool))), None)
    if odd is None:
        return "categorical"
    first = next((one for one in given.values if isinstance(one, str)), None)
    if first is not None and isinstance(given.values[odd], (int, float)):
        raise HoldfastError(
            f"column {given.name!r} mixes texts, such as {shown_value(first)}, and numbers, such as "
            f"{shown_value(given.values[odd])}: make all of them numbers or all of them texts."
        )
    raise HoldfastError(
        f"column {given.name!r} must hold numbers, texts or truth values, got {shown_value(given.values[odd])} in row "
        f"{odd}."
    )


def _categories(given: Values, wishes: Wishes, kind: Kind) -> tuple[Any, ...]:
    if given.name in wishes.categories:
        stated = wishes.categories[given.name]
        if isinstance(stated, (str, Mapping)) or not hasattr(stated, "__iter__"):
            raise HoldfastError(f"categories of column {given.name!r} must be a list, got {shown_value(stated)}.")
        return tuple(stated)
    if given.categories is not None:
        return given.categories
    if given.values.dtype.kind == "b":
        return (False, True)
    found = set(given.values.tolist())
    if kind == "ordered" and not given.holds_numbers:
        raise HoldfastError(
            f"the order of column {given.name!r} is unknown: state it, categories={{{given.name!r}: [low, …, high]}}."
        )
    if len(found) == 1:
        raise HoldfastError(
            f"column {given.name!r} has the one category {shown_value(found.pop())} in all rows: leave it out, or "
            "state all its categories."
        )
    if len(found) > MOST_CATEGORIES or (len(found) == len(given) >= _FEW_ROWS and not given.holds_numbers):
        raise HoldfastError(
            f"column {given.name!r} has {len(found):,} categories in {len(given):,} rows, so it looks like an id or "
            "free text: leave it out, or state its categories."
        )
    try:
        return tuple(sorted(found))
    except TypeError as error:
        raise HoldfastError(f"column {given.name!r} mixes texts and other values: make all of them texts.") from error


def _range(name: str, given: Any) -> tuple[float, float]:
    ends = read_setting(given, tuple[float, ...], f"the range of column {name!r}")
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise HoldfastError(
            f"the range of column {name!r} must be (low, high) with low < high, got {shown_value(given)}."
        )
    return float(ends[0]), float(ends[1])


def _scale(values: Array, span: float, rule: Rule | float) -> tuple[float, ScaledBy]:
    """Return how much counts as one unit, and what it is; where values do not spread, the next rule is used."""
    if not isinstance(rule, str):
        return float(rule), ""
    rules: list[Rule] = ["range"] if values.min() == values.max() else list(dict.fromkeys([rule, "std", "range"]))
    for one in rules:
        with np.errstate(over="ignore", invalid="ignore"):
            spread = span if one == "range" else _spread(values, one)
        if np.isfinite(spread) and spread > 0:
            return spread, _NAMES[one]
    return 1.0, ""


def _spread(values: Array, rule: Rule) -> float:
    """Return a spread with six digits, so that it does not depend on the order in which values are added."""
    found = np.abs(values - np.median(values)) if rule == "mad" else values
    exact = np.median(found) if rule == "mad" else values.std()
    return float(f"{float(exact):.6g}")
