"""Tables in .csv files: read within bounds, numbers told from texts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from holdfast.columns.column import Column
from holdfast.columns.frames import check_names
from holdfast.errors import HoldfastError, unknown_name
from holdfast.files import MEGABYTE, reading, shown, too_large

MOST_CSV = 256 * MEGABYTE  # bytes of a file
_MOST_CELLS = 20_000_000  # of a table in memory; the full Adult has 700,000
_MOST_COLUMNS = 10_000
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,14})")  # a code such as 007 is no number
_MISSING = ("", "?", "na", "n/a", "nan", "null", "none")  # where the other values of a column are numbers
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def read_texts(path: str | Path, without: Sequence[str] = ()) -> dict[str, list[str]]:
    """Read all columns of a .csv file as texts.

    Args:
        path: The file, in UTF-8; its first line names the columns.
        without: Names of columns to leave out.

    Returns:
        The texts of each column by name.

    Raises:
        HoldfastError: The file cannot be read, or has no column of a name in ``without``.
    """
    with reading(path, "the table", MOST_CSV), _opened(path) as file:
        return texts_of(file, shown(path), without)


def read_values(path: str | Path, without: Sequence[str], categories: Any) -> dict[str, list[Any]]:
    """Read all columns of a .csv file as numbers or texts, or as the categories that are stated for them by name."""
    stated = categories if isinstance(categories, Mapping) else {}
    known = {name: one for name, one in stated.items() if isinstance(one, (list, tuple))}
    texts = read_texts(path, without)
    return {n: with_categories(one, known[n]) if n in known else parsed(one) for n, one in texts.items()}


def texts_of(file: IO[str], name: str, without: Sequence[str] = ()) -> dict[str, list[str]]:
    """Read all columns of an open .csv file as texts; see ``read_texts``."""
    rows = _rows(file)
    heading = next(rows)
    for one in without:
        if one not in heading:
            raise unknown_name("column", one, heading)
    columns: list[list[str]] = [[] for _ in heading]
    for number, row in enumerate(rows, 1):
        if number * len(heading) > _MOST_CELLS:
            raise HoldfastError(f"{name} has more than the {_MOST_CELLS:,} values that are read.")
        for column, text in zip(columns, row, strict=True):
            column.append(text)
    return {one: column for one, column in zip(heading, columns, strict=True) if one not in without}


def read_csv_rows(
    path: str | Path, columns: Sequence[Column], first: int = 0, count: int | None = None
) -> list[dict[str, Any]]:
    """Read some rows of a .csv file with values of the kinds that columns say. Other columns are left out.

    Args:
        path: The file, in UTF-8; its first line names the columns.
        columns: The columns.
        first: The first row to read; the row below the names is row 0.
        count: How many rows to read; None: all of them.

    Returns:
        One dict for each row.

    Raises:
        HoldfastError: The file cannot be read, lacks a column or a row, or a value does not fit its column.
    """
    with reading(path, "the table", MOST_CSV), _opened(path) as file:
        rows = _rows(file)
        heading = next(rows)
        for column in columns:
            if column.name not in heading:
                raise unknown_name("column", column.name, heading)
        place = {column.name: heading.index(column.name) for column in columns}
        found: list[dict[str, Any]] = []
        number = -1
        for number, row in enumerate(rows):
            if number >= first and (count is None or number < first + count):
                found.append({one.name: _value(one, row[place[one.name]], number) for one in columns})
                if len(found) * len(columns) > _MOST_CELLS:
                    raise too_large(f"the rows of {shown(path)}", MOST_CSV)
            if count is not None and number + 1 >= first + count:
                break
        if not found or (count is not None and len(found) < count):
            raise HoldfastError(f"{shown(path)} has the rows 0 to {number}: there is no row {max(first, number + 1)}.")
        return found


def _opened(path: str | Path) -> IO[str]:
    return Path(path).open(encoding="utf-8-sig", newline="")


def _rows(file: IO[str]) -> Iterator[list[str]]:
    """Yield the names of the columns, then the values of each row that is not empty."""
    try:
        rows = csv.reader(file, skipinitialspace=True, strict=True)
        heading = [name.strip() for name in next(rows, [])]
        if not heading:
            raise HoldfastError("the first line must name the columns, and it is empty.")
        if len(heading) > _MOST_COLUMNS:
            raise HoldfastError(f"it has {len(heading):,} columns, more than the {_MOST_COLUMNS:,} that are read.")
        if len(heading) == 1 and re.search("[;\t]", heading[0]):
            raise HoldfastError("its columns must be separated by commas, and its first line has none.")
        check_names(heading)
        yield heading
        for row in rows:
            if row and len(row) != len(heading):
                raise HoldfastError(
                    f"line {rows.line_num} has {len(row)} values, and {len(heading)} columns are named."
                )
            if row:
                yield row
    except UnicodeDecodeError as error:
        raise HoldfastError("it is not a text in UTF-8: save it as one.") from error


def parsed(texts: Sequence[str]) -> list[Any]:
    """Return the texts of one column as numbers if all of them are, and as they are otherwise.

    A text such as "n/a" between numbers is a missing value, None.

    Args:
        texts: The values of the column in a file.
    """
    if all(map(_WHOLE.fullmatch, texts)):
        return list(map(int, texts))
    if all(map(_NUMBER.fullmatch, texts)) and not any(re.match(r"[+-]?0[0-9]", text) for text in texts):
        return list(map(float, texts))
    missing = [text.strip().lower() in _MISSING for text in texts]
    filled = [text for text, none in zip(texts, missing, strict=True) if not none]
    if filled and len(filled) < len(texts) and all(map(_NUMBER.fullmatch, filled)):
        return [None if none else float(text) for text, none in zip(texts, missing, strict=True)]
    return list(texts)


def with_categories(texts: Sequence[str], categories: Sequence[Any]) -> list[Any]:
    """Return texts as the categories that they are the texts of; unknown ones as they are."""
    known = {str(category): category for category in categories}
    return [known.get(text, text) for text in texts]


def _value(column: Column, text: str, row: int) -> Any:
    if column.has_categories:
        return with_categories([text], column.categories)[0]
    if not text.strip():
        raise HoldfastError(f"column {column.name!r} has no value in row {row}.")
    if not _NUMBER.fullmatch(text):
        raise HoldfastError(f"column {column.name!r} must hold numbers, got {text[:60]!r} in row {row}.")
    return int(text) if _WHOLE.fullmatch(text) else float(text)
