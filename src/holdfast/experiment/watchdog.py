"""A small process that ends what is left of a local Ray cluster after its driver ended, in whatever way.

Ray's agents report the death of their cluster before they end. If nobody is left to report to, they wait for a minute.
Processes of the cluster are known by a mark in their environment, which they inherit: a parent may have died. Some then
write their title over it, so children of known processes are known, too, and stay so.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

MARK = "HOLDFAST_CLUSTER"
"""The environment variable that processes of a cluster are known by."""
_RELEASED = b"released"
_GRACE = 5.0  # seconds that processes have to end by themselves
_INTERVAL = 0.5  # seconds between two looks


class Watchdog:
    """Starts the process. It acts when this process ends or calls ``release``.

    Attributes:
        mark: The value of ``MARK`` in the environment of the processes to end.
    """

    def __init__(self) -> None:
        self.mark = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        if Path("/proc/self/environ").exists():
            command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), self.mark]
            # In a session of its own, so that Ctrl-C does not end it.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def release(self) -> None:
        """Wait until the watched processes have ended."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                process.communicate(_RELEASED, 3 * _GRACE)


class Family:
    """The processes that have a variable with a value in their environment, and the children of those.

    A process may hide the variable soon after it began, so ``living`` is called again and again while processes begin.
    """

    def __init__(self, name: str, value: str):
        self._sought = f"{name}={value}".encode()
        self._began: dict[int, bytes] = {}  # of the processes that are known

    def living(self) -> list[int]:
        """Return the processes that run now."""
        known, self._began = self._began, {}
        for entry in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
            process, folder = int(entry), Path("/proc", entry)
            with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
                status = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                state, parent, began = status[0], int(status[1]), status[19]
                if process == os.getpid() or state == b"Z":
                    continue
                of_known = known.get(process) == began or parent in self._began or parent in known
                if of_known or self._sought in (folder / "environ").read_bytes().split(b"\0"):
                    self._began[process] = began
        return list(self._began)


def _watch(driver: int, mark: str) -> None:
    family = Family(MARK, mark)
    # The pipe ends with the driver; a child that it forked may hold it longer.
    while not (ready := select.select([0], [], [], _INTERVAL)[0]) and os.getppid() == driver:
        family.living()
    if not ready or os.read(0, len(_RELEASED)) != _RELEASED:  # Ray may end the driver without a word
        print("holdfast: the run ended early: the same command continues from what is stored.", file=sys.stderr)
    deadline = time.monotonic() + _GRACE
    while (left := family.living()) and time.monotonic() < deadline + _GRACE:
        if time.monotonic() > deadline:
            for one in left:
                with contextlib.suppress(OSError):
                    os.kill(one, signal.SIGKILL)
        time.sleep(_INTERVAL / 5)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), sys.argv[2])
