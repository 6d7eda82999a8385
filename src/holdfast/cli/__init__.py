"""The ``holdfast`` command: one file for each subcommand, imported when it is used."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

from holdfast.cli.signals import MESSAGE, STOPPED, stopping_signals


def main() -> None:
    """Run the command. Signals end it with exit code 130 and one line, also while modules are imported."""
    # Waiting OpenMP threads spin by default. They take CPU time from working threads if another process is busy.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with stopping_signals():
        try:
            from holdfast.cli.app import main as run_command

            run_command()
        except KeyboardInterrupt:
            with contextlib.suppress(OSError):  # the terminal may be closed
                print(MESSAGE, file=sys.stderr)
            sys.exit(STOPPED)


def __getattr__(name: str) -> Any:
    if name == "app":  # imported when it is used, inside main
        from holdfast.cli.app import app

        return app
    raise AttributeError(name)
