"""A small process that ends what is left of a local Ray cluster after its driver ended, in whatever way.

Ray's agents report the death of their cluster before they end. If nobody is left to report to, they wait for a minute.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_GRACE = 5.0  # seconds that processes have to end by themselves
_INTERVAL = 0.5  # seconds between two looks at the processes

Process = tuple[int, str]
"""A process: its id, and when it began, because ids are used again."""


class Watchdog:
    """Starts the process. It acts when this process ends or calls ``release``.

    Args:
        package: The folder of Ray. Children of this process that run something in it, and their children, are watched.
    """

    def __init__(self, package: Path):
        self._process: subprocess.Popen[bytes] | None = None
        if Path("/proc/self/stat").exists():
            command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(package)]
            # In a session of its own, so that Ctrl-C does not end it.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def release(self) -> None:
        """Wait until the watched processes have ended."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(3 * _GRACE)


def processes() -> dict[int, tuple[int, str]]:
    """Return the parent and the beginning of every process that runs, by id."""
    found: dict[int, tuple[int, str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError):
                stat = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace")
                fields = stat[stat.rindex(")") + 2 :].split()  # a name may contain anything
                if fields[0] not in "ZX":
                    found[int(entry)] = int(fields[1]), fields[19]
    return found


def descendants(roots: set[int], running: dict[int, tuple[int, str]]) -> set[Process]:
    """Return the roots that run and all processes that they started."""
    found: set[int] = set()
    new = roots & set(running)
    while new:
        found |= new
        new = {one for one, (parent, _) in running.items() if parent in new} - found
    return {(one, running[one][1]) for one in found}


def _command(process: int) -> str:
    try:
        return Path("/proc", str(process), "cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _watch(driver: int, package: str) -> None:
    known: set[Process] = set()
    released = False
    while not released:
        # The pipe ends with the driver; a child that it forked may hold it longer.
        released = bool(select.select([0], [], [], _INTERVAL)[0]) or os.getppid() != driver
        running = processes()
        children = {one for one, (parent, _) in running.items() if parent == driver and one != os.getpid()}
        roots = {one for one in children if package in _command(one)}
        known |= descendants(roots | {one for one, began in known if _runs(one, began, running)}, running)
    deadline = time.monotonic() + _GRACE
    while known and time.monotonic() < deadline:
        time.sleep(_INTERVAL / 5)
        running = processes()
        known = descendants({one for one, began in known if _runs(one, began, running)}, running)
    for one, _ in known:
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)


def _runs(process: int, began: str, running: dict[int, tuple[int, str]]) -> bool:
    return process in running and running[process][1] == began


if __name__ == "__main__":
    _watch(int(sys.argv[1]), sys.argv[2])
