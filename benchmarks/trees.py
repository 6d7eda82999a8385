"""Exact radii of tree ensembles: time, share of rows that are settled, and dtai-veritas beside them.

    python benchmarks/trees.py [--only exact veritas sound greedy] [--rows 20] [--models xgboost lightgbm ...]

Breast cancer (30 columns, scaled to [0, 1]), 100 trees of depth 6, masks with 100, 50 and 20 % of the columns free.
Times are CPU time of one thread.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import holdfast as hf
from holdfast.tree_ensembles.geometry import Point
from holdfast.tree_ensembles.leaves import Leaves
from holdfast.tree_ensembles.nearest import nearest
from tables import hardware, show

Array = NDArray[np.float64]
_SHARES = (1.0, 0.5, 0.2)
_ONES = np.ones(30)
_SEARCH = 1e-5  # how far beyond a threshold veritas puts its witness
_NAMES = ["xgboost", "lightgbm", "histograms", "boosting", "forest"]


def main() -> None:
    """Measure and print."""
    sections: dict[str, Callable[[argparse.Namespace], None]] = {
        "exact": exact,
        "veritas": veritas,
        "sound": sound,
        "greedy": greedy,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--rows", type=int, default=20, help="rows of the test part, each with three masks")
    parser.add_argument("--models", nargs="+", choices=_NAMES, default=_NAMES)
    parser.add_argument("--norms", nargs="+", type=float, default=[2.0, math.inf, 1.0])
    parser.add_argument("--nodes", type=int, default=hf.ExactTrees().nodes)
    options = parser.parse_args()
    print(f"holdfast {hf.__version__}, {hardware('cpu')}")
    for name in options.only:
        sections[name](options)


def data() -> tuple[Array, NDArray[np.int64], Array]:
    """Return training rows and classes, and rows to ask about, in single precision."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - x.min(0)) / (x.max(0) - x.min(0))).astype(np.float32).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(x))
    return x[order[:400]], y[order[:400]], x[order[400:]]


def fitted(name: str, x: Array, y: NDArray[np.int64]) -> Any:
    """Return a fitted classifier of 100 trees of depth 6."""
    import lightgbm
    import xgboost
    from sklearn import ensemble

    kinds = {
        "xgboost": lambda: xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1),
        "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=100, max_depth=6, verbose=-1, n_jobs=1),
        "histograms": lambda: ensemble.HistGradientBoostingClassifier(max_iter=100, max_depth=6),
        "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=100, max_depth=6, random_state=0),
        "forest": lambda: ensemble.RandomForestClassifier(100, max_depth=6, random_state=0, n_jobs=1),
    }
    return kinds[name]().fit(x, y)


def asked(model: Any, rows: int) -> tuple[hf.Cases, Tensor]:
    """Return cases and their masks ``[rows, 3, 30]``."""
    cases = hf.trees(model, bounds=(0, 1)).ask(data()[2][:rows])
    order = torch.rand(rows, 30, generator=torch.Generator().manual_seed(0)).argsort(1).argsort(1)
    return cases, torch.stack([order < round(30 * share) for share in _SHARES], 1)


def exact(options: argparse.Namespace) -> None:
    """Measure the time of every row, and how many are settled."""
    x, y, _ = data()
    rows = []
    for name in options.models:
        cases, subsets = asked(fitted(name, x, y), options.rows)
        for p in options.norms:
            method = hf.ExactTrees(p, nodes=options.nodes, workers=1)
            method(cases[:1], subsets[:1])
            taken, proven, unreachable = [], 0, 0
            for case in range(len(cases)):
                for mask in range(len(_SHARES)):
                    began = time.process_time()
                    radii = method(cases[case], subsets[case : case + 1, mask : mask + 1])
                    taken.append(1000 * (time.process_time() - began))
                    proven += int(radii.proven.sum())
                    unreachable += int(radii.unreachable.sum())
            rows.append(
                {
                    "model": name,
                    "p": p,
                    "rows": len(taken),
                    "median, ms": float(np.median(taken)),
                    "mean, ms": float(np.mean(taken)),
                    "worst, ms": max(taken),
                    "settled, %": 100 * proven / len(taken),
                    "proven unreachable, %": 100 * unreachable / len(taken),
                }
            )
    show(f"exact radii, {options.nodes} branches at most", rows)


def veritas(options: argparse.Namespace) -> None:
    """Compare Linf radii and the times of the solvers alone with dtai-veritas."""
    if find_spec("veritas") is None:
        print("\ndtai-veritas is not installed: no comparison")
        return
    from veritas import get_addtree

    x, y, _ = data()
    rows = []
    for name in options.models:
        if name == "histograms":
            continue  # veritas has no reader for it
        model = fitted(name, x, y)
        cases, subsets = asked(model, options.rows)
        trees = get_addtree(model, silent=True)
        made = cases.model
        assert isinstance(made, hf.TreeModel)
        leaves = Leaves.of(made.ensemble)
        ours, theirs, ratios, different = [], [], [], 0
        for case in range(len(cases)):
            for mask in range(len(_SHARES)):
                own, free, label = cases.x[case].numpy(), subsets[case, mask].numpy(), int(cases.label[case])
                began = time.process_time()
                point = Point(own, np.where(free, -own, 0), np.where(free, 1 - own, 0), _ONES, math.inf, 0 * _ONES)
                found = nearest(made.ensemble, leaves, point, label, None, options.nodes)
                ours.append(1000 * (time.process_time() - began))
                radius = math.inf if found.move is None else float(np.abs(found.move).max())
                began = time.process_time()
                other = _veritas_radius(trees, own, free, label)
                theirs.append(1000 * (time.process_time() - began))
                ratios.append(ours[-1] / theirs[-1])
                different += not (radius == other or abs(radius - other) <= 1e-4)
        rows.append(
            {
                "model": name,
                "rows": len(ours),
                "not equal to 1e-4": different,
                "holdfast, median ms": float(np.median(ours)),
                "veritas, median ms": float(np.median(theirs)),
                "ratio, median": float(np.median(ratios)),
                "ratio, worst": max(ratios),
                "ratio of sums": sum(ours) / sum(theirs),
            }
        )
    show("Linf, beside dtai-veritas", rows)


def _veritas_radius(trees: Any, x: Array, free: Any, label: int) -> float:
    """Return the Linf radius that veritas finds in the box [0, 1]."""
    from veritas import Config, HeuristicType, Interval, VeritasRobustnessSearch

    class Masked(VeritasRobustnessSearch):  # type: ignore[misc]  # veritas has no types
        def get_search(self, delta: float) -> Any:
            config = Config(HeuristicType.MAX_OUTPUT)
            config.stop_when_optimal = True
            config.ignore_state_when_worse_than = 0.0
            config.stop_when_num_solutions_exceeds = 1
            config.max_focal_size, config.focal_eps, config.max_memory = 1000, 0.2, 2**30
            reach = np.where(free, delta, 0)
            low, high = np.maximum(x - reach, 0), np.minimum(x + reach, 1)
            box = [
                Interval(a, float(np.nextafter(np.float32(b), np.float32(2)))) for a, b in zip(low, high, strict=True)
            ]
            return config.get_search(self.at, box)

    source, target = (trees, None) if label == 1 else (None, trees)
    search = Masked(
        x,
        1.0,
        source,
        target,
        num_steps=60,
        max_time=30,
        silent=True,
        search_guard=_SEARCH,
        stop_condition=lambda low, high: (high - low) <= 2e-5,
    )
    _, lower, upper = search.search()
    return math.inf if lower >= 1 - 1e-4 else float(upper)


def sound(options: argparse.Namespace) -> None:
    """Ask the libraries themselves about every witness, and about 10,000 points at 0.999 of every radius."""
    x, y, _ = data()
    rows = []
    for name in options.models:
        model = fitted(name, x, y)
        cases, subsets = asked(model, options.rows)
        for p in options.norms:
            radii = hf.ExactTrees(p, nodes=options.nodes)(cases, subsets)
            kept, inside, witnesses = 0, 0, int(radii.witnessed.sum())
            for case in range(len(cases)):
                own = cases.x[case].numpy()
                label = model.predict(own[None])[0]
                for mask in range(len(_SHARES)):
                    if bool(radii.witnessed[case, mask]):
                        kept += int(model.predict(radii.witness[case, mask].numpy()[None])[0] == label)
                    radius = min(float(radii.lower[case, mask]), 2.0)  # any point of the box if it is unreachable
                    points = _ball(own, subsets[case, mask].numpy(), 0.999 * radius, p)
                    inside += int((model.predict(points) != label).sum())
            rows.append(
                {
                    "model": name,
                    "p": p,
                    "witnesses": witnesses,
                    "not changed by the library": kept,
                    "changed points inside": inside,
                    "points": 10_000 * len(cases) * len(_SHARES),
                }
            )
    show("what the libraries predict", rows)


def greedy(options: argparse.Namespace) -> None:
    """Measure exact Greedy: the first 10 of 30 features, held."""
    x, y, _ = data()
    rows = []
    for name in options.models:
        cases, _ = asked(fitted(name, x, y), options.rows)
        taken, solved, held = [], [], []
        for case in cases:
            before, began = cases.model.queries, time.process_time()
            ranking = hf.Greedy(hf.RobustnessRest(hf.ExactTrees(nodes=options.nodes, workers=1)), 10, 1)(case)
            taken.append(time.process_time() - began)
            solved.append((cases.model.queries - before).forward)
            curve = hf.trace(case, ranking, hf.RobustnessRest(hf.ExactTrees()), sizes=[1, 3, 5, 10]).values[0]
            held.append(int(torch.isinf(curve).sum()))
        rows.append(
            {
                "model": name,
                "rows": len(taken),
                "median, s": float(np.median(taken)),
                "worst, s": max(taken),
                "solves, median": float(np.median(solved)),
                "solves, most": max(solved),
                "rows that 10 columns hold for good": sum(one > 0 for one in held),
            }
        )
    show("exact Greedy, the first 10 of 30 columns, L2", rows)


def _ball(x: Array, free: Any, radius: float, p: float, count: int = 10_000) -> Array:
    """Return random points on and in the ball, inside the mask and the box [0, 1]; half of them move few columns."""
    drawn = np.random.default_rng(0)
    noise = drawn.normal(size=(count, len(x))) * free
    noise[count // 2 :] *= drawn.random((count - count // 2, len(x))) < 0.15
    length = np.linalg.norm(noise, p, axis=1, keepdims=True)
    share = np.maximum(drawn.random((count, 1)), drawn.random((count, 1)))
    points = x + radius * share * noise / np.maximum(length, 1e-12)
    return np.asarray(points.clip(0, 1))


if __name__ == "__main__":
    main()
