"""How the time of reading results, of the page and of the export grows with the number of units.

    python benchmarks/page_growth.py [--units 10000 50000] [--methods 2] [--criteria 9] [--profile]

The plan is that of a real study, in blocks of two inputs. The values of its units are drawn, not computed: reading is
all that is measured. Every size has a process of its own, so that nothing is cached from the one before.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import holdfast as hf
from holdfast.experiment import Measure, Method, Store, Study, Unit, plan_of
from holdfast.experiment.export import export
from holdfast.experiment.jobs import Job
from holdfast.experiment.results import Results
from holdfast.report.page import as_markdown, write_page
from tables import hardware, show

FEATURES, CLASSES, BLOCK = 196, 10, 2
SIZES = tuple(0.05 * place for place in range(1, 10))


def study(units: int, methods: int, criteria: int) -> Study:
    """A study with about this many units: inputs, rankings and curves of each block."""
    blocks = max(1, units // (1 + methods * (1 + criteria)))
    model = hf.TorchModel(torch.nn.Linear(FEATURES, CLASSES).eval(), (0, 1))
    x = torch.rand(BLOCK * blocks, FEATURES, generator=torch.Generator().manual_seed(0))
    compared = tuple(Method(f"random {seed}", {"both": hf.Random(seed)}) for seed in range(methods))
    measures = tuple(Measure(f"removed {n}", hf.Insertion((n + 1) / (criteria + 1))) for n in range(criteria))
    return Study("growth", model.ask(x), compared, measures, "random 0", sizes=SIZES, block=BLOCK)


def filled(units: int, methods: int, criteria: int, path: Path) -> int:
    """Write a store of this study with drawn values, and return the number of its units."""
    drawing = np.random.default_rng(0)
    plan = plan_of(study(units, methods, criteria))
    with Store.open(path) as store:
        store.note_study(plan.record.plain())
        made = [
            Unit(job.kind, job.made_of(), arrays(job, drawing), 0.1, 20, 0, "drawn", ("a note",))
            for job in plan.jobs.values()
        ]
        for start in range(0, len(made), 10_000):
            store.put(*made[start : start + 10_000])
    return len(made)


def arrays(job: Job, drawing: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw the arrays of a unit, in the form that its job would store."""
    if job.kind == "ranking":
        return {
            "order": drawing.permuted(np.tile(np.arange(FEATURES, dtype=np.int16), (BLOCK, 1)), axis=1),
            "scores": drawing.random((BLOCK, FEATURES), dtype=np.float32),
            "count": np.full(BLOCK, FEATURES),
            "uninformative": np.zeros(BLOCK, dtype=bool),
        }
    if job.kind == "curve":
        values = drawing.random((BLOCK, len(SIZES)), dtype=np.float32)
        return {"values": values, "ceiling": np.full_like(values, np.inf)}
    classes = drawing.integers(CLASSES, size=BLOCK)
    logits = drawing.random((BLOCK, CLASSES), dtype=np.float32)
    nothing = np.zeros((0, FEATURES), dtype=np.float32)
    return {"label": classes, "target": np.full(BLOCK, -1), "logits": logits, "x": nothing, "ids": nothing.astype("i4")}


def timed(path: Path, folder: Path) -> dict[str, float]:
    """Return the seconds of every step."""
    marks = [time.perf_counter()]
    results = Results(path)
    marks.append(time.perf_counter())
    tables = write_page(results, folder / "report.html")
    marks.append(time.perf_counter())
    as_markdown(results, tables)
    marks.append(time.perf_counter())
    export(results, folder / "values.csv")
    marks.append(time.perf_counter())
    steps = ("read", "page", "Markdown", "export")
    return {name: after - before for name, before, after in zip(steps, marks, marks[1:], strict=False)}


def one(units: int, methods: int, criteria: int, profile: bool) -> None:
    """Print the seconds for one number of units, in one line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = filled(units, methods, criteria, folder / "results.db")
        profiler = cProfile.Profile()
        if profile:
            profiler.enable()
        seconds = timed(folder / "results.db", folder)
        if profile:
            profiler.disable()
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(45)
    print(made, *seconds.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, nargs="+", default=(10_000, 50_000))
    parser.add_argument("--methods", type=int, default=2)
    parser.add_argument("--criteria", type=int, default=9)
    parser.add_argument("--profile", action="store_true", help="Also print where the time goes.")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.one:
        one(asked.units[0], asked.methods, asked.criteria, asked.profile)
        return
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}", flush=True)
    rows: list[dict[str, object]] = []
    totals: list[float] = []
    for units in asked.units:
        settings = [f"--units={units}", f"--methods={asked.methods}", f"--criteria={asked.criteria}", "--one"]
        settings += ["--profile"] if asked.profile else []
        done = subprocess.run([sys.executable, __file__, *settings], check=True, stdout=subprocess.PIPE, text=True)
        made, *seconds = (float(word) for word in done.stdout.split())
        totals.append(sum(seconds))
        names = ("s, read", "s, page", "s, Markdown", "s, export")
        rows.append(
            {
                "units": int(made),
                **dict(zip(names, seconds, strict=True)),
                "s": totals[-1],
                "ratio": totals[-1] / totals[0],
            }
        )
    show(f"{asked.methods} methods by {asked.criteria} criteria", rows)


if __name__ == "__main__":
    main()
