"""Show the progress of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from holdfast.cli.app import err
from holdfast.experiment import Progress


@contextmanager
def shown_progress(quiet: bool, as_json: bool) -> Iterator[Any]:
    """Show the progress of a run.

    Args:
        quiet: Show nothing, unless ``as_json``.
        as_json: Print one line of JSON for each unit, in place of a live table.

    Yields:
        A function to call with the progress, or None.
    """
    if as_json:
        yield _Lines().tell
    elif quiet or not err.is_terminal:
        yield None
    else:
        with Live(console=err, transient=True, auto_refresh=False) as live:
            yield _Board(live).tell


class _Lines:
    """One line of JSON for each unit."""

    def __init__(self) -> None:
        self._latest: Any = ()
        self._failed = 0

    def tell(self, progress: Progress) -> None:
        for key, reason in list(progress.failed.items())[self._failed :]:
            typer.echo(json.dumps({"event": "failed", "key": key, "reason": reason}))
        self._failed = len(progress.failed)
        if progress.latest is self._latest:
            return
        self._latest = progress.latest
        for unit in progress.latest:
            line = {"event": "unit", "kind": unit.kind, "key": unit.key, "seconds": round(unit.seconds, 4)}
            line |= {"rows": unit.forward, "done": progress.done + progress.stored, "of": progress.total}
            line |= {"rows a second": round(progress.rate), "seconds left": _whole(progress.left)}
            typer.echo(json.dumps(line))


class _Board:
    """A live table with the progress of each method."""

    def __init__(self, live: Live):
        self._live, self._last = live, 0.0

    def tell(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < 0.25:  # faster than anybody reads
            return
        self._last = now
        self._live.update(self._table(progress), refresh=True)

    @staticmethod
    def _table(progress: Progress) -> Group:
        counts: dict[str, list[int]] = {}
        shares = {job.key: share for batch, share in progress.out.items() for job in batch}
        current: dict[str, str] = {}
        for task in progress.plan.tasks:
            who = task.role.method or "inputs"
            done, total = counts.setdefault(who, [0, 0])
            counts[who] = [done + (task.job.key in progress.finished), total + 1]
            if task.job.key in shares:
                current[who] = f"{' '.join(task.label.replace(who, '').split())} {shares[task.job.key]:.0%}"
        table = Table(box=None, pad_edge=False)
        for column in ("method", "", "units", "running"):
            table.add_column(column, justify="right" if column == "units" else "left", no_wrap=True)
        for who, (done, total) in counts.items():
            table.add_row(
                escape(who), ProgressBar(total, done, width=24), f"{done}/{total}", escape(current.get(who, ""))
            )
        left = progress.left
        line = f"{len(progress.finished):,} of {progress.total:,} units, {progress.rate:,.0f} rows/s, "
        line += (
            f"{time_text(progress.seconds)} elapsed, " + ("…" if left is None else f"about {time_text(left)}") + " left"
        )
        return Group(table, line + (f", {len(progress.failed)} failed" if progress.failed else ""))


def time_text(seconds: float) -> str:
    """Return a duration as text."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
