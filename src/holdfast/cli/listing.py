"""``holdfast list``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.analyses.analysis import Analysis
from holdfast.cli import options
from holdfast.cli.app import out as console
from holdfast.criteria.criterion import Criterion
from holdfast.data.dataset import DataSet
from holdfast.data.network import Network
from holdfast.errors import unknown_name
from holdfast.experiment import Engine
from holdfast.experiment.toml import named
from holdfast.explainers.estimators import Estimator
from holdfast.explainers.explainer import Explainer
from holdfast.modalities.modality import Modality
from holdfast.registry import Registry
from holdfast.robustness import Robustness

app = typer.Typer()
_FEATURES = {
    "pixels": "one feature for each pixel, colour channels together",
    "patches:N": "squares of N x N pixels",
    "superpixels:N": "about N SLIC segments (requires the extra superpixels)",
}
_PIXELS = 784  # of a digit: the size that costs are listed for
_REGISTRIES: dict[str, Registry[Any]] = {
    "explainers": Explainer.registry,
    "criteria": Criterion.registry,
    "robustness methods": Robustness.registry,
    "estimators": Estimator.registry,
    "analyses": Analysis.registry,
    "data sets": DataSet.registry,
    "networks": Network.registry,
    "engines": Engine.registry,
    "modalities": Modality.registry,
}


@app.command()
def list_(
    name: Annotated[str | None, typer.Argument(help="One of the names, to read all about it.")] = None,
    as_json: options.Json = False,
) -> None:
    """Show explainers, criteria, robustness methods and everything else that has a name."""
    if name is not None:
        _print_one(name, as_json)
        return
    listed = {title: [_row(word, make) for word, make in of.makers().items()] for title, of in _REGISTRIES.items()}
    if as_json:
        typer.echo(json.dumps({**listed, "features": _FEATURES, "experiments": named()}, indent=1))
        return
    for title, rows in listed.items():
        columns = [column for column in rows[0] if column not in ("class", "settings")]
        table = Table(title=title)
        for column in columns:
            table.add_column(column, overflow="fold", justify="right" if column == "model rows" else "left")
        for row in rows:
            table.add_row(*(escape(_cell(row[column])) for column in columns))
        console.print(table)
    console.print(f"Model rows are of one case with {_PIXELS} features, or of one subset for robustness methods.")
    console.print("--features takes: " + "; ".join(f"{k} ({v})" for k, v in _FEATURES.items()), highlight=False)
    console.print(f"holdfast run takes: {', '.join(named())}, or a file.toml.", highlight=False)
    console.print("holdfast list NAME shows all about one of them.", highlight=False)


def _row(name: str, make: Callable[..., Any]) -> dict[str, Any]:
    """Return what the listing shows of one name."""
    cls = make if isinstance(make, type) else make.__self__  # type: ignore[attr-defined]  # a preset is a class method
    row: dict[str, Any] = {"name": name, "class": cls.__name__, "about": _headline(make)}
    if issubclass(cls, (Explainer, Criterion, Robustness, Estimator)):
        made = make()
        row |= {"needs": _needs(made)}
        if isinstance(made, Explainer):
            row |= {"from": made.source, "model rows": made.rows(_PIXELS)}
        elif isinstance(made, Robustness):
            row |= {"bound": made.bound, "model rows": made.rows}
        elif isinstance(made, Criterion):
            row |= {"better": "higher" if made.higher_is_better else "lower"}
        return row | {"settings": {f.name: str(getattr(made, f.name)) for f in fields(made) if f.init}}
    return row | {"settings": {f.name: str(f.type) for f in fields(cls) if f.init} if is_dataclass(cls) else {}}


def _needs(made: Explainer | Criterion | Robustness | Estimator) -> list[str]:
    access = made.requires if isinstance(made, Estimator) else made.needs
    return [str(access), *(made.uses if isinstance(made, Explainer) else ())]


def _print_one(name: str, as_json: bool) -> None:
    """Print the settings and the whole docstring of one name."""
    every = {word: make for of in _REGISTRIES.values() for word, make in of.makers().items()}
    if name not in every:
        raise unknown_name("name", name, list(every), most=0)
    row = _row(name, every[name])
    cls = every[name] if isinstance(every[name], type) else every[name].__self__  # type: ignore[attr-defined]
    paragraphs = inspect.cleandoc(cls.__doc__ or "").replace("``", "")
    row |= {"about": paragraphs}
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
        return ", ".join(value)
    if value is None:
        return "varies"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _headline(make: Callable[..., Any]) -> str:
    """Return the first line about a class or a preset."""
    return (make.__doc__ or "").strip().splitlines()[0].replace("``", "")
