"""A progress bar on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from holdfast.chunks import Progress


@contextmanager
def progress_bar(title: str, quiet: bool = False) -> Iterator[Progress | None]:
    """Show a progress bar on stderr if it is a terminal or a notebook.

    Args:
        title: The text before the bar.
        quiet: Show nothing.

    Yields:
        A function to call with (done, total), or None.
    """
    console = Console(stderr=True)
    if quiet or not (console.is_terminal or console.is_jupyter) or sys.stderr is None:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
