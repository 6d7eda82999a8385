"""Witnesses whose numbers have few digits, and which still change the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor

from holdfast.columns.changes import Change, number_changes
from holdfast.columns.column import Category, Column
from holdfast.errors import HoldfastError
from holdfast.tensors import read_tensor

_MOST_DIGITS = 16


class Coded(Protocol):
    """Columns that points are read with."""

    @property
    def columns(self) -> tuple[Column, ...]: ...

    def encode(self, frame: Mapping[str, list[Category]]) -> Tensor: ...

    def decode(self, x: Tensor) -> list[dict[str, Category]]: ...


def shortened(columns: Coded, x: Tensor, witness: Tensor, changed: Callable[[Tensor], Tensor]) -> Tensor:
    """Replace the numbers of a witness by those with the fewest digits that keep it one.

    Each number moves away from the input, by a tenth of its change at most, the number that changes most first.

    Args:
        columns: The columns.
        x: The input ``[1, n]``.
        witness: A point ``[1, n]`` that changes its decision.
        changed: From points ``[R, n]`` to bool ``[R]``: whether they change the decision.

    Returns:
        A witness ``[1, n]``.

    Raises:
        HoldfastError: The witness does not change the decision.
    """
    if not bool(_asked(changed, witness)[0]):
        raise HoldfastError("the witness does not change the decision: there is nothing to shorten.")
    old, new = columns.decode(x)[0], columns.decode(witness)[0]
    same = witness == x
    exact = torch.where(same, x, columns.encode({name: [value] for name, value in new.items()}).to(witness))
    moved = [
        Change(one, old[one.name], new[one.name], number_changes(one, old[one.name], new[one.name]))
        for one in columns.columns
        if not one.has_categories and old[one.name] != new[one.name]
    ]
    if not bool(_asked(changed, exact)[0]):  # the values that a reader would get are not this point
        return witness
    best = exact
    for change in sorted(moved, key=lambda one: -abs(one.amount)):
        numbers = _candidates(change)
        rows = {name: [value] * len(numbers) for name, value in new.items()} | {change.name: numbers}
        points = torch.where(same, x, columns.encode(rows).to(witness))
        first = next((n for n, fits in enumerate(_asked(changed, points).tolist()) if fits), None)
        if first is not None:
            best, new = points[first : first + 1], new | {change.name: numbers[first]}
    return best


def _candidates(change: Change) -> list[Category]:
    """Return a number with ever more digits, ending with the number itself."""
    whole, column = change.column.kind == "integer", change.column
    found: dict[Category, None] = {}
    for digits in range(_MOST_DIGITS):
        number = float(change.rounded(digits))
        if column.low <= number <= column.high and (not whole or number == int(number)):
            found[int(number) if whole else number] = None
    return [*found, change.after]


def _asked(changed: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    answer = read_tensor(changed(points), "what rounded returns", f"bool [{len(points)}]")
    if answer.dtype != torch.bool or answer.shape != points.shape[:1]:
        raise HoldfastError(
            f"rounded must return bool [{len(points)}] for points of shape {tuple(points.shape)}, got "
            f"{answer.dtype} of {tuple(answer.shape)}."
        )
    return answer
