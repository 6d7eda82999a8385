"""Steps of scikit-learn that read a table with categories as people have it, as one affine map of its matrix.

``columns.matrix`` has a column of 0 and 1 for each category, so an encoder of categories only selects some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from holdfast.columns import Column, Columns
from holdfast.models.affine import AffineMap
from holdfast.models.sklearn.refusals import refused_step
from holdfast.models.sklearn.steps import folded, in_turn, side_by_side
from holdfast.tree_ensembles.encoders import (
    NOWHERE,
    category_places,
    check_order,
    number_place,
    one_hot_places,
    table_inputs,
)


def folded_table(steps: Sequence[Any], names: Sequence[str], columns: Columns) -> AffineMap:
    """Return steps that were fitted on a table as one map of the numbers of ``columns.matrix``.

    Args:
        steps: The steps before the classifier.
        names: Names of the columns that the steps were fitted on, in order; empty: those of the table.
        columns: The columns of the table.

    Raises:
        HoldfastError: The names are others, or a step is not affine.
    """
    inputs = table_inputs(steps, names, columns)
    whole = _Table(columns).map(steps[0], inputs)
    return whole.then(in_turn(steps[1:], len(whole.bias)))


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
            return self._selecting(one_hot_places(step, inputs, self._columns))
        if isinstance(step, OrdinalEncoder):
            pairs = zip(inputs, step.categories_, strict=True)
            return AffineMap.stacked([self._number(step, column, values) for column, values in pairs])
        numbers = self._selecting([number_place(step, one, self._columns) for one in inputs])
        return numbers.then(folded(step, len(inputs)))

    def _number(self, step: Any, column: Column, values: Any) -> AffineMap:
        """Return the number that an ``OrdinalEncoder`` gives to a category."""
        if column.kind == "ordered":
            check_order(step, column, values)
            return self._selecting([self._columns.slices[column.name].start])
        places = category_places(step, column, values, self._columns)
        if len([one for one in places if one != NOWHERE]) < len(column.categories):
            raise refused_step(step, f"its value for unknown categories of {column.name!r} is not supported")
        number = torch.arange(len(values), dtype=torch.float64)[None]
        selecting = self._selecting(places)
        return AffineMap(number @ selecting.weight, torch.zeros(1, dtype=torch.float64))

    def _selecting(self, places: Sequence[int]) -> AffineMap:
        """Return the map to some coordinates, and to 0 for those that the table does not have."""
        weight = torch.zeros(len(places), self._columns.width, dtype=torch.float64)
        for row, place in enumerate(places):
            if place != NOWHERE:
                weight[row, place] = 1
        return AffineMap(weight, torch.zeros(len(places), dtype=torch.float64))
