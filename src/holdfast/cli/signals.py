"""The signals that stop a command, from its first import to its last line."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = 130
"""The exit code of a command that was stopped."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that stop a command."""
MESSAGE = "\nholdfast: stopped."


@contextmanager
def stopping_signals() -> Iterator[None]:
    """Let signals end the process at once with one line, until ``imports_ended``; those that are ignored stay so."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    own = {one: kept for one, kept in before.items() if kept in (signal.SIG_DFL, signal.default_int_handler)}
    for number in own:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in own.items():
            signal.signal(number, handler)


def imports_ended() -> None:
    """Let signals raise ``KeyboardInterrupt`` from now on, so that files that are being written are cleaned up."""
    for number in SIGNALS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    # An exception would reach whatever is being imported, which may answer with another one, or print it and go on.
    with contextlib.suppress(OSError):  # the terminal may be closed
        os.write(2, f"{MESSAGE}\n".encode())
    os._exit(STOPPED)
