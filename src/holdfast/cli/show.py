"""Progress, numbers and JSON as the commands print them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from holdfast.cases import Cases
from holdfast.cli.app import err
from holdfast.robustness import Radii
from holdfast.version import __version__


@contextmanager
def progress_bar(what: str, quiet: bool) -> Iterator[Any]:
    """A bar on stderr while somebody looks; ``None`` where nobody does."""
    if quiet or not err.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def shown_radius(radii: Radii, case: int, k: int) -> str:
    """One radius as text."""
    return "censored" if bool(radii.censored[case, k]) else f"{float(radii.radius[case, k]):.4g}"


def print_json(cases: Cases, radii: Radii, names: list[Any], subsets: list[str], extra: dict[str, Any]) -> None:
    """Radii and what belongs to them, one row an input and subset."""
    rows = [
        {
            "input": names[b],
            "label": int(cases.label[b]),
            "target": None if int(cases.target[b]) < 0 else int(cases.target[b]),
            "subset": subsets[k],
            "radius": None if bool(radii.censored[b, k]) else float(radii.radius[b, k]),
            "censored": bool(radii.censored[b, k]),
            "turned": None if bool(radii.censored[b, k]) else int(radii.new_class[b, k]),
        }
        for b in range(len(cases))
        for k in range(len(subsets))
    ]
    answer = {
        "version": __version__,
        "method": radii.method,
        "bound": radii.bound,
        "rows": rows,
        "queries": {"forward": radii.queries.forward, "gradient": radii.queries.gradient},
        "notes": list(radii.notes),
    }
    typer.echo(json.dumps(answer | extra, indent=1))
