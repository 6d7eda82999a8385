"""``kill -9`` or another signal at random moments of a run, then the same command again, until it is complete.

Allowed: all values are those of an undisturbed run. After a signal other than ``kill -9`` the run ends with exit code
130, or by the signal itself if that came before the run had begun; there is no traceback.
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
from pathlib import Path
from typing import Any

from holdfast.experiment import Results
from holdfast.experiment.export import rows
from studies import SMALL
from trial.tally import Tally

SHORT, LONG = 2, 140
_PIPES: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
_SIGNALS = (*[signal.SIGKILL] * 9, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_RUN = [sys.executable, "-m", "holdfast", "run", str(SMALL), "--quiet"]


def trial(count: int, seed: int) -> Tally:
    """Send ``count`` signals; a run gets them again and again until it is complete, then the next one begins."""
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
            with subprocess.Popen([*_RUN, "--out", str(folder)], env=environment, **_PIPES) as process:
                sent = draw.choice(_SIGNALS)
                try:
                    process.wait(draw.uniform(0.1, 1) * longest)
                except subprocess.TimeoutExpired:
                    process.send_signal(sent)
                said = process.communicate()[1].decode()
            if process.returncode == 0:
                if list(rows(Results(folder))) != expected:
                    tally.fail(f"after {tally.total} signals the values of the resumed run differ")
                shutil.rmtree(folder)
            elif process.returncode in (-sent, 130) and "Traceback" not in said:
                tally.count(sent.name)
            else:
                tally.fail(f"after {tally.total} signals {sent.name} ended the run with {process.returncode}: {said}")
        subprocess.run([*_RUN, "--out", str(folder)], env=environment, check=True, capture_output=True)
        if list(rows(Results(folder))) != expected:
            tally.fail("the values of the last run differ")
    return tally
