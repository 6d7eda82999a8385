"""Rows of .parquet, .csv and .jsonl files, one after another."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from sys import getsizeof
from typing import IO, Any

from holdfast.errors import HoldfastError
from holdfast.files import MEGABYTE, reading, shown, too_large

TABLES = (".parquet", ".csv", ".jsonl", ".json")
MOST_TABLE = 1024 * MEGABYTE  # bytes of a table of texts
# Bytes of the rows in memory. Yahoo! Answers has 1,400,000 rows with 0.7 GB of texts in files of about that size; a
# small file that holds more than twenty times its size repeats itself.
_LEAST_IN_MEMORY = 64 * MEGABYTE
_MOST_TIMES_FILE = 20
_ROW = 200  # bytes that a row takes beside its values: its name, its class and places in lists
_BATCH = 100  # rows of a .parquet file that are converted together
_KINDS = ("string", "large_string", "integer", "floating", "boolean", "null")  # of columns of a .parquet file
_LONGEST_LINE = 16 * MEGABYTE  # letters


def columns_of(path: str | Path) -> list[str]:
    """Return the names of the columns of a .csv file.

    Args:
        path: The file, in UTF-8.

    Raises:
        HoldfastError: The file cannot be read.
    """
    with reading(path, "texts from", MOST_TABLE), Path(path).open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def each_csv_row(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the values of some columns of every row of a .csv file; what is missing is empty.

    Args:
        path: The file, in UTF-8.
        columns: Names of columns that the file has.

    Raises:
        HoldfastError: The file cannot be read.
    """
    with reading(path, "texts from", MOST_TABLE), Path(path).open(encoding="utf-8-sig", newline="") as file:
        yield from _csv_rows(file, columns)


def each_row(path: str | Path, columns: Sequence[str], what: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some columns of every row of a table; what is missing is None.

    Args:
        path: A file with one of the endings in ``TABLES``. JSON has one object a line, or is a list of objects.
        columns: Names of columns.
        what: What the file is called in messages, such as ``"texts from"``.

    Raises:
        HoldfastError: The file cannot be read, lacks a column, or its rows do not fit into memory.
    """
    with reading(path, what, MOST_TABLE):
        most = max(_LEAST_IN_MEMORY, _MOST_TIMES_FILE * Path(path).stat().st_size)
        total = 0
        for values in _ROWS[Path(path).suffix.lower()](Path(path), columns):
            total += _ROW + sum(map(getsizeof, values))
            if total > most:
                raise too_large(f"the rows of {shown(path)} in memory", most)
            yield values


def _lacks(path: Path, column: str) -> HoldfastError:
    return HoldfastError(f"{shown(path)} has no column {column!r}: it should have those of Yahoo! Answers.")


def _csv_rows(file: IO[str], columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    rows = csv.reader(file)
    place = {name: number for number, name in enumerate(next(rows, []))}
    places = [place[name] for name in columns]
    for row in rows:
        if row:  # an empty line is no row
            yield tuple(row[number] if number < len(row) else "" for number in places)


def _from_csv(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    missing = set(columns) - set(columns_of(path))
    if missing:
        raise _lacks(path, min(missing))
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in _csv_rows(file, columns):
            yield tuple(value or None for value in row)


def _from_json(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    missing = set(columns)
    for entry in _objects(path):  # objects may leave out what is empty, so more than the first may have to be read
        missing -= set(entry)
        if not missing:
            break
    if missing:
        raise _lacks(path, min(missing))
    for entry in _objects(path):
        yield tuple(entry.get(name) for name in columns)


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                raise ValueError(f"line {number} is too long")
            if not line.strip():
                continue
            if number == 1 and line.lstrip().startswith("["):  # the whole file is one list
                line += file.read(_LONGEST_LINE)
                if len(line) >= _LONGEST_LINE:
                    raise ValueError("a list of objects is too long: write one object a line")
            entries = json.loads(line)
            for entry in entries if isinstance(entries, list) else [entries]:
                if not isinstance(entry, dict):
                    raise ValueError(f"line {number} should be an object with the names of columns")
                yield entry


def _from_parquet(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    try:
        import pyarrow  # an optional extra: it comes with datasets
        from pyarrow import parquet
    except ImportError as error:
        raise HoldfastError('a .parquet file requires pyarrow: pip install "holdfast[text]".') from error
    schema = parquet.read_schema(path)
    for name in columns:
        if name not in schema.names:
            raise _lacks(path, name)
        kind = schema.field(name).type
        kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        if not any(getattr(pyarrow.types, f"is_{one}")(kind) for one in _KINDS):
            raise ValueError(f"column {name!r} should hold texts or numbers, not {kind}")
    # A column of texts stays a dictionary: written out, a batch may be large however small the file.
    with parquet.ParquetFile(path, read_dictionary=list(columns), pre_buffer=False) as file:
        about = file.metadata
        size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
        if size > max(_LEAST_IN_MEMORY, _MOST_TIMES_FILE * path.stat().st_size):
            raise ValueError(f"it claims {size:,} bytes, too many for a file of its size")
        for batch in file.iter_batches(_BATCH, columns=list(columns), use_threads=False):
            held = [batch.column(name) for name in columns]
            for row in range(batch.num_rows):
                yield tuple(column[row].as_py() for column in held)


_ROWS = {".parquet": _from_parquet, ".csv": _from_csv, ".jsonl": _from_json, ".json": _from_json}
