"""How long a person waits for one input: a curve, sharing, and the whole command, alone and beside a busy process.

    python benchmarks/interactive.py [--only curve sharing command] [--device cuda] [--cores 0,1] [--repeats 3]

The bare time is that of as many gradient rows through the network at the best batch size. Every command is a fresh
process on the same cores. The other process multiplies matrices with as many threads as there are cores. Times are
medians.
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
from collections.abc import Callable, Iterator

import torch

import holdfast as hf
from holdfast.robustness.radii import Measurements
from holdfast.robustness.sharing import share_witnesses
from tables import bare_speed, hardware, show, wait

_SIZES = tuple(size / 100 for size in range(5, 50, 5))
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
    sections: dict[str, Callable[[argparse.Namespace], None]] = {
        "curve": curve,
        "sharing": sharing,
        "command": command,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--device", default="cpu", help="for the curve")
    parser.add_argument("--cores", help="the cores to use, such as 0,1; default: all")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    print(f"{hardware(options.device)}, {len(os.sched_getaffinity(0))} used, torch {torch.__version__}")
    for name in options.only:
        sections[name](options)


def curve(options: argparse.Namespace) -> None:
    """Measure the curve of one digit alone: the top 5 ... 45 % by gradient are held."""
    model = hf.TorchModel(hf.data.mnist_cnn().module.to(options.device), bounds=(0, 1))
    cases = model.ask(hf.data.mnist().x[200:201].to(options.device))
    rank = hf.Grad()(cases).order.argsort(1)
    subsets = torch.stack([rank >= round(size * rank.shape[1]) for size in _SIZES], 1)
    speed, rows = bare_speed(cases), []
    for preset in ("quick", "default"):
        judge = getattr(hf.Judge, preset)()
        gradients = judge(cases, subsets).queries.gradient
        taken = []
        for _ in range(options.repeats):
            wait(cases.x.is_cuda)
            began = time.perf_counter()
            judge(cases, subsets)
            wait(cases.x.is_cuda)
            taken.append(time.perf_counter() - began)
        seconds, bare = statistics.median(taken), gradients / speed
        rows.append(
            {"judge": preset, "seconds": seconds, "gradients": gradients, "bare, s": bare, "ratio": seconds / bare}
        )
    show("one digit alone, nine sizes", rows)


def sharing(options: argparse.Namespace) -> None:
    """Measure how long the subsets of one case take to share their witnesses."""
    rows = []
    for k in (2_000, 20_000):
        generator = torch.Generator().manual_seed(0)
        nested = torch.rand(1, 784, generator=generator) < torch.linspace(0.01, 0.99, k)[:, None]
        for name, subsets in (("random halves", torch.rand(k, 784, generator=generator) < 0.5), ("nested", nested)):
            radius = torch.rand(1, k, generator=generator)
            none = torch.zeros(1, k, dtype=torch.bool)
            began = time.perf_counter()
            share_witnesses(Measurements(radius, torch.zeros_like(radius, dtype=torch.long), none, none), subsets[None])
            rows.append({"subsets": f"{k:,} {name}", "seconds": time.perf_counter() - began})
    show("sharing between the subsets of one case, 784 features", rows)


def command(options: argparse.Namespace) -> None:
    """Measure the whole command under several settings of waiting threads."""
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
