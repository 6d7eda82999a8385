"""How near explainers come to the best order there is, on tables with few columns, as a table.

python benchmarks/optimum.py                                  # some minutes on two cores
python benchmarks/optimum.py --california houses.csv          # with boosted trees of XGBoost on California Housing, too
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch

import holdfast as hf
from holdfast.data.network import Place
from holdfast.data.table_classifiers import TableXgboost
from holdfast.data.table_experiments import TableData, TableTrees
from tables import hardware, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--budget", type=int, default=3)
    parser.add_argument("--california", help="a file of California Housing")
    options = parser.parse_args()
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}")
    names = ["Adult", *(["California"] if options.california else [])]
    measured = [row for name in names for row in compare(options, name)]
    show(f"Areas from 1 to {options.budget} columns, beside the optimum, {options.rows} rows", measured)


def subjects(options: argparse.Namespace, name: str) -> tuple[hf.Cases, torch.Tensor, torch.Tensor]:
    """Return the cases of a table, a typical row, and a hundred rows that are not explained."""
    data = TableData(root=None if name == "Adult" else options.california, shuffle=0)
    examples = data.load(None, None, "cpu")
    network = TableTrees() if name == "Adult" else TableXgboost()
    model, _ = network.model(data, examples, Place(Path(".")))
    x = examples.x[: options.rows]
    typical = examples.typical
    assert typical is not None
    cases: hf.Cases = model.ask(x, target=1 - model(x).argmax(1))
    others = examples.x[data.others(len(examples))[:100]]
    hf.TreeShap(others)(cases[0])  # imports shap, which takes seconds
    return cases, typical.values, others


def compare(options: argparse.Namespace, name: str) -> list[dict[str, object]]:
    """Return a row for each criterion and explainer: its area, the share of rows where it is the optimum, its time."""
    cases, typical, others = subjects(options, name)
    found: list[dict[str, object]] = []
    kinds: list[type[hf.RobustnessRest] | type[hf.RobustnessRelevant]] = [hf.RobustnessRest, hf.RobustnessRelevant]
    for kind in kinds:
        objective, budget = kind(hf.ExactTrees()), options.budget
        makers: dict[str, Callable[[], hf.Explainer]] = {
            "optimum": lambda: hf.BruteForce(objective, budget),  # noqa: B023  # called at once
            "Greedy": lambda: hf.Greedy(objective, budget, 1),  # noqa: B023
            "Greedy-AS": lambda: hf.GreedyAS(objective, budget, 1, samples=4),  # noqa: B023
            "TreeSHAP": lambda: hf.TreeShap(others),
            "SHAP": lambda: hf.KernelShap(typical),
            "Random": hf.Random,
        }
        best: torch.Tensor | None = None
        for method, make in makers.items():
            started = time.perf_counter()
            ranking = make()(cases)
            seconds = (time.perf_counter() - started) / len(cases)
            area = hf.trace(cases, ranking, objective, range(1, budget + 1)).auc()
            best = area if best is None else best
            same = torch.isclose(area, best, rtol=1e-6).double().mean()
            found.append(
                {
                    "table": name,
                    "criterion": objective.name,
                    "order": method,
                    "mean area": f"{float(area.mean()):.2f}",
                    "rows with the best area": f"{float(same):.0%}",
                    "s a row": f"{seconds:.2g}",
                }
            )
    return found


if __name__ == "__main__":
    main()
