"""The matrix of a table with names of its columns, which classifiers keep."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from holdfast.columns.column import Column
from holdfast.errors import HoldfastError

_REFUSED = re.compile(r"[\[\]<]")  # XGBoost refuses these letters in names


def matrix_names(columns: Sequence[Column]) -> list[str]:
    """Return a name for each column of the matrix: that of the column, or ``"job=clerk"`` for a category of several.

    Args:
        columns: The columns of the table.

    Raises:
        HoldfastError: Two names are the same.
    """
    names: list[str] = []
    for column in columns:
        values = column.categories if column.kind == "categorical" else ()
        names += [f"{column.name}={_REFUSED.sub('_', str(one))}" for one in values] or [column.name]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise HoldfastError(f"two columns of the matrix would be called {twice!r}: rename a column or a category.")
    return names


def joined(parts: Sequence[np.ndarray[Any, Any]], columns: Sequence[Column] | None) -> Any:
    """Return the numbers of all columns as one matrix.

    Args:
        parts: The numbers of each column, ``[B, width]``.
        columns: The columns, for a DataFrame of pandas with names; None: an array.

    Raises:
        HoldfastError: pandas is not installed, or two names are the same.
    """
    numbers = np.concatenate(parts, axis=1)
    if columns is None:
        return numbers
    try:
        pandas = import_module("pandas")  # not a dependency
    except ImportError as error:
        raise HoldfastError("a matrix with names needs pandas: pip install pandas, or leave named out.") from error
    return pandas.DataFrame(numbers, columns=matrix_names(columns))
