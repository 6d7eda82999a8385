"""Insertion and Deletion: under many references, and beside Quantus' PixelFlipping, as tables.

python benchmarks/criteria.py                             # about a quarter of an hour on two cores, most of it rankings
python benchmarks/criteria.py --only quantus              # values and seconds beside Quantus
python benchmarks/criteria.py --only references --digits 10
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import holdfast as hf
from holdfast.analyses import reference_values
from holdfast.models.torch import layers_of
from tables import RESULTS, hardware, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections: dict[str, Callable[[argparse.Namespace], None]] = {"references": references, "quantus": quantus_}
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--digits", type=int, default=100)
    parser.add_argument("--first", type=int, default=200, help="the first digit; settings were chosen on 0-123")
    parser.add_argument("--json", type=Path, help="also write the tables here")
    options = parser.parse_args()
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}")
    for name in options.only:
        sections[name](options)
    if options.json:
        options.json.write_text(json.dumps(RESULTS, indent=1))


def ask(options: argparse.Namespace) -> hf.Cases:
    return hf.data.mnist_cnn().ask(hf.data.mnist().x[options.first : options.first + options.digits])


def references(options: argparse.Namespace) -> None:
    """Nine methods, six references: the paper's reference tables, in its columns."""
    cases = ask(options)
    explainers: dict[str, hf.Explainer] = {
        "Grad": hf.Grad(),
        "IG": hf.IntegratedGradients(),
        "EG": hf.ExpectedGradients(),
        "SHAP": hf.KernelShap(),
        "LOO": hf.LeaveOneOut(),
        "BBMP": hf.Bbmp(),
        "CFX": hf.Counterfactual(),
        "Random": hf.Random(),
    }
    started = time.perf_counter()
    rankings: dict[str, Any] = {name: explainer(cases) for name, explainer in explainers.items()}
    rankings["Greedy-AS"] = tuple(
        hf.GreedyAS.quick(kind(hf.MinNorm(steps=20)))(cases) for kind in (hf.RobustnessRest, hf.RobustnessRelevant)
    )
    print(f"  rankings took {time.perf_counter() - started:.0f} s", flush=True)
    started = time.perf_counter()
    result = reference_values(cases, rankings)
    taken = time.perf_counter() - started
    found = {(row["reference"], row["criterion"], row["method"]): row for row in result.table()}
    for criterion in ("Insertion", "Deletion"):
        rows: list[dict[str, object]] = []
        for reference in result.references:
            row: dict[str, object] = {"reference": reference}
            rows.append(row | {name: f"{found[reference, criterion, name]['area']:.1f}" for name in rankings})
        row = {"reference": "mean rank"}
        for name in rankings:
            ranks = [found[reference, criterion, name]["rank"] for reference in result.references]
            row[name] = f"{statistics.mean(ranks):.1f}"
        show(f"AUC {criterion}, logits, {len(cases)} digits", [*rows, row])
    print(f"\n{len(rankings) * len(result.references)} cells, both criteria, in {taken:.1f} s")


def quantus_(options: argparse.Namespace) -> None:
    """Deletion at reference 0 and PixelFlipping with black are the same, one pixel at a time or 49 of them."""
    import quantus

    cases = ask(options)
    ranking = hf.Grad()(cases)
    x, y, a = cases.x.numpy(), cases.label.numpy(), ranking.scores.reshape(-1, 1, 28, 28).numpy()
    rows: list[dict[str, object]] = []
    for step, repeats in ((1, 3), (49, 9)):
        sizes = [step * k for k in range(1, 784 // step + 1)]
        flipping = quantus.PixelFlipping(step, normalise=False, perturb_baseline="black", disable_warnings=True)
        seconds: dict[str, list[float]] = {"holdfast": [], "Quantus": []}
        for _ in range(repeats):
            started, before = time.perf_counter(), cases.model.queries
            ours = hf.Deletion(0.0, "probability")(cases, ranking.top(sizes))
            seconds["holdfast"].append(time.perf_counter() - started)
            asked = (cases.model.queries - before).forward
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = flipping(model=layers_of(cases.model).module, x_batch=x, y_batch=y, a_batch=a, softmax=True)
            seconds["Quantus"].append(time.perf_counter() - started)
        own, other = (statistics.median(taken) for taken in seconds.values())
        difference = float((ours - torch.as_tensor(np.array(theirs))).abs().max())
        row: dict[str, object] = {"pixels a step": step, "steps": len(sizes), "s, holdfast": own, "s, Quantus": other}
        row |= {"Quantus / holdfast": other / own, "rows a digit, holdfast": asked / len(cases)}
        rows.append(row | {"largest difference of a probability": difference})
    started = time.perf_counter()
    hf.trace(cases, ranking, hf.Deletion(0.0, "probability"))
    print(f"  the paper's nine sizes alone: {time.perf_counter() - started:.3g} s", flush=True)
    show(f"Deletion beside Quantus' PixelFlipping, {len(cases)} digits", rows)


if __name__ == "__main__":
    main()
