"""Templates of pages. Everything that is put into a page is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from holdfast.columns import Cell
from holdfast.prose import visible


def template_file(name: str) -> str:
    """Return the text of a template, style sheet or script."""
    return (files("holdfast.templates") / "files" / name).read_text(encoding="utf-8")


def templates() -> jinja2.Environment:
    """Return all templates by name; one that uses an undefined name fails."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(template_file),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    environment.globals |= {"shade": shade, "swatches": {}, "keys": {}}  # the last two are a report's own
    environment.filters["kept"] = kept
    return environment


def _shown(value: Any) -> Any:
    """Return what a page shows of a value: control characters and those that turn text round as escapes."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def shade(place: int, count: int) -> float:
    """Return how strongly a relevant word is coloured, from 1 for the first to a third for the last."""
    return 1 - 2 / 3 * place / max(1, count - 1)


def kept(cells: Sequence[Cell], top: int, most: int) -> list[Cell]:
    """Return the columns of a row that a page shows: relevant ones, ones that change, and a few others.

    Args:
        cells: The columns in order of relevance.
        top: How many of them are relevant.
        most: How many others are shown that do not change.
    """
    others = [cell for cell in cells if cell.rank and cell.rank > top and cell.amount is None][:most]
    return [cell for cell in cells if cell in others or (cell.rank and (cell.rank <= top or cell.amount is not None))]
