"""``holdfast run``."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.cli import options
from holdfast.cli.app import err
from holdfast.cli.app import out as console
from holdfast.cli.arguments import usable_device
from holdfast.cli.board import shown_progress, time_text
from holdfast.cli.show import progress_bar
from holdfast.cli.signals import SIGNALS
from holdfast.errors import HoldfastError, first_line, unknown_name
from holdfast.experiment import Engine, Store, Study, Summary, plan_of
from holdfast.experiment import run as compute
from holdfast.experiment.build import build
from holdfast.experiment.database import is_new
from holdfast.experiment.toml import load
from holdfast.files import shown
from holdfast.prose import counted

app = typer.Typer(add_completion=False)
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the full data set, or with photographs (in folders by class); for texts a folder, archive or "
        "table, newsgroups or yahoo-answers; for tables breast-cancer or wine (of scikit-learn), or a file of "
        "California Housing or Adult."
    ),
]
OtherModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Another network: torchvision:NAME or timm:NAME for photographs, huggingface:NAME for texts, "
        "table-forest, table-xgboost, table-knn, table-logistic or table-mlp for tables.",
    ),
]


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(help="The name of an experiment (paper-mnist, …), or a file.toml.")],
    out: Annotated[Path | None, typer.Option(help="Folder for results.db. Default: holdfast-NAME.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N examples.")] = None,
    data: Data = None,
    model: OtherModel = None,
    weights: Annotated[Path | None, typer.Option(help="A file of weights for the network.")] = None,
    device: options.Device = "cpu",
    engine: Annotated[str | None, typer.Option(help="local or ray. Default: what the experiment says.")] = None,
    address: Annotated[str | None, typer.Option(help="The Ray cluster to use. Default: one on this machine.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Jobs at once on Ray. Default: as many as fit.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be computed, and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON for each unit, for logs.")] = False,
) -> None:
    """Compute an experiment, or what is missing of it, into FOLDER/results.db.

    Ctrl-C, SIGTERM and SIGHUP finish the running unit and stop; the same command continues from there.
    """
    settings = load(experiment)
    usable_device(device)
    name = Path(experiment).stem
    folder = out or Path(f"holdfast-{name}")
    chosen = _engine(engine or settings.engine, address, workers)
    choices = {"data": data, "network": model, "weights": weights}

    def make(train: bool) -> Study:
        with progress_bar("training the network, epochs", quiet or as_json) as progress:
            return build(
                settings,
                name,
                folder,
                limit=limit,
                choices={key: str(value) for key, value in choices.items() if value is not None},
                device=device,
                train=train,
                progress=progress,
            )

    planned = make(train=False)  # errors come before anything is written
    if dry_run:
        show_plan(planned, folder / "results.db", as_json)
        return
    trains = settings.model is not None and settings.model.settings.get("weights") == "train" and weights is None
    summary = carry_out(
        lambda: make(train=True) if trains else planned,
        folder,
        lambda: chosen.start(address, workers, device),
        quiet=quiet,
        as_json=as_json,
    )
    finish(summary, folder, as_json)


def _engine(name: str, address: str | None, workers: int | None) -> type[Engine]:
    """Return the engine of this name; refuse options that it does not support."""
    known = Engine.registry.classes()
    if name not in known:
        raise unknown_name("engine", name, list(known))
    if (address is not None or workers is not None) and not known[name].has_workers:
        raise HoldfastError(f"--address and --workers are not for the engine {name}: leave them out.")
    return known[name]


def carry_out(
    make: Callable[[], Study], folder: Path, engine: Callable[[], Engine], *, quiet: bool, as_json: bool
) -> Summary:
    """Make a study, run it, and show its progress. The folder is locked before the study is made.

    Args:
        make: Makes the study.
        folder: The folder of ``results.db``.
        engine: Starts the engine.
        quiet: Show no progress.
        as_json: Show progress as JSON.

    Returns:
        How the run ended.

    Raises:
        HoldfastError: The folder cannot be made, or another run uses it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise HoldfastError(f"cannot make the folder {shown(folder)}: {first_line(error)}") from error
    with Store.open(folder / "results.db") as store:
        study = make()
        with _stopping() as stop, engine() as worker, shown_progress(quiet, as_json) as notify:
            return compute(study, store, worker, notify=notify, stop=stop)


def finish(summary: Summary, folder: Path, as_json: bool) -> None:
    """Print how a run ended and what to do next.

    Args:
        summary: How the run ended.
        folder: The folder of ``results.db``.
        as_json: Print JSON.

    Raises:
        typer.Exit: With code 1 if units are missing, 130 if the run was stopped.
    """
    results = folder / "results.db"
    if as_json:
        ended = {"event": "end", "made": summary.made, "stored": summary.stored, "missing": summary.missing}
        ended |= {"failed": len(summary.failed), "seconds": round(summary.seconds, 3), "rows": summary.rows}
        typer.echo(json.dumps(ended | {"stopped": summary.stopped, "results": str(results)}))
    else:
        console.print(
            f"{summary.made:,} units computed in {time_text(summary.seconds)} ({summary.rows:,} model rows), "
            f"{summary.stored:,} were stored: {results}",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )
        for reason in dict.fromkeys(summary.failed.values()):
            count = list(summary.failed.values()).count(reason)
            err.print(f"[bold red]failed:[/] {escape(reason)} ({count} units)", soft_wrap=True, highlight=False)
    if summary.stopped:
        err.print(
            f"stopped with {summary.missing:,} units left: nothing is lost, the same command continues from here.",
            highlight=False,
        )
        raise typer.Exit(130)
    if summary.missing:
        err.print(f"{summary.missing:,} units are missing; the same command tries them again.", highlight=False)
        raise typer.Exit(1)
    if not as_json:
        text = f"holdfast report {results} -o report.html makes a page of it."
        console.print(text, soft_wrap=True, highlight=False, markup=False)


def show_plan(study: Study, results: Path, as_json: bool) -> None:
    """Print the units and model rows of a study, by kind of work and method.

    Args:
        study: The study.
        results: The store; it need not exist.
        as_json: Print JSON.
    """
    plan = plan_of(study)
    stored: set[str] = set()
    if not is_new(results):
        with Store.read(results) as store:
            stored = store.keys()
    groups: dict[tuple[str, str], list[str]] = {}
    seen: set[str] = set()
    for task in plan.tasks:
        subject = task.role.measure if task.job.kind == "curve" else task.role.method
        keys = groups.setdefault((task.job.kind, subject), [])
        if task.job.key not in seen:
            seen.add(task.job.key)
            keys.append(task.job.key)
    rows: list[dict[str, Any]] = [
        {
            "kind": kind,
            "of": what,
            "units": len(keys),
            "stored": sum(key in stored for key in keys),
            "model rows": sum(plan.rows[key] or 0 for key in keys if key not in stored),
            "unknown": sum(plan.rows[key] is None for key in keys if key not in stored),
        }
        for (kind, what), keys in groups.items()
        if keys
    ]
    total = {key: sum(row[key] for row in rows) for key in ("units", "stored", "model rows", "unknown")}
    if as_json:
        typer.echo(
            json.dumps({"experiment": study.name, "cases": len(study.cases), "plan": rows, "total": total}, indent=1)
        )
        return
    table = Table(
        title=f"{study.name}: {counted(len(study.cases), 'example')}, {counted(len(study.methods), 'method')}"
    )
    for column in ("kind", "of", "units", "stored", "model rows"):
        table.add_column(column, justify="left" if column in ("kind", "of") else "right", overflow="fold")
    for row in [*rows, {"kind": "all", "of": "", **total}]:
        cost = f"{row['model rows']:,}" + (f" + {row['unknown']} unknown" if row["unknown"] else "")
        table.add_row(str(row["kind"]), escape(str(row["of"])), f"{row['units']:,}", f"{row['stored']:,}", cost)
    console.print(table)
    console.print("Model rows are estimates of what is left to compute.", highlight=False)


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C, SIGTERM or SIGHUP came. A second one stops at once."""
    requested = False

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        requested = True
        for each in before:
            signal.signal(each, signal.default_int_handler)
        if number == getattr(signal, "SIGHUP", None):  # the terminal is closed: nothing more can be printed there
            for stream in terminals:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        err.print("\nfinishing the running unit; Ctrl-C again stops at once.", highlight=False)

    terminals = [stream for stream in (1, 2) if os.isatty(stream)]
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}  # as nohup does
    for number in before:
        signal.signal(number, request)
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
