"""Columns as a JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from holdfast.columns.column import Column
from holdfast.errors import HoldfastError, unknown_name
from holdfast.files import MEGABYTE, reading, write_text
from holdfast.settings import shown_value

_FORMAT = "holdfast columns 1"
_MOST = 16 * MEGABYTE


def write_columns(path: str | Path, columns: Sequence[Column]) -> None:
    """Write columns to a JSON file, whole or not at all."""
    write_text(Path(path), columns_text(columns))


def columns_text(columns: Sequence[Column]) -> str:
    """Return columns as the text of a JSON file; ``columns_of`` reads it."""
    lines = [json.dumps(column.plain, ensure_ascii=False, allow_nan=False) for column in columns]
    rows = ",\n  ".join(lines)
    return f'{{"format": "{_FORMAT}", "columns": [\n  {rows}\n]}}\n'


def read_columns(path: str | Path) -> list[Column]:
    """Read columns from a JSON file. Every value is checked; nothing in the file is executed.

    Raises:
        HoldfastError: The file cannot be read, or holds something else.
    """
    with reading(path, "columns from", _MOST):
        return columns_of(Path(path).read_text(encoding="utf-8-sig"))


def columns_of(text: str) -> list[Column]:
    """Return the columns in the text of a JSON file; see ``read_columns``."""
    try:
        content = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise HoldfastError("its lists are nested too deeply.") from error
    entries = content.get("columns") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or content.get("format") != _FORMAT:
        raise HoldfastError(f'it must be an object with "format": "{_FORMAT}" and a list of "columns".')
    return [_column(entry, number) for number, entry in enumerate(entries)]


def _column(entry: Any, number: int) -> Column:
    known = [field.name for field in fields(Column)]
    if not isinstance(entry, dict) or "name" not in entry:
        raise HoldfastError(f"column {number} must be an object with a name, got {shown_value(entry)}.")
    for key in entry:
        if key not in known:
            raise unknown_name(f"entry of column {number}", key, known)
    return Column(**entry)


def _refuse(constant: str) -> Any:
    raise HoldfastError(f"its numbers must be finite, got {constant}.")
