"""How long a person waits for one input: explanations, curves, sharing, and the whole command beside a busy process.

    python benchmarks/interactive.py [--only digit digits photograph first sharing command] [--device cuda] [--peers]

The bare time is that of as many gradient rows through the network at the best batch size. Every command is a fresh
process on the same cores. The other process multiplies matrices with as many threads as there are cores. Times are
medians; the first call is shown beside them.
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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import holdfast as hf
from holdfast.data import image_folder, imagenet_classifier, photos
from holdfast.models.torch import layers_of
from holdfast.robustness import Rows
from holdfast.robustness.radii import Measurements
from holdfast.robustness.sharing import share_witnesses
from holdfast.sizes import LARGEST
from tables import bare_speed, hardware, show, wait
from yardsticks import yardsticks

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
        "digit": digit,
        "digits": digits,
        "photograph": photograph,
        "first": first,
        "sharing": sharing,
        "command": command,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--device", default="cpu", help="for digits and photographs")
    parser.add_argument("--folder", help="photographs of one's own; default: those that come with packages")
    parser.add_argument("--explain", nargs="*", default=["default", "quick"], help="presets of GreedyAS to measure")
    parser.add_argument("--judge", nargs="*", default=["quick", "default"], help="presets to measure")
    parser.add_argument("--peers", action="store_true", help="measure foolbox and adv-lib on one digit too")
    parser.add_argument("--cores", help="the cores to use, such as 0,1; default: all")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    print(f"{hardware(options.device)}, {len(os.sched_getaffinity(0))} cores used, torch {torch.__version__}")
    for name in options.only:
        sections[name](options)


# ---------------------------------------------------------------------- digits


def ask_digits(options: argparse.Namespace, count: int) -> hf.Cases:
    """Ask about ``count`` digits from 200; settings were chosen on others."""
    model = hf.TorchModel(hf.data.mnist_cnn().module.to(options.device), bounds=(0, 1))
    return model.ask(hf.data.mnist().x[200 : 200 + count].to(options.device))


def digit(options: argparse.Namespace) -> None:
    """Measure one digit alone: explanations, and the curve of nine sizes."""
    cases = ask_digits(options, 1)
    subsets = held(cases, _SIZES)
    tasks = explanations(options, LARGEST) | {
        f"Judge.{preset}, nine sizes": lambda cases, preset=preset: getattr(hf.Judge, preset)()(cases, subsets)
        for preset in options.judge
    }
    if options.peers:
        rows = Rows.of(cases, subsets, slice(0, len(_SIZES)))
        tasks |= {name: lambda _, attack=attack: attack(rows) for name, attack in yardsticks(2).items()}
    show("one digit alone", timed(tasks, cases, bare_speed(cases), options.repeats))


def digits(options: argparse.Namespace) -> None:
    """Measure digits together: 100 on a GPU, 4 on a CPU."""
    cases = ask_digits(options, 100 if options.device.startswith("cuda") else 4)
    subsets = held(cases, _SIZES)
    tasks = explanations(options, LARGEST) | {
        f"Judge.{preset}, nine sizes": lambda cases, preset=preset: getattr(hf.Judge, preset)()(cases, subsets)
        for preset in options.judge
    }
    where, repeats = f"{len(cases)} digits together", min(2, options.repeats)
    show(where, timed(tasks, cases, bare_speed(cases), repeats))
    tuned = layers_of(cases.model).tuned(cases.x)
    show(f"{where}, {tuned.execution}", timed(explanations(options, LARGEST), tuned.ask(cases.x), None, repeats))


# ---------------------------------------------------------------------- photographs


def ask_photograph(options: argparse.Namespace) -> hf.Cases:
    """Ask about one photograph, with 196 patches."""
    found = image_folder(options.folder, limit=1) if options.folder else photos()
    model = imagenet_classifier(options.device)
    return model.ask(found.x[:1].to(options.device), features=hf.Features.patches((3, 224, 224), 16))


def photograph(options: argparse.Namespace) -> None:
    """Measure one photograph alone: the top 20 % of its patches, and the curve of three sizes."""
    cases = ask_photograph(options)
    subsets = held(cases, (0.05, 0.25, 0.45))
    tasks = explanations(options, 0.2) | {
        f"Judge.{preset}, three sizes": lambda cases, preset=preset: getattr(hf.Judge, preset)()(cases, subsets)
        for preset in options.judge
    }
    show("one photograph alone, 196 patches", timed(tasks, cases, None, options.repeats))


def first(options: argparse.Namespace) -> None:
    """Measure the first explanation of a photograph in a fresh process, with and without imports."""
    code = (
        "import argparse, time\nbegan = time.perf_counter()\nimport interactive\n"
        f"options = argparse.Namespace(device={options.device!r}, folder={options.folder!r}, explain=['quick'])\n"
        "cases = interactive.ask_photograph(options)\nasked = time.perf_counter()\n"
        "interactive.explanations(options, 0.2)['GreedyAS.quick'](cases)\n"
        "print(asked - began, time.perf_counter() - asked)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    rows: list[dict[str, object]] = []
    for _ in range(options.repeats):
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
        asked, explained = map(float, out.stdout.split()[-2:])
        rows.append({"imports, network, question, s": asked, "GreedyAS.quick, s": explained})
    show("one photograph, the first call of a process", rows)


# ---------------------------------------------------------------------- both


def explanations(options: argparse.Namespace, budget: float) -> dict[str, Callable[[hf.Cases], object]]:
    """Return the explanations to measure."""
    return {f"GreedyAS.{name}": replace(getattr(hf.GreedyAS, name)(), budget=budget) for name in options.explain}


def held(cases: hf.Cases, sizes: tuple[float, ...]) -> torch.Tensor:
    """Return the subsets that move when the top features by gradient are held, ``[B, sizes, d]``."""
    return ~hf.Grad()(cases).top(sizes)


def timed(
    tasks: Mapping[str, Callable[[hf.Cases], object]], cases: hf.Cases, speed: float | None, repeats: int
) -> list[dict[str, object]]:
    """Return a row for each task: the first call, the median of the next ones, and the bare time.

    Args:
        tasks: Names and what to run on the cases.
        cases: The cases.
        speed: Gradient rows a second through the network at the best batch size. None: time spent inside the network
            is measured instead, on a CPU.
        repeats: How often each task runs after its first call.
    """
    rows = []
    for name, task in tasks.items():
        taken = []
        for _ in range(1 + repeats):
            before, inside = cases.model.queries, Inside(layers_of(cases.model))
            wait(cases.x.is_cuda)
            began = time.perf_counter()
            with inside if speed is None else contextlib.nullcontext():
                task(cases)
            wait(cases.x.is_cuda)
            taken.append(time.perf_counter() - began)
        gradients = (cases.model.queries - before).gradient
        seconds = statistics.median(taken[1:])
        row: dict[str, object] = {"task": name, "first, s": taken[0], "s": seconds, "s a case": seconds / len(cases)}
        row |= {"gradients": gradients}
        if speed is not None:
            row |= {"bare, s": gradients / speed, "over bare": seconds / (gradients / speed)}
        elif not cases.x.is_cuda:
            row |= {"share inside the network": inside.seconds / taken[-1]}
        rows.append(row)
    return rows


class Inside:
    """A context that measures the time inside the calls of a model.

    Args:
        model: The model. While the block runs, its methods are replaced by ones that also take the time.
    """

    def __init__(self, model: hf.TorchModel):
        self.model, self.seconds = model, 0.0

    def __enter__(self) -> None:
        model = self.model
        gradient, logits = model.gradient, model._logits

        def measured(call: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **settings: Any) -> Any:
                began = time.perf_counter()
                try:
                    return call(*args, **settings)
                finally:
                    self.seconds += 0 if self._nested else time.perf_counter() - began

            return run

        self._nested = False

        def outer(*args: Any, **settings: Any) -> Any:
            began, self._nested = time.perf_counter(), True
            try:
                return gradient(*args, **settings)
            finally:
                self._nested = False
                self.seconds += time.perf_counter() - began

        model.gradient, model._logits = outer, measured(logits)  # type: ignore[method-assign]

    def __exit__(self, *error: object) -> None:
        del self.model.gradient, self.model._logits


# ---------------------------------------------------------------------- sharing and the command


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
            share_witnesses(
                Measurements(radius, torch.zeros_like(radius, dtype=torch.long), none, none, none.float()),
                subsets[None],
            )
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
