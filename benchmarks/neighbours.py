"""Exact radii of nearest-neighbour classifiers: time of a row, rows that are settled, brackets.

    python benchmarks/neighbours.py [--data digits cancer] [--norms 2] [--neighbours 1] [--rows 100] [--shares 1 0.2]

Digits: the 1,000 embedded MNIST digits, 900 for training, inside the box [0, 1]. Cancer: the table of breast cancers of
scikit-learn, 500 rows for training, columns scaled to [0, 1], inside that box. The rows that are asked about are the
others. Each row is asked by itself. The time is that of one thread.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor

import holdfast as hf
from tables import hardware, show


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["digits", "cancer"], choices=["digits", "cancer"])
    parser.add_argument("--norms", nargs="+", type=float, default=[2.0])
    parser.add_argument("--neighbours", nargs="+", type=int, default=[1])
    parser.add_argument("--rows", type=int, default=100, help="at most")
    parser.add_argument(
        "--shares", nargs="+", type=float, default=[1.0, 0.5, 0.2], help="of the features that may move"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}, one thread")
    for name in options.data:
        train, labels, x = {"digits": digits, "cancer": cancer}[name]()
        x, rows = x[: options.rows], []
        for k in options.neighbours:
            cases = hf.neighbours(train, labels, k, bounds=(0, 1)).ask(x)
            for p in options.norms:
                for share in options.shares:
                    rows.append({"k": k, "p": p, "free": share, **measured(cases, share, p)})
        show(f"ExactNeighbours, {name}: {len(train)} training points, {len(x)} rows", rows)


def digits() -> tuple[Tensor, Tensor, Tensor]:
    """Return 900 digits, their labels, and the other 100."""
    data = hf.data.mnist()
    return data.x[:900], data.y[:900], data.x[900:].double()


def cancer() -> tuple[Tensor, Tensor, Tensor]:
    """Return 500 rows of the table, their labels, and the other 69."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    x = torch.tensor(data.data)
    x = (x - x.amin(0)) / (x.amax(0) - x.amin(0))
    return x[:500], torch.tensor(data.target[:500]), x[500:]


def measured(cases: hf.Cases, share: float, p: float) -> dict[str, object]:
    """Measure each case by itself, with a random mask that is the same for all."""
    features = cases.features.count
    order = torch.rand(features, generator=torch.Generator().manual_seed(0)).argsort().argsort()
    subset = (order < round(share * features))[None, None]
    method, seconds, found = hf.ExactNeighbours(p), [], []
    for case in cases:
        began = time.process_time()
        found.append(method(case, subset))
        seconds.append(time.process_time() - began)
    taken = 1000 * torch.tensor(seconds)
    radius = torch.cat([one.radius[0] for one in found])
    lower, proven = (torch.cat([getattr(one, name)[0] for one in found]) for name in ("lower", "proven"))
    finite = torch.isfinite(radius) & (radius > 0)
    return {
        "median ms a row": float(taken.median()),
        "mean": float(taken.mean()),
        "worst": float(taken.max()),
        "proven": f"{int(proven.sum())} of {len(proven)}",
        "unreachable": int((torch.isinf(radius) & proven).sum()),
        "median radius": float(radius.median()),
        "lower / upper": float((lower / radius)[finite].mean()),
    }


if __name__ == "__main__":
    main()
