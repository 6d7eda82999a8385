"""Photographs at 224 x 224: how fast the network runs in each form, and what explanations cost and are worth.

    python benchmarks/photographs.py --device cuda --folder PHOTOGRAPHS
    python benchmarks/photographs.py --only explain --photos 1 --preset quick --features patches     # two CPU cores

``--folder`` holds photographs of one's own; without it those that come with packages are used.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

import holdfast as hf
from holdfast.data import image_folder, imagenet_classifier, photos
from holdfast.models.execution import Execution
from tables import RESULTS, hardware, show, wait

FEATURES = ("pixels", "patches", "superpixels")
PAPER = 135.838  # seconds a photograph, released code on a GTX 1080 Ti (Hsieh et al. 2021, appendix)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections: dict[str, Callable[[argparse.Namespace], None]] = {
        "network": network,
        "compile": compiled,
        "explain": explain,
        "draft": draft,
        "judge": judge,
    }
    parser.add_argument("--only", nargs="+", choices=sections, default=["network", "explain", "draft"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--preset", nargs="+", choices=["quick", "default", "thorough"], default=["default", "quick"])
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=list(FEATURES))
    parser.add_argument("--json", type=Path, help="also write the tables here")
    options = parser.parse_args()
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware(options.device)}")
    for name in options.only:
        sections[name](options)
    if options.json:
        options.json.write_text(json.dumps(RESULTS, indent=1))


def pictures(options: argparse.Namespace) -> torch.Tensor:
    found = image_folder(options.folder, limit=options.photos) if options.folder else photos()
    return found.x[: options.photos].to(options.device)


def ask(options: argparse.Namespace, features: str, x: torch.Tensor, model: hf.TorchModel) -> hf.Cases:
    made = {
        "pixels": lambda: hf.Features.pixels((3, 224, 224)),
        "patches": lambda: hf.Features.patches((3, 224, 224), 16),
        "superpixels": lambda: hf.Features.superpixels(x, 200),
    }
    return model.ask(x, features=made[features]())


# ---------------------------------------------------------------------- sections


def network(options: argparse.Namespace) -> None:
    """Rows a second of forward + gradient in every form, and what ``tuned`` chooses."""
    gpu = options.device.startswith("cuda")
    model, x = imagenet_classifier(options.device), pictures(options)
    half = torch.float16 if gpu else None
    forms = {
        "as it comes": Execution(),
        "channels last": Execution(channels_last=True),
        "folded": Execution(fold=True),
        "folded, channels last": Execution(fold=True, channels_last=True),
    } | (
        {"folded, channels last, float16": Execution(fold=True, channels_last=True, low_precision=half)} if gpu else {}
    )
    table = []
    for name, pace in forms.items():
        own = model.with_module(model.module)
        own.execution = pace
        best = max((rows_a_second(own, x, size), size) for size in ((64, 256, 512) if gpu else (4, 8, 16)))
        table.append({"form": name, "rows/s": best[0], "rows at a time": best[1]})
    show("forward + gradient of EfficientNet-Lite0", table)
    started = time.perf_counter()
    chosen = model.tuned(x)
    print(f"\ntuned: {chosen.execution}, found in {time.perf_counter() - started:.1f} s")


def compiled(options: argparse.Namespace) -> None:
    """What ``torch.compile`` would add: rows a second at one batch size, and the seconds before the first of them."""
    model, x = imagenet_classifier(options.device), pictures(options)
    size = 256 if x.is_cuda else 8
    rows = x[torch.arange(size, device=x.device) % len(x)]
    form = model.execution.form(model.module, rows[:2])
    table = []
    for name, module in (("as it is", form), ("compiled", torch.compile(form, dynamic=False))):
        started = time.perf_counter()
        seconds = [started]
        for _ in range(12):
            points = rows.detach().requires_grad_(True)
            half = model.execution.low_precision
            with torch.autocast(rows.device.type, dtype=half, enabled=half is not None):
                scores = module(points)
            torch.autograd.grad(scores.float().amax(1).sum(), points)
            wait(rows.is_cuda)
            seconds.append(time.perf_counter())
        rate = 10 * size / (seconds[-1] - seconds[2])
        table.append({"form": name, "rows/s": rate, "s before the first": seconds[1] - started})
    show(f"torch.compile, {size} rows at a time", table)


def rows_a_second(model: hf.TorchModel, x: torch.Tensor, size: int) -> float:
    rows = x[torch.arange(size, device=x.device) % len(x)]
    passes = max(2, (4096 if rows.is_cuda else 32) // size)
    for warm in (True, False):
        started = time.perf_counter()
        for _ in range(2 if warm else passes):
            model.gradient(rows, lambda z: z.amax(1), low_precision=True)
        wait(rows.is_cuda)
    return passes * size / (time.perf_counter() - started)


def explain(options: argparse.Namespace) -> None:
    """Greedy-AS, top 20 %, all photographs together."""
    gpu = options.device.startswith("cuda")
    model, x = imagenet_classifier(options.device), pictures(options)
    table = []
    for preset in options.preset:
        for features in options.features:
            cases = ask(options, features, x, model)
            explainer = replace(getattr(hf.GreedyAS, preset)(), budget=0.2)
            replace(explainer, budget=0.02)(cases)  # warm: a GPU sets itself up for every size of a batch
            if gpu:
                torch.cuda.reset_peak_memory_stats()
            before, started = model.queries, time.perf_counter()
            explainer(cases)
            wait(gpu)
            seconds = time.perf_counter() - started
            rows = (model.queries - before).gradient
            table.append(
                {
                    "preset": preset,
                    "features": f"{cases.features.count} {features}",
                    "photographs": len(cases),
                    "s a photograph": seconds / len(cases),
                    "times faster than the paper's": PAPER / (seconds / len(cases)),
                    "gradient rows a photograph": round(rows / len(cases)),
                    "rows/s": rows / seconds,
                    "peak GiB": (
                        torch.cuda.max_memory_allocated() / 2**30
                        if gpu
                        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                    ),
                }
            )
    show("Greedy-AS, top 20 % of a photograph", table)


def draft(options: argparse.Namespace) -> None:
    """Whether half precision in the search costs quality: the same judge, in single precision, on both."""
    fast, x = imagenet_classifier(options.device), pictures(options)
    if fast.execution.low_precision is None:
        print("\nno drafts in half precision on this device")
        return
    exact = fast.with_module(copy.deepcopy(fast.module))
    exact.execution = replace(fast.execution, low_precision=None)
    table = []
    for features in options.features:
        areas = []
        for model in (fast, exact):
            cases = ask(options, features, x, model)
            ranking = hf.GreedyAS(budget=0.2)(cases)
            curve = hf.trace(cases, ranking, hf.RobustnessRest(hf.Judge.quick()), (0.05, 0.1, 0.15, 0.2))
            areas.append(curve.auc())
        ratio = areas[0] / areas[1]
        error = float(ratio.std() / len(ratio) ** 0.5)
        table.append(
            {"features": features, "photographs": len(ratio), "AUC S̄r, half / single": float(ratio.mean()), "±": error}
        )
    show("half precision in the search of Greedy-AS, judged in single precision", table)


def judge(options: argparse.Namespace) -> None:
    """How much tighter longer judges are on photographs: the ratio of their radii to the longest one's."""
    model, x = imagenet_classifier(options.device), pictures(options)
    cases = ask(options, "patches", x, model)
    relevant = hf.Grad()(cases).top([0.05, 0.25, 0.45])
    judges = {
        "MinNorm(steps=30)": hf.MinNorm(steps=30),
        "MinNorm(steps=100)": hf.MinNorm(),
        "Judge(steps=15, classes=3, starts=1)": hf.Judge(steps=15, classes=3, starts=1),
        "Judge.quick()": hf.Judge.quick(),
        "Judge()": hf.Judge(),
    }
    found, table = {}, []
    for name, method in judges.items():
        for kind in (hf.RobustnessRest, hf.RobustnessRelevant):
            before, started = model.queries, time.perf_counter()
            values = kind(method)(cases, relevant)
            wait(x.is_cuda)
            found[name, kind] = values, time.perf_counter() - started, (model.queries - before).gradient
    for name in judges:
        row: dict[str, object] = {"judge": name}
        for kind, title in ((hf.RobustnessRest, "S̄r"), (hf.RobustnessRelevant, "Sr")):
            values, seconds, rows = found[name, kind]
            best = torch.stack([found[other, kind][0] for other in judges]).amin(0)
            ratio = values / best
            row |= {f"{title}: over the best": float(ratio[torch.isfinite(ratio)].mean())}
            row |= {
                f"{title}: censored": int(torch.isinf(values).sum()),
                f"{title}: s": seconds,
                f"{title}: rows": rows,
            }
        table.append(row)
    show(f"judges of {len(cases)} photographs at three sizes", table)


if __name__ == "__main__":
    main()
