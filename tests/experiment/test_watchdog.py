"""The processes of a cluster are found when they have lost their parent and their mark."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.experiment.watchdog import Family, Watchdog
from speed import slowness

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in Linux's /proc")
_SLEEP = "import time; time.sleep(600)"
_PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {_SLEEP!r}], env={{}})
print(child.pid, flush=True)
sys.stdin.read()
"""


def _gone(process: int) -> bool:
    """Wait until a process has ended; return False if it has not after a while."""
    deadline = time.monotonic() + 20 * slowness()
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def _parent(mark: dict[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a process that is marked, and its child that is not; return both."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **mark}
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


def test_children_stay_known_when_their_parent_has_died() -> None:
    parent, child = _parent({"HOLDFAST_TEST": "one"})
    with parent:
        family, stranger = Family("HOLDFAST_TEST", "one"), Family("HOLDFAST_TEST", "two")
        assert set(family.living()) == {parent.pid, child}
        parent.kill()
    assert family.living() == [child], "it has no mark and no parent"
    assert stranger.living() == []
    assert Family("HOLDFAST_TEST", "one").living() == []
    os.kill(child, 9)
    assert _gone(child)
    assert family.living() == []


def test_the_watchdog_ends_processes_that_hide_their_mark() -> None:
    watchdog = Watchdog()
    parent, child = _parent({"HOLDFAST_CLUSTER": watchdog.mark})
    with parent:
        time.sleep(2 * slowness())  # the watchdog looks now and then
        parent.kill()
    watchdog.release()
    assert _gone(child)
