"""From the values of one column to its coordinates in scaled units, and back without loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.columns.column import LARGEST_WHOLE, Category, Column
from holdfast.columns.frames import Values
from holdfast.domain import HOT, Domain
from holdfast.errors import HoldfastError, unknown_name
from holdfast.settings import shown_value
from holdfast.tensors import read_tensor

Array = np.ndarray[Any, Any]
_LARGEST_EXACT = 2**53  # the largest whole number that double precision holds, like all below it
_DIGITS = {np.dtype(np.float64): (15, 16), np.dtype(np.float32): (6, 7, 8, 9)}


def encode_column(column: Column, given: Values) -> Array:
    """Return the coordinates of values.

    Args:
        column: The column.
        given: Its values.

    Returns:
        ``[B, column.width]`` in double precision.

    Raises:
        HoldfastError: A value is missing, of another kind, outside the range, or an unknown category.
    """
    if column.has_categories:
        place = category_numbers(column, given)
        return place[:, None] * column.step if column.kind == "ordered" else np.eye(column.width)[place] * HOT
    values = read_numbers(given, whole=column.kind == "integer")
    check_range(given.name, values, column.low, column.high)
    return (values * column.step if column.step else values / column.scale)[:, None]


def numbers_of(column: Column, given: Values) -> Array:
    """Return values as numbers without a scale: ``[B, column.width]``; categories without an order as 0 and 1."""
    encoded = encode_column(column, given)
    if column.kind == "categorical":
        return np.asarray(encoded > 0, np.float64)
    if column.step:
        return np.asarray(np.rint(encoded / column.step))
    return read_numbers(given, whole=False)[:, None]


def decode_column(column: Column, x: Array) -> list[Category]:
    """Return the values at some coordinates. Coordinates between values are read as the nearest value.

    A number is the simplest one with these coordinates: of single precision, or with the fewest digits.

    Args:
        column: The column.
        x: ``[B, column.width]``, in single or double precision.

    Returns:
        B values: floats, ints or categories.
    """
    if column.kind == "categorical":
        return [column.categories[number] for number in x.argmax(1).tolist()]
    if column.step:
        place = np.rint(x[:, 0].astype(np.float64) / column.step).astype(np.int64)
        if column.kind == "integer":
            return list(place.tolist())
        return [column.categories[number] for number in place.clip(0, len(column.categories) - 1).tolist()]
    return list(_simplest(x[:, 0], column.scale).tolist())


def kept(column: Column, x: Array, near: Values) -> list[Category]:
    """Return the values at some coordinates; those of ``near`` where they have the same coordinates.

    Args:
        column: The column.
        x: ``[B, column.width]``, in single or double precision.
        near: B values, or one.

    Raises:
        HoldfastError: A value of ``near`` does not fit the column, or there are neither B nor one.
    """
    if len(near) not in (1, len(x)):
        raise HoldfastError(f"near must have one row or {len(x)}, got {len(near)}.")
    values, held = decode_column(column, x), near.values.tolist() * (len(x) if len(near) == 1 else 1)
    same = (encode_column(column, near).astype(x.dtype) == x).all(1)
    return [
        old if keep and column.kind == "numeric" else new for new, old, keep in zip(values, held, same, strict=True)
    ]


def _simplest(x: Array, scale: float) -> Array:
    """Return for each coordinate the simplest number that is encoded as it; the nearest one if there is none."""
    product = x.astype(np.float64) * scale
    found, out = np.zeros(len(x), bool), product.copy()

    def keep(numbers: Array, where: Array) -> None:
        fits = where[(numbers / scale).astype(x.dtype) == x[where]]
        out[fits] = numbers[(numbers / scale).astype(x.dtype) == x[where]]
        found[fits] = True

    if x.dtype == np.float64:
        with np.errstate(over="ignore"):
            keep(product.astype(np.float32).astype(np.float64), np.arange(len(x)))
    for digits in _DIGITS[x.dtype]:
        left = np.flatnonzero(~found)
        keep(np.array([float(f"{one:.{digits}g}") for one in product[left].tolist()]), left)
    for beside in (product, np.nextafter(product, -np.inf), np.nextafter(product, np.inf)):
        left = np.flatnonzero(~found)
        keep(beside[left], left)
    return out


def read_numbers(given: Values, whole: bool) -> Array:
    """Return values as numbers in double precision.

    Args:
        given: The values of a column.
        whole: Whether they must be whole numbers.

    Raises:
        HoldfastError: A value is missing, no finite number, not whole, or has too many digits.
    """
    given.check_complete()
    held = given.values
    if held.dtype.kind == "O":
        wrong = next((n for n, one in enumerate(held) if not isinstance(one, (int, float))), None)
        if wrong is not None:
            raise HoldfastError(
                f"column {given.name!r} must hold numbers, got {shown_value(held[wrong])} in row {wrong}."
            )
        held = np.array([min(max(one, -1e308), 1e308) if isinstance(one, int) else one for one in held], np.float64)
    numbers = held.astype(np.float64)
    _refuse(given, ~np.isfinite(numbers), "must hold finite numbers")
    if whole:
        _refuse(given, numbers != np.rint(numbers), "must hold whole numbers")
    if whole or given.values.dtype.kind in "iu":
        most = LARGEST_WHOLE if whole else _LARGEST_EXACT
        _refuse(given, np.abs(numbers) > most, "must hold whole numbers of at most 15 digits")
    return numbers


def _refuse(given: Values, wrong: Array, rule: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise HoldfastError(f"column {given.name!r} {rule}, got {shown_value(_item(given.values[row]))} in row {row}.")


def check_range(name: str, values: Array, low: float, high: float) -> None:
    """Refuse numbers outside a range."""
    outside = (values < low) | (values > high)
    if outside.any():
        row = int(outside.argmax())
        raise HoldfastError(
            f"column {name!r} ranges from {low:,.15g} to {high:,.15g}, got {values[row]:,.15g} in row {row}: "
            "correct it or widen the range."
        )


def category_numbers(column: Column, given: Values) -> Array:
    """Return the number of the category of each value, ``[B]``.

    Raises:
        HoldfastError: A value is missing or an unknown category.
    """
    given.check_complete()
    numbers: dict[Any, int] = {category: number for number, category in enumerate(column.categories)}
    out = np.empty(len(given), np.int64)
    for row, value in enumerate(given.values.tolist()):
        try:
            out[row] = numbers[value]
        except (KeyError, TypeError) as error:
            raise _unknown_category(column, value, row) from error
    return out


def _unknown_category(column: Column, value: Any, row: int) -> HoldfastError:
    if not isinstance(value, (str, int, float)):
        return HoldfastError(f"column {column.name!r} must hold its categories, got {shown_value(value)} in row {row}.")
    known = [str(category) for category in column.categories]
    if str(value) in known:
        kind = type(column.categories[known.index(str(value))]).__name__
        return HoldfastError(f"column {column.name!r} holds categories of type {kind}, got {value!r} in row {row}.")
    return unknown_name(f"category of column {column.name!r} (row {row})", str(value), known, most=20)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def read_points(given: Any, width: int) -> Array:
    """Return points ``[B, width]`` in single or double precision; refuse other shapes, and NaN."""
    x = read_tensor(given, "x", f"points [B, {width}]").cpu()
    if x.ndim != 2 or x.shape[1] != width:
        raise HoldfastError(f"x must be points [B, {width}], got shape {tuple(x.shape)}.")
    if not bool(torch.isfinite(x).all()):
        raise HoldfastError("x holds NaN or infinity, and must be points of this table.")
    small = x.is_floating_point() and x.dtype != torch.float64
    return (x.float() if small else x.double()).numpy()


def read_pair(x: Any, witness: Any, width: int) -> tuple[Tensor, Tensor]:
    """Return an input and a witness as ``[1, width]`` each; refuse other shapes."""
    points = [read_tensor(one, name, f"a point [{width}]") for one, name in ((x, "x"), (witness, "witness"))]
    before, after = (one[None] if one.ndim == 1 else one for one in points)
    if before.shape != (1, width) or after.shape != before.shape:
        raise HoldfastError(
            f"x and witness must be points [{width}], got {tuple(before.shape)} and {tuple(after.shape)}."
        )
    return before, after.to(before)


def unscaled(domain: Domain, scales: Tensor, x: Tensor) -> Array:
    """Return points ``[B, n]`` without their scale: whole numbers and categories exactly."""
    values = (domain.nearest(x, x) * scales).numpy()
    continuous = (domain.step == 0).numpy()
    for group in domain.groups:
        continuous[group.numpy()] = False
    return np.where(continuous, values, values.round())
