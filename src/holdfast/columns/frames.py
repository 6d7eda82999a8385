"""Tables of callers as values by column name: data frames, Arrow tables, dicts, lists of rows, arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from holdfast.errors import HoldfastError, first_line, unknown_name
from holdfast.settings import shown_value
from holdfast.tensors import read_tensor

_MISSING = ("NAType", "NaTType")  # of pandas, which is not imported
_TABLES = "a DataFrame, an Arrow table, a dict of columns, a list of dicts or an array [rows, columns]"


@dataclass(frozen=True, eq=False)
class Values:
    """The values of one column, as they were given.

    Attributes:
        name: The name of the column.
        values: A NumPy array of numbers or truth values, or one of Python objects.
        categories: The categories that the caller's table declares; None if it declares none.
        is_ordered: Whether the table declares that its categories have an order.
    """

    name: str
    values: np.ndarray[Any, Any]
    categories: tuple[Any, ...] | None = None
    is_ordered: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def holds_numbers(self) -> bool:
        """Whether all values are numbers, so that they need not be looked at one by one."""
        return self.values.dtype.kind in "iuf"

    def check_complete(self) -> None:
        """Refuse missing values: None, NaN, NA, or empty text.

        Raises:
            HoldfastError: A value is missing.
        """
        if self.values.dtype.kind == "f":
            missing = np.isnan(self.values)
        elif self.values.dtype.kind == "O":
            missing = np.fromiter(map(_is_missing, self.values), bool, len(self))
        else:
            return
        if missing.any():
            raise HoldfastError(
                f"column {self.name!r} has no value in row {int(missing.argmax())}: fill it, leave the row out, or "
                'call it a category of its own, such as "unknown".'
            )


def _is_missing(value: Any) -> bool:
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ in _MISSING or (isinstance(value, str) and not value.strip())


def read_frame(given: Any, names: Sequence[str] | None = None) -> dict[str, Values]:
    """Read a table.

    Args:
        given: A DataFrame of pandas or polars, an Arrow table or anything with ``__arrow_c_stream__``, a dict of
            columns or of one row, a list of dicts, or an array ``[rows, columns]``.
        names: Names of the columns of an array without names.

    Returns:
        The values of each column by name, in the order of the table.

    Raises:
        HoldfastError: It is none of these, has no rows, or its names are not different texts.
    """
    try:
        columns = _columns_of(given, names)
    except HoldfastError:
        raise
    except Exception as error:  # data frames of other libraries fail in many ways
        raise HoldfastError(f"the table cannot be read: {first_line(error)}") from error
    check_names(one.name for one in columns)
    lengths = {len(one) for one in columns}
    if len(lengths) > 1:
        first, other = columns[0], next(one for one in columns if len(one) != len(columns[0]))
        raise HoldfastError(
            f"all columns must have as many rows: {first.name!r} has {len(first)}, {other.name!r} has {len(other)}."
        )
    if not columns or not lengths.pop():
        raise HoldfastError(f"the table is empty: expected rows, got {len(columns)} columns without values.")
    return {one.name: one for one in columns}


def check_names(names: Iterable[Any]) -> None:
    """Refuse names of columns that are not texts, or occur twice."""
    seen = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise HoldfastError(f"names of columns must be texts that are not empty, got {shown_value(name)}.")
        if name in seen:
            raise HoldfastError(f"the table has two columns called {name!r}: rename one of them.")
        seen.add(name)


def check_same_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Refuse a table that lacks a column or has another one."""
    given = list(given)
    missing = next((name for name in names if name not in given), None)
    if missing is not None:
        raise unknown_name("column of the table", missing, given, most=20)
    extra = next((name for name in given if name not in names), None)
    if extra is not None:
        raise HoldfastError(f"the table has a column {extra!r} that is not one of these columns: leave it out.")


def library_of(given: Any) -> str:
    """Return the name of the library that an object, or a class it derives from, is of."""
    roots = [base.__module__.partition(".")[0] for base in type(given).__mro__]
    return next((root for root in roots if root in ("pandas", "polars", "pyarrow")), roots[0])


def table_like(held: Mapping[str, Sequence[Any]], like: Any) -> Any:
    """Return columns as a table of the same kind as another one, with the same types of columns.

    Args:
        held: The values of each column by name.
        like: A DataFrame of pandas or polars, or an Arrow table. Its further columns are left out.

    Raises:
        HoldfastError: ``like`` is something else, or lacks a column.
    """
    library = library_of(like)
    if library not in ("pandas", "polars", "pyarrow") or not hasattr(like, "columns"):
        raise HoldfastError(f"like must be a DataFrame or an Arrow table, got {shown_value(like)}.")
    order = [name for name in (like.column_names if library == "pyarrow" else like.columns) if name in held]
    if len(order) < len(held):
        raise HoldfastError(f"like must have the columns {', '.join(held)}, it has {', '.join(order) or 'none'}.")
    held = {name: held[name] for name in order}
    types = like.dtypes if library == "pandas" else like.schema
    kinds = {name: types.field(name).type if library == "pyarrow" else types[name] for name in order}
    _refuse_cut_numbers(held, kinds)
    try:
        if library == "pandas":
            return type(like)(held).astype(kinds)
        if library == "polars":
            return type(like)(held, schema=kinds)
        return type(like).from_pydict(held, schema=like.select(order).schema)
    except Exception as error:  # a type that cannot hold the values, such as other categories
        raise HoldfastError(f"the columns cannot have the types of those of like: {first_line(error)}") from error


def _refuse_cut_numbers(held: Mapping[str, Sequence[Any]], kinds: Mapping[str, Any]) -> None:
    """Refuse numbers that a column of whole ones would cut without a word."""
    for name, values in held.items():
        whole = str(kinds[name]).lower().startswith(("int", "uint"))  # in all three libraries
        cut = next((one for one in values if isinstance(one, float) and one != int(one)), None) if whole else None
        if cut is not None:
            raise HoldfastError(f"column {name!r} of like holds whole numbers, and the table has {cut!r}.")


def _columns_of(given: Any, names: Sequence[str] | None) -> list[Values]:
    library = library_of(given)
    if library == "pandas" and hasattr(given, "columns"):
        return _from_pandas(given)
    if library == "pandas" and hasattr(given, "to_dict"):  # a Series: one row of a DataFrame
        return _columns_of(given.to_dict(), None)
    if library == "polars":
        if not hasattr(given, "get_columns"):
            raise HoldfastError(f"expected a polars DataFrame, got {type(given).__name__}: call collect() first.")
        return [_from_polars(series) for series in given.get_columns()]
    if library == "pyarrow" and hasattr(given, "column_names"):
        return [_from_arrow(name, given.column(n)) for n, name in enumerate(given.column_names)]
    if hasattr(given, "__arrow_c_stream__"):
        return _columns_of(_arrow_table(given), None)
    if isinstance(given, Mapping):
        one_row = given and all(isinstance(one, (str, int, float, np.generic)) or one is None for one in given.values())
        return [Values(n, _array([one] if one_row else one, n)) for n, one in given.items()]
    if isinstance(given, Tensor) or hasattr(given, "__array__"):
        return _from_array(given, names)
    if isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(one, Mapping) for one in given):
        return _from_rows(given)
    hint = ": read files by Columns.read_csv" if isinstance(given, str) else ""
    raise HoldfastError(f"expected {_TABLES}, got {shown_value(given)}{hint}.")


def _from_pandas(frame: Any) -> list[Values]:
    check_names(frame.columns)
    found = []
    for name in frame.columns:
        series = frame[name]
        declared = getattr(series.dtype, "categories", None)
        categories = None if declared is None else tuple(map(_plain, declared))
        numeric = getattr(series.dtype, "kind", "O") in "iuf"
        held = series.to_numpy(float, na_value=np.nan) if numeric and series.hasnans else series.to_numpy()
        found.append(Values(name, _array(held, name), categories, bool(getattr(series.dtype, "ordered", False))))
    return found


def _from_polars(series: Any) -> Values:
    declared = getattr(series.dtype, "categories", None)  # of an Enum; those of a Categorical are no fixed list
    categories = tuple(declared) if type(series.dtype).__name__ == "Enum" and declared is not None else None
    return Values(series.name, _array(series.to_list(), series.name), categories)


def _from_arrow(name: str, column: Any) -> Values:
    kind, categories = column.type, None
    if hasattr(kind, "index_type"):  # a dictionary
        column = column.unify_dictionaries() if hasattr(column, "unify_dictionaries") else column
        chunks = getattr(column, "chunks", [column])
        categories = tuple(chunks[0].dictionary.to_pylist()) if chunks else ()
    return Values(name, _array(column.to_pylist(), name), categories, bool(getattr(kind, "ordered", False)))


def _arrow_table(given: Any) -> Any:
    try:
        import pyarrow  # an optional extra: only this library turns a stream into columns
    except ImportError as error:
        raise HoldfastError(
            f'a {type(given).__name__} is read through pyarrow: pip install "holdfast[parquet]".'
        ) from error
    return pyarrow.table(given)


def _from_array(given: Any, names: Sequence[str] | None) -> list[Values]:
    array = read_tensor(given, "the table", "numbers").cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    if array.dtype.names:
        return [Values(name, _array(array[name], name)) for name in array.dtype.names]
    if array.ndim != 2:
        raise HoldfastError(f"expected an array [rows, columns], got shape {array.shape}.")
    if names is None:
        raise HoldfastError(f"an array has no names: name its {array.shape[1]} columns in names=[…].")
    names = list(names)
    if len(names) != array.shape[1]:
        raise HoldfastError(f"{len(names)} columns are named, and the array has {array.shape[1]}.")
    return [Values(name, _array(array[:, n], str(name))) for n, name in enumerate(names)]


def _from_rows(rows: Sequence[Mapping[str, Any]]) -> list[Values]:
    names = list(rows[0]) if rows else []
    for number, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            name = min(map(str, row.keys() ^ rows[0].keys()))
            raise HoldfastError(f"all rows must have the same columns: rows 0 and {number} differ in {name!r}.")
    return [Values(name, _array([row[name] for row in rows], name)) for name in names]


def _array(given: Any, name: str) -> np.ndarray[Any, Any]:
    """Return values as numbers or truth values if all of them are, as Python objects otherwise."""
    if isinstance(given, Tensor):
        given = read_tensor(given, f"column {name!r}", "numbers").cpu()
    if isinstance(given, (str, Mapping)) or not (hasattr(given, "__array__") or isinstance(given, Iterable)):
        raise HoldfastError(f"column {name!r} must be a sequence of values, got {shown_value(given)}.")
    array = np.asarray(given) if hasattr(given, "__array__") else None
    if array is not None and array.ndim != 1:
        raise HoldfastError(f"column {name!r} must be one sequence of values, got shape {array.shape}.")
    if array is not None and array.dtype.kind in "iufb":
        return array
    values = list(map(_plain, given if array is None else array.tolist()))
    kinds = set(map(type, values))
    if kinds == {bool}:
        return np.array(values, bool)
    if kinds == {int} and max(map(abs, values)) < 2**63:
        return np.array(values, np.int64)
    fits = all(isinstance(one, float) or abs(one) < 2**1023 for one in values) if kinds == {int, float} else False
    if fits or kinds == {float}:
        return np.array(values, np.float64)
    out = np.empty(len(values), object)
    for number, value in enumerate(values):  # one by one: a value may itself be a sequence
        out[number] = value
    return out


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as that of Python."""
    return value.item() if isinstance(value, np.generic) else value
