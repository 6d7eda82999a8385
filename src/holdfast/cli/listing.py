"""``holdfast list``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
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

app = typer.Typer(add_completion=False)
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
            number = column == "model rows"
            table.add_column(column, overflow="fold", no_wrap=column == "name", justify="right" if number else "left")
        for row in rows:
            table.add_row(*(escape(_cell(row[column])) for column in columns))
        console.print(table)
    console.print(f"Model rows are of one case with {_PIXELS} features, or of one subset for robustness methods.")
    console.print("--features takes: " + "; ".join(f"{k} ({v})" for k, v in _FEATURES.items()), highlight=False)
    console.print(f"holdfast run takes: {', '.join(named())}, or a file.toml.", highlight=False)
    console.print("holdfast list NAME shows all about one of them.", highlight=False)


def _row(name: str, make: Callable[..., Any]) -> dict[str, Any]:
    """Return what the listing shows of one name."""
    cls = _class_of(make)
    row: dict[str, Any] = {"name": name, "class": cls.__name__, "about": _headline(make)}
    if not issubclass(cls, (Explainer, Criterion, Robustness, Estimator)):
        return row | {"settings": _defaults(cls)}
    try:
        made = make()
    except TypeError:  # it has settings without a default
        return row | _columns(cls, None) | {"settings": _defaults(cls)}
    return (
        row | _columns(cls, made) | {"settings": {f.name: str(getattr(made, f.name)) for f in fields(made) if f.init}}
    )


def _class_of(make: Callable[..., Any]) -> type:
    """Return a class, or the class of a preset, which is one of its class methods."""
    return make if isinstance(make, type) else make.__self__  # type: ignore[attr-defined]  # of a class method


def _columns(cls: type, made: Any) -> dict[str, Any]:
    """Return the columns of a kind; of a class that cannot be made without settings they are empty."""
    columns: dict[str, Any] = {"needs": [] if made is None else _needs(made)}
    if issubclass(cls, Explainer):
        return columns | {"from": cls.source, "model rows": None if made is None else made.rows(_PIXELS)}
    if issubclass(cls, Robustness):
        return columns | {"bound": cls.bound, "model rows": None if made is None else made.rows}
    if issubclass(cls, Criterion):
        return columns | {"better": "higher" if cls.higher_is_better else "lower"}
    return columns


def _defaults(cls: type) -> dict[str, str]:
    """Return the settings of a class and their defaults."""
    found = {}
    for field in fields(cls) if is_dataclass(cls) else ():
        if field.init and not field.metadata.get("from_data"):
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            found[field.name] = "required" if default is MISSING else str(default)
    return found


def _needs(made: Explainer | Criterion | Robustness | Estimator) -> list[str]:
    access = made.requires if isinstance(made, Estimator) else made.needs
    return [str(access), *(made.uses if isinstance(made, Explainer) else ())]


def _print_one(name: str, as_json: bool) -> None:
    """Print the settings and the whole docstring of one name."""
    every = {word: make for of in _REGISTRIES.values() for word, make in of.makers().items()}
    if name not in every:
        raise unknown_name("name", name, list(every), most=0)
    row = _row(name, every[name])
    row |= {"about": inspect.cleandoc(_class_of(every[name]).__doc__ or "").replace("``", "")}
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
    console.print(row["about"], highlight=False, markup=False, soft_wrap=True)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if value is None:
        return "varies"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _headline(make: Callable[..., Any]) -> str:
    """Return the first line about a class or a preset."""
    return ((make.__doc__ or "").strip().splitlines() or [""])[0].replace("``", "")
