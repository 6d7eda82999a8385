"""How near a search from decisions alone comes to exact radii of trees, and to the judge's radii of digits.

    python benchmarks/decisions.py [--only trees digits] [--rows 20] [--digits 20] [--models xgboost boosting]
        [--norms 2 1 inf] [--queries 1000 10000] [--starts 8] [--access decisions scores]

Trees: ratio to ``ExactTrees``, breast cancer, 100 trees of depth 6, 100, 50 and 20 % of 30 columns free. Digits: ratio
to ``Judge``, all pixels and a random half of them free, beside foolbox' attacks. The rows of the model are counted, and
witnesses count only as far as they were found within the limit.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.robustness import Rows
from tables import hardware, show
from trees import asked, data, fitted

_DIGIT_QUERIES = (500, 1000, 2000, 5000)
_TREE_QUERIES = (1000, 2000, 5000, 10_000)


def main() -> None:
    """Measure and print."""
    sections: dict[str, Callable[[argparse.Namespace], None]] = {"trees": trees, "digits": digits}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--rows", type=int, default=20, help="rows of the test part, each with three masks")
    parser.add_argument("--models", nargs="+", default=["xgboost", "boosting"])
    parser.add_argument("--digits", type=int, default=20, help="how many embedded digits")
    parser.add_argument("--first", type=int, default=200, help="the first of them; settings were chosen on 40-51")
    parser.add_argument("--norms", nargs="+", type=float, default=[2.0, math.inf, 1.0])
    parser.add_argument("--queries", nargs="+", type=int, help="limits; default: as documented")
    parser.add_argument("--starts", type=int, help="default: 8 for trees, 4 for digits")
    parser.add_argument("--access", nargs="+", choices=["decisions", "scores"], default=["decisions", "scores"])
    parser.add_argument("--judge", choices=["quick", "default"], default="quick")
    parser.add_argument("--foolbox", action="store_true", help="measure foolbox' attacks on digits too")
    options = parser.parse_args()
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}")
    for name in options.only:
        sections[name](options)


def black_box(model: Any, access: str, classes: int) -> hf.FunctionModel:
    """Return a model as a function on the box [0, 1]."""

    def scores(rows: Any) -> Tensor:
        out: Tensor = model(torch.from_numpy(rows).to(model.dtype), exact=True)
        return out

    if access == "scores":
        return hf.FunctionModel(lambda rows: scores(rows).numpy(), bounds=(0, 1))
    return hf.FunctionModel(lambda rows: scores(rows).argmax(1).numpy(), bounds=(0, 1), classes=classes)


def summary(found: Tensor, best: Tensor, masks: tuple[str, ...]) -> dict[str, object]:
    """Return mean ratios of radii ``[B, K]`` for each mask and over all, the worst one, and missed witnesses."""
    row: dict[str, object] = {}
    ratio, known = found / best, torch.isfinite(best) & (best > 0) & torch.isfinite(found)
    for k, mask in enumerate(masks):
        part = ratio[:, k][known[:, k]]
        row[f"{mask}, mean"] = float(part.mean()) if len(part) else math.nan
    row["mean"], row["median"] = float(ratio[known].mean()), float(ratio[known].median())
    row["worst"] = float(ratio[known].max())
    row["missed"] = int((torch.isinf(found) & torch.isfinite(best)).sum())
    return row


def trees(options: argparse.Namespace) -> None:
    """Compare with exact radii of trees."""
    x, y, _ = data()
    for name in options.models:
        cases, subsets = asked(fitted(name, x, y), options.rows)
        for p in options.norms:
            exact = hf.ExactTrees(p)(cases, subsets)
            best = exact.radius.masked_fill(~exact.proven, math.nan)
            print(f"{name}, p={p:g}: {int(exact.proven.sum())} of {exact.proven.numel()} rows settled")
            rows = []
            for access in options.access:
                box = black_box(cases.model, access, 2).ask(cases.x.float(), label=cases.label)
                for queries in options.queries or _TREE_QUERIES:
                    method = hf.DecisionBased(p, queries=queries, starts=options.starts or 8)
                    rows.append({"p": p, "access": access, "queries": queries} | _run(method, box, subsets, best))
            show(f"search from decisions / exact radius, {name}, {method.starts} starts", rows)


def _run(method: hf.DecisionBased, cases: hf.Cases, subsets: Tensor, best: Tensor) -> dict[str, object]:
    began = time.perf_counter()
    radii = method(cases, subsets)
    seconds = time.perf_counter() - began
    masks = tuple(f"{100 * float(share):.0f} % free" for share in subsets.float().mean((0, 2)))
    return summary(radii.radius.double(), best, masks) | {"s a row": seconds / best.numel()}


def digits(options: argparse.Namespace) -> None:
    """Compare with the judge's radii of digits."""
    net, x = hf.data.mnist_cnn(), hf.data.mnist().x[options.first : options.first + options.digits]
    cases = net.ask(x)
    half = torch.rand(len(x), 784, generator=torch.Generator().manual_seed(1)) < 0.5
    subsets = torch.stack([torch.ones_like(half), half], 1)
    for p in options.norms:
        best = getattr(hf.Judge, options.judge)(p)(cases, subsets).radius.double()
        rows = []
        for access in options.access:
            box = black_box(net, access, 10).ask(x)
            for queries in options.queries or _DIGIT_QUERIES:
                method = hf.DecisionBased(p, queries=queries, starts=options.starts or 4)
                row: dict[str, object] = {"p": p, "method": f"holdfast, {access}", "queries": queries}
                rows.append(row | _run(method, box, subsets, best))
        if options.foolbox and p == 2 and find_spec("foolbox") is not None:
            for queries in options.queries or _DIGIT_QUERIES:
                for name in ("HopSkipJump", "Boundary"):
                    began = time.perf_counter()
                    found = torch.stack([_foolbox(name, net, case, queries, subsets, cases) for case in range(len(x))])
                    seconds = (time.perf_counter() - began) / best.numel()
                    row = {"p": p, "method": f"foolbox {name}", "queries": queries}
                    rows.append(row | summary(found.double(), best, ("100 % free", "50 % free")) | {"s a row": seconds})
        show(f"search from decisions / Judge.{options.judge}, digits from {options.first}", rows)


class Counted(nn.Module):
    """Decisions of one row's box, with the shortest witness of the first ``queries`` points."""

    def __init__(self, rows: Rows, queries: int):
        super().__init__()
        self.rows, self.queries = rows, queries
        self.asked, self.radius = 0, math.inf

    def forward(self, inputs: Tensor) -> Tensor:
        rows, left = self.rows, self.queries - self.asked
        if left <= 0:
            raise _SpentError
        moved = torch.where(rows.free, inputs.flatten(1), rows.x)
        delta = torch.minimum(torch.maximum(moved - rows.x, rows.low), rows.high)
        with torch.no_grad():
            logits = rows.model((rows.x + delta).reshape(inputs.shape), exact=True)
        changed = logits[:left].argmax(1) != rows.label
        self.asked += len(inputs)
        if bool(changed.any()):
            self.radius = min(self.radius, float(torch.linalg.vector_norm(delta[:left][changed], dim=1).min()))
        return nn.functional.one_hot(logits.argmax(1), logits.shape[1]).to(logits)


class _SpentError(Exception):
    """All queries are spent."""


def _foolbox(name: str, net: hf.TorchModel, case: int, queries: int, subsets: Tensor, cases: hf.Cases) -> Tensor:
    """Return the radii of one case's masks, ``[K]``, found within the queries."""
    import foolbox

    found = []
    for mask in range(subsets.shape[1]):
        rows = Rows.of(cases[case], subsets[case : case + 1, mask : mask + 1], slice(0, 1))
        model = Counted(rows, queries).eval()
        wrapped = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
        np.random.seed(0)  # foolbox draws from NumPy's and torch's global generators
        torch.manual_seed(0)
        if name == "Boundary":
            attack: Any = foolbox.attacks.BoundaryAttack(steps=queries, tensorboard=False)
        else:
            attack = foolbox.attacks.HopSkipJumpAttack(steps=64)
        with contextlib.suppress(_SpentError, ValueError):  # foolbox raises ValueError where it finds no first point
            attack(wrapped, rows.x.reshape(1, *rows.shape), rows.label, epsilons=None)
        found.append(model.radius)
    return torch.tensor(found)


if __name__ == "__main__":
    main()
