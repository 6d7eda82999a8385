"""Column transformers of scikit-learn that were fitted on a table with categories, folded into the trees after them.

The trees then read the numbers of ``columns.matrix``, which has a column of 0 and 1 for each category.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.columns import Column, Columns
from holdfast.errors import HoldfastError, UnreadableError
from holdfast.tree_ensembles.ensemble import LEAF, Floats, TreeEnsemble
from holdfast.tree_ensembles.joined import decided
from holdfast.tree_ensembles.scalers import check_scaler, folded_thresholds, scaled, single_steps

NOWHERE = -1
"""The coordinate of a category that the table does not have."""


def refused_step(step: Any, why: str) -> UnreadableError:
    """Return the error for a step of a pipeline that is refused, with the ways that are left."""
    name = type(step).__name__
    return UnreadableError(
        f"cannot fold the step {name} of this pipeline: {why}; apply it before and pass the classifier alone, or use "
        "hf.FunctionModel(estimator.predict_proba, ...) instead."
    )


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


def table_inputs(steps: Sequence[Any], names: Sequence[str], columns: Columns) -> list[Column]:
    """Return the columns that a pipeline was fitted on, in its order.

    Args:
        steps: The steps before the classifier.
        names: Names of the columns that the pipeline was fitted on, in order; empty: those of the table.
        columns: The columns of the table.

    Raises:
        HoldfastError: The names are others, or there is no step that encodes categories.
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
    return [columns[name] for name in (names or columns.names)]


def number_place(step: Any, column: Column, columns: Columns) -> int:
    """Return the coordinate of a column of numbers or truth values.

    Raises:
        HoldfastError: The column has categories, which a step of numbers cannot get.
    """
    start = columns.slices[column.name].start
    if column.kind == "categorical" and set(column.categories) == {False, True}:
        return int(start + column.categories.index(True))
    if column.has_categories:
        raise refused_step(step, f"it gets the column {column.name!r}, which has categories")
    return int(start)


def category_places(step: Any, column: Column, values: Any, columns: Columns) -> list[int]:
    """Return the coordinate of each category that an encoder knows; ``NOWHERE`` if the table does not have it.

    Args:
        step: The encoder.
        column: A column of categories without an order.
        values: The categories that the encoder knows.
        columns: The columns of the table.

    Raises:
        HoldfastError: The column is of another kind, or the encoder refuses one of its categories.
    """
    if column.kind != "categorical":
        raise refused_step(step, f"it gets the column {column.name!r}, which is {column.kind}: state it as categorical")
    if getattr(step, "_infrequent_enabled", False):
        raise refused_step(step, "it joins rare categories")
    start = columns.slices[column.name].start
    place = {(isinstance(one, str), one): start + number for number, one in enumerate(column.categories)}
    found = [place.pop((isinstance(one, str), one), NOWHERE) for one in map(plain, values)]
    if place and getattr(step, "handle_unknown", "error") != "ignore":
        raise refused_step(step, f"it does not know the category {next(iter(place))[1]!r} of {column.name!r}")
    return found


def one_hot_places(step: Any, inputs: Sequence[Column], columns: Columns) -> list[int]:
    """Return the coordinate of each column of 0 and 1 that a ``OneHotEncoder`` makes."""
    dropped = step.drop_idx_ if step.drop_idx_ is not None else [None] * len(inputs)
    places = []
    for column, values, drop in zip(inputs, step.categories_, dropped, strict=True):
        every = category_places(step, column, values, columns)
        places += [one for number, one in enumerate(every) if number != drop]
    return places


def check_order(step: Any, column: Column, values: Any) -> None:
    """Refuse an ``OrdinalEncoder`` whose categories of an ordered column are not in the order of the table."""
    if tuple(map(plain, values)) != column.categories:
        raise refused_step(
            step, f"its categories of the column {column.name!r} are not those of the table in the same order"
        )


def transformer_columns(step: Any, given: Any, width: int) -> list[int]:
    """Return the numbers of the columns that a part of a column transformer gets.

    Args:
        step: The column transformer.
        given: What the part names.
        width: How many columns the transformer was fitted on.

    Raises:
        HoldfastError: They are chosen by a function or a slice of names.
    """
    names = list(getattr(step, "feature_names_in_", []))
    if isinstance(given, slice) and not any(isinstance(end, str) for end in (given.start, given.stop)):
        return list(range(width))[given]
    if isinstance(given, str | int | np.integer):
        given = [given]
    if isinstance(given, slice) or callable(given):
        raise refused_step(step, "its columns are chosen by a function or a slice of names")
    chosen = np.asarray(given)
    if chosen.dtype == bool:
        return [int(one) for one in np.flatnonzero(chosen)]
    return [names.index(one) if isinstance(one, str) else int(one) % width for one in chosen.tolist()]


def plain(value: Any) -> Any:
    """Return a category of an encoder as a value of Python."""
    return value.item() if isinstance(value, np.generic) else value


def before_encoding(
    ensemble: TreeEnsemble, steps: Sequence[Any], names: Sequence[str], columns: Columns
) -> TreeEnsemble:
    """Return an ensemble that decides for rows of ``columns.matrix`` as the given one does after some steps.

    Args:
        ensemble: The trees after the steps.
        steps: A fitted column transformer or encoder, and scalers after it.
        names: Names of the columns that the pipeline was fitted on.
        columns: The columns of the table.

    Raises:
        HoldfastError: A step cannot be folded.
    """
    parts = _parts(steps[0], table_inputs(steps, names, columns), columns)
    places = np.array([place for part in parts for place in part.places])
    if len(places) != ensemble.columns:
        raise refused_step(steps[0], f"it makes {len(places)} columns, and the trees read {ensemble.columns}")
    for step in steps[1:]:
        check_scaler(step, ensemble.columns)
    threshold = folded_thresholds(ensemble, [_SideBySide(parts), *steps[1:]])
    inner = ensemble.feature != LEAF
    feature = ensemble.feature.copy()
    feature[inner] = places[ensemble.feature[inner]]
    never = inner & (feature == NOWHERE)  # such a column is always 0
    threshold[never] = np.where(threshold[never] >= 0, np.inf, -np.inf)
    feature[never] = 0
    return decided(
        dataclasses.replace(
            ensemble, feature=feature, threshold=threshold, columns=columns.width, single=False, names=()
        )
    )


@dataclasses.dataclass(frozen=True)
class _Part:
    """Outputs of a column transformer: the coordinate that each of them reads, and scalers after that."""

    places: list[int]
    scalers: list[Any] = dataclasses.field(default_factory=list)


class _SideBySide:
    """The scalers of all parts as one step."""

    def __init__(self, parts: Sequence[_Part]):
        self._parts = parts

    def transform(self, rows: Floats) -> Floats:
        ends = np.cumsum([len(part.places) for part in self._parts])[:-1]
        pieces = np.split(rows, ends, axis=1)
        return np.concatenate(
            [scaled(piece, part.scalers) for piece, part in zip(pieces, self._parts, strict=True)], axis=1
        )


def _parts(step: Any, inputs: Sequence[Column], columns: Columns) -> list[_Part]:
    """Return what a step makes of some columns of the table."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    if isinstance(step, ColumnTransformer):
        if getattr(step, "transformer_weights", None):
            raise refused_step(step, "transformer_weights are not supported")
        found = []
        for _, one, given in step.transformers_:
            which = transformer_columns(step, given, len(inputs))
            if which and not (isinstance(one, str) and one == "drop"):
                found += _parts(one, [inputs[number] for number in which], columns)
        return found
    singles = [
        one
        for one in single_steps(step)
        if not (isinstance(one, FunctionTransformer) and one.func is None) and not _fills_only(one)
    ]
    if not singles:
        return [_Part([number_place(step, one, columns) for one in inputs])]
    first, *rest = singles
    if isinstance(first, OneHotEncoder):
        places = one_hot_places(first, inputs, columns)
    elif type(first).__name__ == "OrdinalEncoder":
        for column, values in zip(inputs, first.categories_, strict=True):
            if column.kind == "categorical":
                raise refused_step(first, f"before trees, it gets {column.name!r}, whose categories have no order")
            check_order(first, column, values)
        places = [columns.slices[column.name].start for column in inputs]
    else:
        places, rest = [number_place(first, one, columns) for one in inputs], singles
    for one in rest:
        check_scaler(one, len(places))
    return [_Part(places, rest)]


def _fills_only(step: Any) -> bool:
    """Whether a step only fills missing values, which a row of a table does not have."""
    from sklearn.impute import SimpleImputer

    is_plain = isinstance(step, SimpleImputer) and not step.add_indicator and len(step.statistics_) > 0
    missing = getattr(step, "missing_values", 0)
    return is_plain and isinstance(missing, float) and missing != missing


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
