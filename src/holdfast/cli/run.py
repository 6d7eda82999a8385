"""``holdfast run``."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from holdfast.cli.app import Device, app, err
from holdfast.cli.app import out as console
from holdfast.cli.arguments import usable_device
from holdfast.cli.show import progress_bar
from holdfast.errors import HoldfastError
from holdfast.experiment import Engine, Local, Progress, Store, Study, Summary
from holdfast.experiment import run as compute

Out = Annotated[Path | None, typer.Option(help="Folder for results.db; holdfast-NAME if not given.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many examples.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Jobs at once on Ray; as many as fit if not given.")]
Address = Annotated[str | None, typer.Option(help="The Ray cluster to use; one on this machine if not given.")]


@app.command()
def run(
    experiment: Annotated[
        str,
        typer.Argument(help="paper-mnist, paper-imagenet, paper-text, people-movies, … or a file.toml."),
    ],
    out: Out = None,
    limit: Limit = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the full data set, or with photographs (in folders by class); of texts a folder, archive "
            "or table, newsgroups or yahoo-answers."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Another network: torchvision:NAME or timm:NAME for photographs, huggingface:NAME for texts."
        ),
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="A file of weights for that network.")] = None,
    device: Device = "cpu",
    engine: Annotated[str | None, typer.Option(help="local or ray; what the experiment says if not given.")] = None,
    address: Address = None,
    workers: Workers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be computed, and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a unit, for logs.")] = False,
) -> None:
    """Compute an experiment, or what is missing of it, into FOLDER/results.db.

    Ctrl-C finishes the unit in hand and stops; the same command goes on from there.
    """
    from holdfast.experiment.settings import load, study  # pydantic takes a while to load

    settings = load(experiment)
    usable_device(device)
    name = Path(experiment).stem
    folder = out or Path(f"holdfast-{name}")
    chosen = engine or settings.engine
    _check_engine(chosen, address, workers)

    def make(train: bool) -> Study:
        with progress_bar("training the network, epochs", quiet or as_json) as progress:
            given = {"data": data, "network": model, "weights": weights}
            return study(
                settings,
                name,
                folder,
                limit=limit,
                choices={key: str(value) for key, value in given.items() if value is not None},
                device=device,
                train=train,
                progress=progress,
            )

    planned = make(train=False)  # complaints come before anything is written
    if dry_run:
        show_plan(planned, folder / "results.db", as_json)
        return
    engines: dict[str, Callable[[], Engine]] = {"local": Local, "ray": lambda: _cluster(address, workers, device)}
    trains = settings.model.weights == "train" and weights is None
    summary = carry_out(
        lambda: make(train=True) if trains else planned, folder, engines[chosen], quiet=quiet, as_json=as_json
    )
    finish(summary, folder, as_json)


def carry_out(
    make: Callable[[], Study], folder: Path, engine: Callable[[], Engine], *, quiet: bool, as_json: bool
) -> Summary:
    """Make a study and run it into a folder that is held from the start, showing how far it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HoldfastError(f"cannot make the folder {folder}: {error.strerror}.") from error
    with Store.open(folder / "results.db") as store:
        study = make()
        with engine() as worker, _stopping() as stop, _shown(quiet, as_json) as notify:
            return compute(study, store, worker, notify=notify, stop=stop)


def finish(summary: Summary, folder: Path, as_json: bool) -> None:
    """Say how a run ended and what to do next; exit code 1 if something is missing, 130 if it was stopped."""
    results = folder / "results.db"
    if as_json:
        ended = {"event": "end", "made": summary.made, "stored": summary.stored, "missing": summary.missing}
        ended |= {"failed": len(summary.failed), "seconds": round(summary.seconds, 3), "rows": summary.rows}
        typer.echo(json.dumps(ended | {"stopped": summary.stopped, "results": str(results)}))
    else:
        console.print(
            f"{summary.made:,} units made in {_time(summary.seconds)} ({summary.rows:,} model rows), "
            f"{summary.stored:,} were there: {results}",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )
        for reason in dict.fromkeys(summary.failed.values()):
            count = list(summary.failed.values()).count(reason)
            err.print(f"[bold red]failed:[/] {escape(reason)} ({count} units)", soft_wrap=True, highlight=False)
    if summary.stopped:
        err.print(
            f"stopped with {summary.missing:,} units to go: nothing is lost, the same command goes on from here.",
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
    """Units and model rows a kind of work and method."""
    plan = study.plan
    there = Store.read(results).keys() if results.exists() else set()
    groups: dict[tuple[str, str], list[str]] = {}
    for task in plan.tasks:
        what = task.role.get("criterion") if task.job.kind == "curve" else task.role.get("method")
        groups.setdefault((task.job.kind, str(what or "")), [])
        if not any(task.job.key in keys for keys in groups.values()):
            groups[task.job.kind, str(what or "")].append(task.job.key)
    rows: list[dict[str, Any]] = [
        {
            "kind": kind,
            "of": what,
            "units": len(keys),
            "there": sum(key in there for key in keys),
            "model rows": sum(plan.rows[key] or 0 for key in keys if key not in there),
            "unknown": sum(plan.rows[key] is None for key in keys if key not in there),
        }
        for (kind, what), keys in groups.items()
        if keys
    ]
    total = {key: sum(row[key] for row in rows) for key in ("units", "there", "model rows", "unknown")}
    if as_json:
        typer.echo(
            json.dumps({"experiment": study.name, "cases": len(study.cases), "plan": rows, "total": total}, indent=1)
        )
        return
    table = Table(title=f"{study.name}: {len(study.cases)} examples, {len(study.methods)} methods")
    for column in ("kind", "of", "units", "there", "model rows"):
        table.add_column(column, justify="left" if column in ("kind", "of") else "right", overflow="fold")
    for row in [*rows, {"kind": "all", "of": "", **total}]:
        cost = f"{row['model rows']:,}" + (f" + {row['unknown']} not known" if row["unknown"] else "")
        table.add_row(str(row["kind"]), escape(str(row["of"])), f"{row['units']:,}", f"{row['there']:,}", cost)
    console.print(table)
    console.print("Model rows are estimates of what is still to do.", highlight=False)


# ---------------------------------------------------------------------- parts


def _check_engine(name: str, address: str | None, workers: int | None) -> None:
    if name not in ("local", "ray"):
        raise HoldfastError(f"--engine must be local or ray, got {name!r}.")
    if name == "local" and (address is not None or workers is not None):
        raise HoldfastError("--address and --workers are for --engine ray.")


def _cluster(address: str | None, workers: int | None, device: str) -> Engine:
    from holdfast.experiment.cluster import Cluster  # Ray is an extra

    return Cluster(address, workers, num_gpus=1.0 if device.startswith("cuda") else 0.0)


@contextmanager
def _stopping() -> Iterator[Any]:
    """The first Ctrl-C asks to stop, the second one stops."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, before)
        err.print("\nfinishing what is in hand; Ctrl-C again stops at once.", highlight=False)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _shown(quiet: bool, as_json: bool) -> Iterator[Any]:
    """A table that moves while somebody looks, a line a unit for logs, or nothing."""
    if as_json:
        yield _Lines().tell
    elif quiet or not err.is_terminal:
        yield None
    else:
        with Live(console=err, transient=True, auto_refresh=False) as live:
            yield _Board(live).tell


class _Lines:
    """Units as lines of JSON."""

    def __init__(self) -> None:
        self._told: Any = ()
        self._failed = 0

    def tell(self, progress: Progress) -> None:
        for key, reason in list(progress.failed.items())[self._failed :]:
            typer.echo(json.dumps({"event": "failed", "key": key, "reason": reason}))
        self._failed = len(progress.failed)
        if progress.latest is self._told:
            return
        self._told = progress.latest
        for unit in progress.latest:
            told = {"event": "unit", "kind": unit.kind, "key": unit.key, "seconds": round(unit.seconds, 4)}
            told |= {"rows": unit.forward, "done": progress.done + progress.stored, "of": progress.total}
            told |= {"rows a second": round(progress.rate), "seconds left": _whole(progress.left)}
            typer.echo(json.dumps(told))


class _Board:
    """Methods and how far they are, for somebody who looks."""

    def __init__(self, live: Live):
        self._live, self._last = live, 0.0

    def tell(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < 0.25:  # nobody reads faster
            return
        self._last = now
        self._live.update(self._table(progress), refresh=True)

    @staticmethod
    def _table(progress: Progress) -> Group:
        counts: dict[str, list[int]] = {}
        shares = {job.key: share for batch, share in progress.out.items() for job in batch}
        current: dict[str, str] = {}
        for task in progress.plan.tasks:
            who = str(task.role.get("method", "inputs"))
            done, total = counts.setdefault(who, [0, 0])
            counts[who] = [done + (task.job.key in progress.finished), total + 1]
            if task.job.key in shares:
                current[who] = f"{' '.join(task.label.replace(who, '').split())} {shares[task.job.key]:.0%}"
        table = Table(box=None, pad_edge=False)
        for column in ("method", "", "units", "in hand"):
            table.add_column(column, justify="right" if column == "units" else "left", no_wrap=True)
        for who, (done, total) in counts.items():
            table.add_row(
                escape(who), ProgressBar(total, done, width=24), f"{done}/{total}", escape(current.get(who, ""))
            )
        left = progress.left
        line = f"{len(progress.finished):,} of {progress.total:,} units, {progress.rate:,.0f} rows/s, "
        line += f"{_time(progress.seconds)} gone, " + ("…" if left is None else f"about {_time(left)}") + " to go"
        return Group(table, line + (f", {len(progress.failed)} failed" if progress.failed else ""))


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
