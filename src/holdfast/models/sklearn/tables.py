"""Steps of scikit-learn that read a table with categories as people have it, as one affine map of its matrix.

``columns.matrix`` has a column of 0 and 1 for each category, so an encoder of categories only selects some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from holdfast.columns import Column, Columns
from holdfast.errors import HoldfastError
from holdfast.models.affine import AffineMap
from holdfast.models.sklearn.refusals import refused_step
from holdfast.models.sklearn.steps import folded, in_turn, side_by_side


def reads_table(steps: Sequence[Any], width: int, columns: Columns) -> bool:
    """Return whether a pipeline was fitted on the table itself, not on ``columns.matrix(table)``.

    Args:
        steps: The steps before the classifier.
        width: How many columns the pipeline was fitted on.
        columns: The columns of the table.
    """
    if width != len(columns) or not any(column.has_categories for column in columns):
        return False
    return width != columns.width or _encodes(steps[0] if steps else None)


def folded_table(steps: Sequence[Any], names: Sequence[str], columns: Columns) -> AffineMap:
    """Return steps that were fitted on a table as one map of the numbers of ``columns.matrix``.

    Args:
        steps: The steps before the classifier.
        names: Names of the columns that the steps were fitted on, in order; empty: those of the table.
        columns: The columns of the table.

    Raises:
        HoldfastError: The names are others, or a step is not affine.
    """
    if names and sorted(names) != sorted(columns.names):
        raise HoldfastError(
            f"the pipeline was fitted on the columns {', '.join(names)}, and the table has {', '.join(columns.names)}: "
            "give it the columns of its own table."
        )
    if not steps:
        raise HoldfastError(
            f"the classifier was trained on {len(columns)} columns with categories, and has no step that encodes "
            "them: train it on columns.matrix(table)."
        )
    inputs = [columns[name] for name in (names or columns.names)]
    whole = _Table(columns).map(steps[0], inputs)
    return whole.then(in_turn(steps[1:], len(whole.bias)))


def _encodes(step: Any) -> bool:
    """Whether a step is an encoder, or has one that is fitted on texts."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    if isinstance(step, ColumnTransformer):
        return any(_encodes(one) for _, one, _ in step.transformers_)
    if isinstance(step, Pipeline):
        return any(_encodes(one) for _, one in step.steps)
    is_encoder = isinstance(step, (OneHotEncoder, OrdinalEncoder))
    return is_encoder and any(np.asarray(one).dtype.kind not in "biuf" for one in step.categories_)


class _Table:
    """Maps from the numbers of a table's matrix to the outputs of steps."""

    def __init__(self, columns: Columns):
        self._columns = columns

    def map(self, step: Any, inputs: Sequence[Column]) -> AffineMap:
        """Return what a step makes of some columns of the table."""
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

        if isinstance(step, Pipeline):
            steps = [one for _, one in step.steps]
            while len(steps) > 1 and isinstance(steps[0], SimpleImputer) and any(one.has_categories for one in inputs):
                folded(steps.pop(0), len(inputs))  # refused if it replaces more than what is missing
            first = self.map(steps[0], inputs)
            return first.then(in_turn(steps[1:], len(first.bias)))
        if isinstance(step, ColumnTransformer):
            return side_by_side(step, len(inputs), lambda one, which: self.map(one, [inputs[n] for n in which]))
        if isinstance(step, OneHotEncoder):
            return self._one_hot(step, inputs)
        if isinstance(step, OrdinalEncoder):
            return AffineMap.stacked(
                [self._place(step, one, values) for one, values in zip(inputs, step.categories_, strict=True)]
            )
        return AffineMap.stacked([self._number(step, one) for one in inputs]).then(folded(step, len(inputs)))

    def _number(self, step: Any, column: Column) -> AffineMap:
        """Return the value of a column of numbers or truth values."""
        place = self._columns.slices[column.name].start
        if column.kind == "categorical" and set(column.categories) == {False, True}:
            return AffineMap.selecting([place + column.categories.index(True)], self._columns.width)
        if column.has_categories:
            raise refused_step(step, f"it gets the column {column.name!r}, which has categories")
        return AffineMap.selecting([place], self._columns.width)

    def _one_hot(self, step: Any, inputs: Sequence[Column]) -> AffineMap:
        """Return the columns of 0 and 1 that an encoder makes."""
        if getattr(step, "_infrequent_enabled", False):
            raise refused_step(step, "it joins rare categories")
        dropped = step.drop_idx_ if step.drop_idx_ is not None else [None] * len(inputs)
        parts = []
        for column, values, drop in zip(inputs, step.categories_, dropped, strict=True):
            if column.kind != "categorical":
                raise refused_step(
                    step, f"it gets the column {column.name!r}, which is {column.kind}: state it as categorical"
                )
            weight = self._selected(step, column, values)
            kept = [place for place in range(len(values)) if place != drop]
            parts.append(AffineMap(weight[kept], torch.zeros(len(kept), dtype=torch.float64)))
        return AffineMap.stacked(parts)

    def _place(self, step: Any, column: Column, values: Any) -> AffineMap:
        """Return the number of a category, which an encoder of ordered categories gives."""
        number = torch.arange(len(values), dtype=torch.float64)
        if column.kind == "categorical":
            return AffineMap(number[None] @ self._selected(step, column, values), torch.zeros(1, dtype=torch.float64))
        own = tuple(_plain(one) for one in values)
        if own != column.categories:
            raise refused_step(
                step, f"its categories of the column {column.name!r} are not those of the table in the same order"
            )
        return AffineMap.selecting([self._columns.slices[column.name].start], self._columns.width)

    def _selected(self, step: Any, column: Column, values: Any) -> torch.Tensor:
        """Return which coordinate is 1 for each category of an encoder, ``[categories, n]``."""
        start = self._columns.slices[column.name].start
        place = {(isinstance(one, str), one): start + number for number, one in enumerate(column.categories)}
        weight = torch.zeros(len(values), self._columns.width, dtype=torch.float64)
        for row, one in enumerate(map(_plain, values)):
            if (key := (isinstance(one, str), one)) in place:
                weight[row, place.pop(key)] = 1
        if place and getattr(step, "handle_unknown", "error") != "ignore":
            raise refused_step(step, f"it does not know the category {next(iter(place))[1]!r} of {column.name!r}")
        if place and type(step).__name__ == "OrdinalEncoder":
            raise refused_step(step, f"its value for unknown categories of {column.name!r} is not supported")
        return weight


def _plain(value: Any) -> Any:
    """Return a category of an encoder as a value of Python."""
    return value.item() if isinstance(value, np.generic) else value
