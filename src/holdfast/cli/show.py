"""Progress bars, radii as text, and JSON output of the subcommands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from holdfast.cases import ANY, Cases
from holdfast.cli.app import err
from holdfast.robustness import Radii
from holdfast.version import __version__


@contextmanager
def progress_bar(title: str, quiet: bool) -> Iterator[Any]:
    """Show a progress bar on stderr if it is a terminal.

    Args:
        title: The text before the bar.
        quiet: Show nothing.

    Yields:
        A function to call with (done, total), or None.
    """
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
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def radius_text(radii: Radii, case: int, k: int) -> str:
    """Return one radius as text.

    Args:
        radii: Radii ``[B, K]``.
        case: The index of the case.
        k: The index of the subset.
    """
    if bool(radii.unreachable[case, k]):
        return "none: proven that nothing in the bounds changes it"
    return "censored" if bool(radii.censored[case, k]) else f"{float(radii.radius[case, k]):.4g}"


def print_radii(cases: Cases, radii: Radii, names: list[Any], subsets: list[str], extra: dict[str, Any]) -> None:
    """Print radii as JSON, one row for each input and subset.

    Args:
        cases: B cases.
        radii: Radii ``[B, K]``.
        names: B names of inputs.
        subsets: K names of subsets.
        extra: Further keys of the output.
    """
    classes = cases.model.classes
    rows = []
    for b in range(len(cases)):
        label, target = int(cases.label[b]), int(cases.target[b])
        for k, subset in enumerate(subsets):
            radius, new = float(radii.radius[b, k]), int(radii.new_class[b, k])
            rows.append(
                {
                    "input": names[b],
                    "label": classes[label],
                    "target": None if target == ANY else classes[target],
                    "subset": subset,
                    "radius": None if radius == float("inf") else radius,
                    "censored": bool(radii.censored[b, k]),
                    "proven": bool(radii.proven[b, k]),
                    "new class": None if new < 0 else classes[new],
                }
            )
    answer = {
        "version": __version__,
        "method": radii.method,
        "bound": radii.bound,
        "rows": rows,
        "queries": {"forward": radii.queries.forward, "gradient": radii.queries.gradient},
        "notes": list(radii.notes),
    }
    typer.echo(json.dumps(answer | extra, indent=1))
