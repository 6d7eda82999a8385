"""``holdfast list``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.cli.app import Json, app
from holdfast.cli.app import out as console
from holdfast.errors import HoldfastError
from holdfast.experiment.names import CRITERIA, EXPLAINERS, METHODS
from holdfast.explainers.explainer import Explainer
from holdfast.robustness import Robustness

_FEATURES = {
    "pixels": "one feature a pixel, colour channels together",
    "patches:N": "squares of N x N pixels",
    "superpixels:N": "about N SLIC segments (extra: superpixels)",
}
_PIXELS = 784  # of a digit: the size that costs are listed for


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Argument(help="One of them, to read all about it.")] = None,
    as_json: Json = False,
) -> None:
    """Show explainers, criteria and robustness methods by name: where they come from, what they need and cost."""
    rooms: dict[str, dict[str, Callable[..., Any]]] = {
        "explainers": EXPLAINERS,
        "criteria": CRITERIA,
        "robustness methods": METHODS,
    }
    if name is not None:
        _tell(name, {word: make for room in rooms.values() for word, make in room.items()}, as_json)
        return
    listed = {room: [_row(word, make) for word, make in made.items()] for room, made in rooms.items()}
    if as_json:
        typer.echo(json.dumps({**listed, "features": _FEATURES}, indent=1))
        return
    for room, rows in listed.items():
        columns = [column for column in rows[0] if column not in ("class", "settings")]
        table = Table(title=room)
        for column in columns:
            table.add_column(column, overflow="fold", justify="right" if column == "model rows" else "left")
        for row in rows:
            table.add_row(*(escape(_cell(row[column])) for column in columns))
        console.print(table)
    console.print(f"Model rows are of one case with {_PIXELS} features, or of one subset for robustness methods.")
    console.print("--features takes: " + "; ".join(f"{k} ({v})" for k, v in _FEATURES.items()), highlight=False)
    console.print("holdfast list NAME tells all about one of them.", highlight=False)


def _row(word: str, make: Callable[..., Any]) -> dict[str, Any]:
    made = make()
    row: dict[str, Any] = {"name": word, "class": type(made).__name__, "about": _headline(make)}
    if isinstance(made, Explainer):
        row |= {"from": made.source, "needs": list(made.needs), "model rows": made.rows(_PIXELS)}
    elif isinstance(made, Robustness):
        row |= {"bound": made.bound, "model rows": made.rows}
    else:
        row |= {"better": "higher" if made.higher_is_better else "lower"}
    return row | {"settings": _settings(made)}


def _tell(name: str, everything: dict[str, Callable[..., Any]], as_json: bool) -> None:
    """All about one of them: its settings and its whole docstring."""
    if name not in everything:
        raise HoldfastError(f"there is no {name!r}: holdfast list shows what there is.")
    made = everything[name]()
    paragraphs = inspect.cleandoc(type(made).__doc__ or "").replace("``", "").split("\n\n")
    row = _row(name, everything[name]) | {"about": "\n\n".join(" ".join(text.split()) for text in paragraphs)}
    if as_json:
        typer.echo(json.dumps(row, indent=1))
        return
    table = Table(show_header=False)
    for key, value in row.items():
        if key not in ("about", "settings"):
            table.add_row(key, escape(_cell(value)))
    for setting, value in row["settings"].items():
        table.add_row(f"  {setting}", escape(value))
    console.print(table)
    console.print(row["about"], highlight=False, markup=False)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "scores only"
    if value is None:
        return "as it takes"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _headline(make: Callable[..., Any]) -> str:
    """The first line about a class, or about one of its presets."""
    return (make.__doc__ or "").strip().splitlines()[0].replace("``", "")


def _settings(made: Any) -> dict[str, str]:
    return {field.name: str(getattr(made, field.name)) for field in fields(made) if field.init}
