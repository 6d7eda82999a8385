"""Runs on a local Ray cluster that lose a worker, their head or their driver, or get a signal, at random moments.

Allowed: the run ends with exit code 0, 1 or 2 with one sentence, 130 after a signal, or by the signal. In all cases no
process of the cluster is left soon after, and the same command ends with the values of an undisturbed run.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from holdfast.experiment import Results
from holdfast.experiment.export import rows
from holdfast.experiment.watchdog import Family
from speed import slowness
from studies import SMALL
from trial.tally import Tally

SHORT, LONG = 2, 100
_RUN = [sys.executable, "-m", "holdfast", "run", str(SMALL), "--quiet"]
_RAY = [*_RUN, "--engine", "ray", "--workers", "2"]
_WAYS = ("driver", "worker", "gcs_server", "raylet", "SIGTERM", "SIGINT", "SIGHUP")
_HANGS = 60.0  # seconds on a quiet core that a run may take to end
_LEFT = 30.0  # seconds on a quiet core after which no process may be left
_MARK = "HOLDFAST_TRIAL"  # in the environment of every process that a run starts


def trial(count: int, seed: int) -> Tally:
    """Disturb ``count`` runs; one folder is used until its run is complete, then the next one begins."""
    tally, draw = Tally(seed), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        whole, folder = Path(name, "whole"), Path(name, "disturbed")
        subprocess.run([*_RUN, "--out", str(whole)], env=_environment("whole"), check=True, capture_output=True)
        expected = list(rows(Results(whole)))
        began = time.perf_counter()
        subprocess.run([*_RAY, "--out", str(folder)], env=_environment("undisturbed"), check=True, capture_output=True)
        longest = time.perf_counter() - began
        for number in range(count):
            if _complete(folder):
                if list(rows(Results(folder))) != expected:
                    tally.fail(f"before attempt {number}: the values of the run differ")
                shutil.rmtree(folder)
            way = _WAYS[number % len(_WAYS)]
            outcome = _disturbed(way, folder, draw.uniform(0.2, 0.95) * longest)
            if outcome:
                tally.fail(f"attempt {number}, {way}: {outcome}")
            else:
                tally.count(way)
        subprocess.run([*_RAY, "--out", str(folder)], env=_environment("last"), check=True, capture_output=True)
        if list(rows(Results(folder))) != expected:
            tally.fail("the values of the last run differ")
    return tally


def _complete(folder: Path) -> bool:
    """Whether all units of a run are stored."""
    try:
        return Results(folder).missing == 0
    except ValueError:  # the run was stopped before it wrote anything
        return False


def _disturbed(way: str, folder: Path, seconds: float) -> str:
    """Start a run, disturb it, and return what is wrong with how it ended; empty if nothing is."""
    mark = uuid.uuid4().hex
    with subprocess.Popen(
        [*_RAY, "--out", str(folder)], env=_environment(mark), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as driver:
        family = Family(_MARK, mark)
        moment = time.monotonic() + seconds
        while driver.poll() is None and time.monotonic() < moment:
            family.living()
            time.sleep(min(0.2, max(0, moment - time.monotonic())))
        if driver.poll() is None:
            _disturb(way, driver, family)
        try:
            said = driver.communicate(timeout=_HANGS * slowness())[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            driver.kill()
            return "the run hangs"
    wrong = _left_after(family)
    return wrong or _wrong_end(way, driver.returncode, said)


def _disturb(way: str, driver: subprocess.Popen[bytes], family: Family) -> None:
    """Kill one process of the run, or send a signal to its driver."""
    if way.startswith("SIG"):
        driver.send_signal(getattr(signal, way))
    elif way == "driver":
        driver.kill()
    else:
        named = {"worker": ("ray::_perform", "ray::IDLE")}.get(way, (f"/{way} ",))
        victims = [one for one in family.living() if any(name in _command(one) for name in named)]
        for victim in victims[:1]:  # none yet: the run goes on undisturbed
            os.kill(victim, signal.SIGKILL)


def _wrong_end(way: str, code: int, said: str) -> str:
    """Return what is wrong with an exit code, or with what was printed to standard error."""
    if way.startswith("SIG"):
        allowed: tuple[int, ...] = (0, 130, -getattr(signal, way))  # -SIGTERM: before the run has begun
    else:
        allowed = {"driver": (0, -9), "worker": (0,)}.get(way, (0, 1, 2))  # 1: Ray itself ends the process as it begins
    if "Traceback" in said or "***" in said:
        return f"a dump: {said[-1000:]}"
    if code not in allowed or (code in (1, 2) and "holdfast: " not in said):
        return f"exit code {code}: {said}"
    return ""


def _left_after(family: Family) -> str:
    """Wait until no process of a run is left; return those that are left after a while."""
    deadline = time.monotonic() + _LEFT * slowness()
    while left := family.living():
        if time.monotonic() > deadline:
            return f"left after {_LEFT:.0f} s or more: {[_command(one)[:60] for one in left]}"
        time.sleep(0.2)
    return ""


def _command(process: int) -> str:
    try:
        return Path("/proc", str(process), "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # it has ended
        return ""


def _environment(mark: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", _MARK: mark}
