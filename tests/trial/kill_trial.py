"""``kill -9`` at random moments of a run, then the same command again: all values are those of an undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from holdfast.experiment import Results
from holdfast.experiment.export import rows
from studies import SMALL
from trial.tally import Tally

SHORT, LONG = 2, 100
_RUN = [sys.executable, "-m", "holdfast", "run", str(SMALL), "--quiet"]


def trial(count: int, seed: int) -> Tally:
    """Kill ``count`` runs; one run is killed again and again until it is complete, then the next one begins."""
    tally = Tally(seed)
    draw = random.Random(seed)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as name:
        whole, folder = Path(name, "whole"), Path(name, "killed")
        began = time.perf_counter()
        subprocess.run([*_RUN, "--out", str(whole)], env=environment, check=True, capture_output=True)
        longest = time.perf_counter() - began
        expected = list(rows(Results(whole)))
        while tally.total < count:
            with subprocess.Popen([*_RUN, "--out", str(folder)], env=environment, stderr=subprocess.PIPE) as process:
                try:
                    process.wait(draw.uniform(0.3, 1) * longest)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    tally.count("killed")
                    continue
                said = b"" if process.stderr is None else process.stderr.read()
            if process.returncode:
                tally.fail(f"after {tally.total} kills the run ended with {process.returncode}: {said.decode()}")
            elif list(rows(Results(folder))) != expected:
                tally.fail(f"after {tally.total} kills the values of the resumed run differ")
            shutil.rmtree(folder)
        subprocess.run([*_RUN, "--out", str(folder)], env=environment, check=True, capture_output=True)
        if list(rows(Results(folder))) != expected:
            tally.fail("the values of the last run differ")
    return tally
