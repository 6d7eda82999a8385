"""What ``hf.compare`` costs over the explainers and criteria that it calls, in processor seconds of one thread.

    python benchmarks/comparing.py [--digits 8] [--repeats 5] [--search minnorm | quick]

The same explainers and criteria are called one by one, in turn with ``hf.compare``. Processor seconds are compared, so
that other work on the machine matters little. What follows a comparison (its text, its figure) is timed by itself.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import holdfast as hf
from holdfast.curve import SIZES
from tables import hardware, show


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digits", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--search", choices=["minnorm", "quick"], default="minnorm")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}")
    judge = hf.MinNorm(steps=20) if options.search == "minnorm" else hf.Judge.quick()
    criteria = (hf.RobustnessRest(judge), hf.RobustnessRelevant(judge), hf.Insertion(), hf.Deletion())
    digits, model = hf.data.mnist(), hf.data.mnist_cnn()
    x = digits.x[: options.digits]
    cases = model.ask(x, features="patches:4")
    scores = hf.IntegratedGradients().attribute(cases)
    explainers = {"greedy-as": hf.GreedyAS.quick(), "grad": hf.Grad()}

    def alone() -> None:
        asked = model.ask(x, features="patches:4")
        rankings = [hf.Ranking.by_score(asked, scores), *(explainer(asked) for explainer in explainers.values())]
        for criterion in criteria:
            for ranking in rankings:
                criterion(asked, ranking.top(SIZES))

    def together() -> hf.Evaluation:
        return hf.compare(model, x, {"mine": scores, **explainers}, criteria=criteria, features="patches:4")

    first = _seconds(together)
    alone()
    pairs = [(_seconds(alone), _seconds(together)) for _ in range(options.repeats)]
    apart, joined = (statistics.median(column) for column in zip(*pairs, strict=True))
    rows: list[dict[str, object]] = [
        {"what": "explainers and criteria, one by one", "s": apart},
        {"what": "hf.compare", "s": joined},
        {"what": "hf.compare, the first call of a process", "s": first},
    ]
    result = together()
    rows += [
        {"what": "its text", "s": _seconds(lambda: repr(result))},
        {"what": "its figure as PNG, the first", "s": _seconds(lambda: result.plot()._repr_png_())},
        {"what": "its figure as PNG", "s": _seconds(lambda: result.plot()._repr_png_())},
    ]
    show(f"{options.digits} digits, 3 methods, 4 criteria, {options.search}", rows)
    ratios = [after / before for before, after in pairs]
    print(f"\nover calls one by one: {statistics.median(ratios) - 1:+.1%} (from {min(ratios) - 1:+.1%} to", end=" ")
    print(f"{max(ratios) - 1:+.1%} in {len(ratios)} pairs)")


def _seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
