"""How long a person waits for one input: the whole command, alone and beside another busy process.

    python benchmarks/interactive.py [--cores 0,1] [--repeats 3]

Every command is a fresh process on the same cores. The other process multiplies matrices with as many threads as there
are cores. Times are medians.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from tables import hardware, show

_COMMAND = [sys.executable, "-m", "holdfast", "explain", "--digit", "0", "--json"]
_BUSY = "import torch\nx = torch.rand(1500, 1500)\nprint('ready', flush=True)\nwhile True: x @ x"
_SETTINGS: dict[str, dict[str, str]] = {
    "as the command sets it": {},
    "threads that spin": {"OMP_WAIT_POLICY": "ACTIVE"},
    "threads that sleep": {"OMP_WAIT_POLICY": "PASSIVE"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", help="the cores to use, such as 0,1; default: all")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    print(f"{hardware('cpu')}, {len(os.sched_getaffinity(0))} used")
    rows: list[dict[str, object]] = []
    for name, settings in _SETTINGS.items():
        alone = median(settings, options.repeats)
        with busy():
            beside = median(settings, options.repeats)
        rows.append({"setting": name, "alone, s": alone, "beside, s": beside, "ratio": beside / alone})
    show("holdfast explain --digit 0, beside a process that keeps all cores busy", rows)


def median(settings: dict[str, str], repeats: int) -> float:
    """Return the seconds of the whole command."""
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            began = time.perf_counter()
            subprocess.run(_COMMAND, check=True, capture_output=True, env={**os.environ, **settings}, cwd=folder)
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Keep all cores busy while the block runs."""
    with subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    main()
