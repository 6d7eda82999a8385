"""The ``holdfast`` command: one file for each subcommand, imported when it is used."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

_STOPPED = 130


def main() -> None:
    """Run the command. Ctrl-C ends it with exit code 130 and one line, also while modules are imported."""
    before = signal.getsignal(signal.SIGINT)
    own = before is signal.default_int_handler
    if own:
        signal.signal(signal.SIGINT, _leave)
    try:
        from holdfast.cli.app import main as run_command

        run_command()
    except KeyboardInterrupt:
        print("\nholdfast: stopped.", file=sys.stderr)
        sys.exit(_STOPPED)
    finally:
        if own:
            signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: FrameType | None) -> None:
    # An exception would reach whatever is being imported, which may answer with another one, or print it and go on.
    os.write(2, b"\nholdfast: stopped.\n")
    os._exit(_STOPPED)


def __getattr__(name: str) -> Any:
    if name == "app":  # imported when it is used, inside main
        from holdfast.cli.app import app

        return app
    raise AttributeError(name)
