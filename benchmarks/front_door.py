"""What ``hf.explain`` costs over the explainer and the judge that it calls, in processor seconds of one thread.

    python benchmarks/front_door.py [--repeats 9]

Both are called in turn, so that other work on the machine matters little. The judge measures the same five subsets.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch

import holdfast as hf
from holdfast.explaining import judge_ranking
from holdfast.features import Features
from tables import hardware, show


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}")
    rows = [row(name, *pair, options.repeats) for name, pair in {"digit": digit(), "row": table()}.items()]
    show("hf.explain over its explainer and its judge", rows)


def digit() -> tuple[Callable[[], object], Callable[[], object]]:
    """Return both ways to explain a digit."""
    model, x = hf.data.mnist_cnn(), hf.data.mnist().x[200:201]

    def alone() -> object:
        cases = model.ask(x, features=Features.pixels((1, 28, 28)))
        ranking = replace(hf.GreedyAS.quick(), budget=0.2)(cases)
        return judge_ranking(cases, "", ranking, hf.Judge.quick(), 0.2, seed=0)

    return alone, lambda: hf.explain(model, x)


def table() -> tuple[Callable[[], object], Callable[[], object]]:
    """Return both ways to explain a row of Adult."""
    data = hf.data.adult()
    model = hf.data.adult_trees(data.columns)
    given = data.row(17)
    x = data.columns.encode([given])

    def alone() -> object:
        cases = model.ask(x, features=data.columns.features())
        return judge_ranking(cases, "", hf.Greedy(budget=1.0)(cases), hf.Judge(), 3, seed=0)

    return alone, lambda: hf.explain(model, given, columns=data.columns)


def row(name: str, alone: Callable[[], object], whole: Callable[[], object], repeats: int) -> dict[str, object]:
    """Return the medians of both, measured in turn."""
    alone(), whole()
    pairs = [(seconds(alone), seconds(whole)) for _ in range(repeats)]
    parts, explained = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"input": name, "explainer and judge, s": parts, "hf.explain, s": explained, "ratio": explained / parts}


def seconds(work: Callable[[], object]) -> float:
    """Return the processor seconds that the work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
