"""Exact radii of networks with one hidden ReLU layer, and how near robustness methods come to them.

    python benchmarks/exact_relu.py [--networks 50] [--masks 6] [--widths 6-12-3 10-16-4] [--norms 2 1 inf] [--thorough]

L1 and Linf: one mixed-integer program for each other class. L2: branch and bound over the hidden units. A branch is
bounded by a least-distance program, in which units that are not fixed yet are replaced by linear bounds.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp, nnls
from torch import Tensor, nn

import holdfast as hf
from tables import hardware, show

Array = NDArray[np.float64]
_SLACK = 1 + 1e-6  # how far beyond the known radius is searched, so that rounding excludes nothing


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=50)
    parser.add_argument("--masks", type=int, default=6)
    parser.add_argument("--widths", nargs="+", default=["6-12-3", "10-16-4"], help="inputs-hidden-classes")
    parser.add_argument("--norms", nargs="+", type=float, default=[2.0, 1.0, math.inf])
    parser.add_argument("--first", type=int, default=0, help="the seed of the first network")
    parser.add_argument("--thorough", action="store_true", help="measure Judge.thorough too")
    options = parser.parse_args()
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}")
    names = ["quick", "default", *["thorough"] * options.thorough]
    for widths in options.widths:
        inputs, hidden, classes = map(int, widths.split("-"))
        rows = []
        for p in options.norms:
            ratios: dict[str, list[Tensor]] = {name: [] for name in names}
            missed, taken = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
            for seed in range(options.first, options.first + options.networks):
                cases = relu_net(inputs, hidden, classes, seed)
                subsets = random_subsets(options.masks, inputs, seed)
                found = {}
                for name in names:
                    began = time.perf_counter()
                    found[name] = getattr(hf.Judge, name)(p)(cases, subsets).radius[0]
                    taken[name] += time.perf_counter() - began
                exact = exact_radii(cases, subsets[0], p, torch.stack(list(found.values())).amin(0))
                for name in names:
                    missed[name] += int((torch.isinf(found[name]) & torch.isfinite(exact)).sum())
                    both = torch.isfinite(found[name]) & (exact > 0)
                    ratios[name].append(found[name][both].double() / exact[both])
            for name in names:
                ratio = torch.cat(ratios[name])
                rows.append(
                    {
                        "p": p,
                        "judge": name,
                        "rows": len(ratio),
                        "missed": missed[name],
                        "mean": float(ratio.mean()),
                        "above 1.001": int((ratio > 1.001).sum()),
                        "above 1.005": int((ratio > 1.005).sum()),
                        "worst": float(ratio.max()),
                        "s a network": taken[name] / options.networks,
                    }
                )
        show(f"Judge / exact, ReLU networks {widths}, {options.networks} networks x {options.masks} masks", rows)


def relu_net(inputs: int, hidden: int, classes: int, seed: int) -> hf.Cases:
    """Make a random network with one hidden layer, and one case: a random point of its box [0, 1]."""
    generator = torch.Generator().manual_seed(seed)
    first, second = nn.Linear(inputs, hidden), nn.Linear(hidden, classes)
    with torch.no_grad():
        for layer in (first, second):
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator))
            layer.bias.copy_(torch.randn(layer.bias.shape, generator=generator) / 2)
    net = nn.Sequential(first, nn.ReLU(), second)
    x = torch.rand(1, inputs, generator=generator)
    return hf.TorchModel(net.eval(), bounds=(0, 1)).ask(x)


def random_subsets(masks: int, features: int, seed: int) -> Tensor:
    """Return random subsets ``[1, masks, features]``; the first contains every feature."""
    generator = torch.Generator().manual_seed(10_000 + seed)
    share = torch.rand(masks, 1, generator=generator) * 0.7 + 0.3
    subsets = torch.rand(masks, features, generator=generator) < share
    subsets[0] = True
    return subsets[None]


def exact_radii(cases: hf.Cases, subsets: Tensor, p: float, upper: Tensor) -> Tensor:
    """Solve for the radii of one case.

    Args:
        cases: One case of a network ``Linear, ReLU, Linear`` with bounds; every coordinate is a feature.
        subsets: Bool ``[K, n]``.
        p: The norm.
        upper: Known upper bounds ``[K]``, which limit the search; ``inf`` where none is known.

    Returns:
        Radii ``[K]`` in double precision; ``inf`` where the decision cannot be changed.
    """
    question = _Question.of(cases)
    radii = [_radius(question, row.numpy(), p, float(most)) for row, most in zip(subsets, upper, strict=True)]
    return torch.tensor(radii, dtype=torch.float64)


@dataclass(frozen=True)
class _Question:
    """A network ``v @ relu(w @ x + b) + c`` around one point, with the box as moves ``low .. high``."""

    w: Array
    at: Array  # what the hidden units receive at x
    v: Array  # weights of the logits of each other class minus those of the label, ``[classes - 1, hidden]``
    c: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, cases: hf.Cases) -> _Question:
        first, _, second = cases.model.module  # type: ignore[attr-defined]
        w, b, v, c = (part.detach().double().numpy() for part in (*first.parameters(), *second.parameters()))
        x = cases.x[0].double().numpy()
        label = int(cases.label[0])
        others = [j for j in range(len(c)) if j != label]
        assert cases.model.low is not None
        assert cases.model.high is not None
        low, high = (
            np.broadcast_to(edge.double().numpy(), x.shape) - x for edge in (cases.model.low, cases.model.high)
        )
        return cls(w, w @ x + b, v[others] - v[label], c[others] - c[label], low, high)

    def restricted(self, free: NDArray[np.bool_]) -> _Question:
        return _Question(self.w[:, free], self.at, self.v, self.c, self.low[free], self.high[free])

    def reach(self, p: float, radius: float) -> tuple[Array, Array]:
        """Bound what the hidden units receive inside box and ball."""
        rise = np.maximum(self.w * self.low, self.w * self.high).sum(1)
        fall = -np.minimum(self.w * self.low, self.w * self.high).sum(1)
        if math.isfinite(radius):
            dual = {1.0: math.inf, 2.0: 2, math.inf: 1}[p]
            most = radius * np.linalg.norm(self.w, dual, axis=1)
            rise, fall = np.minimum(rise, most), np.minimum(fall, most)
        return self.at - fall, self.at + rise


def _radius(question: _Question, free: NDArray[np.bool_], p: float, upper: float) -> float:
    if (question.v @ np.maximum(question.at, 0) + question.c > 0).any():
        return 0.0
    if not free.any():
        return math.inf
    question, best, known = question.restricted(free), math.inf, upper
    if p == 2 and math.isinf(known):
        largest = min(_program(question, other, math.inf, known) for other in range(len(question.c)))
        if math.isinf(largest):
            return math.inf
        known = largest * math.sqrt(len(question.low))
    for other in range(len(question.c)):
        solve = _branch if p == 2 else _program
        best = min(best, solve(question, other, p, min(best, known * _SLACK)))
    return min(best, upper)


def _program(question: _Question, other: int, p: float, upper: float) -> float:
    """Return the radius towards one class: a mixed-integer program; ``inf`` beyond ``upper``."""
    hidden, n = question.w.shape
    low, high = question.reach(p, upper)
    # Variables: rises and falls of each coordinate, outputs and states of hidden units, the largest move.
    eye, none = sparse.eye(hidden), sparse.csr_matrix((hidden, hidden))
    w = sparse.csr_matrix(question.w)
    column = sparse.csr_matrix((hidden, 1))
    parts = [
        LinearConstraint(sparse.hstack([w, -w, -eye, none, column]), -np.inf, -question.at),
        LinearConstraint(
            sparse.hstack([w, -w, -eye, sparse.diags(np.minimum(low, 0)), column]), np.minimum(low, 0) - question.at
        ),
        LinearConstraint(sparse.hstack([0 * w, 0 * w, eye, -sparse.diags(np.maximum(high, 0)), column]), -np.inf, 0),
        LinearConstraint(
            np.concatenate([np.zeros(2 * n), question.v[other], np.zeros(hidden + 1)]), -question.c[other]
        ),
    ]
    cost = np.zeros(2 * n + 2 * hidden + 1)
    if math.isinf(p):
        cost[-1] = 1
        moves = sparse.hstack([sparse.eye(n), sparse.eye(n), sparse.csr_matrix((n, 2 * hidden)), -np.ones((n, 1))])
        parts.append(LinearConstraint(moves, -np.inf, 0))
    else:
        cost[: 2 * n] = 1
    lowest = np.concatenate([np.zeros(2 * n + hidden), (low > 0), [0]])
    highest = np.concatenate([question.high, -question.low, np.full(hidden, np.inf), (high >= 0), [min(upper, np.inf)]])
    integral = np.concatenate([np.zeros(2 * n + hidden), np.ones(hidden), [0]])
    found = milp(
        cost,
        constraints=parts,
        integrality=integral,
        bounds=Bounds(lowest, highest),
        options={"mip_rel_gap": 1e-6},
    )
    if found.status == 2:
        return math.inf
    assert found.status == 0, found.message
    return float(found.fun)


def _branch(question: _Question, other: int, p: float, upper: float) -> float:
    """Return the L2 radius towards one class by branch and bound; ``inf`` beyond ``upper``."""
    low, high = question.reach(p, upper)
    best = upper
    found = math.inf
    open_: list[tuple[float, dict[int, bool]]] = [(0.0, {})]
    while open_:
        bound, fixed = open_.pop()
        if bound >= best:
            continue
        move = _relaxed(question, other, fixed, low, high)
        if move is None or (length := float(np.linalg.norm(move))) >= best:
            continue
        received = question.at + question.w @ move
        if question.v[other] @ np.maximum(received, 0) + question.c[other] >= -1e-9:
            best = found = length
            continue
        # The unit whose linear bound is farthest from its output decides.
        gap = np.abs(question.v[other]) * np.where((low < 0) & (high > 0), np.maximum(high, 0) - received.clip(0), 0)
        gap[list(fixed)] = -1
        gap[(low >= 0) | (high <= 0)] = -1
        unit = int(gap.argmax())
        assert gap[unit] >= 0, "every unit is fixed, so the program was exact"
        likely = bool(received[unit] > 0)
        open_ += [(length, fixed | {unit: not likely}), (length, fixed | {unit: likely})]
    return found


def _relaxed(question: _Question, other: int, fixed: dict[int, bool], low: Array, high: Array) -> Array | None:
    """Return the shortest move whose bound on the change of logits is not negative; None if there is none."""
    v, slope, constant = question.v[other], np.zeros(len(low)), np.zeros(len(low))
    for unit in range(len(low)):
        active = fixed.get(unit, True if low[unit] >= 0 else False if high[unit] <= 0 else None)
        if active is not None:
            slope[unit] = float(active)
        elif v[unit] > 0:  # below the line from (low, 0) to (high, high)
            slope[unit] = high[unit] / (high[unit] - low[unit])
            constant[unit] = -slope[unit] * low[unit]
        else:  # above 0 and above what the unit receives
            slope[unit] = float(high[unit] > -low[unit])
    rows = [(v * slope) @ question.w]
    goals = [-(question.c[other] + v @ (slope * question.at + constant))]
    for unit, active in fixed.items():
        sign = 1 if active else -1
        rows.append(sign * question.w[unit])
        goals.append(-sign * question.at[unit])
    eye = np.eye(len(question.low))
    return _shortest(np.vstack([*rows, eye, -eye]), np.concatenate([goals, question.low, -question.high]))


def _shortest(rows: Array, goals: Array) -> Array | None:
    """Return the shortest move with ``rows @ move >= goals`` (Lawson and Hanson's least-distance program)."""
    system = np.vstack([rows.T, goals])
    aim = np.zeros(len(system))
    aim[-1] = 1
    solution, _ = nnls(system, aim, maxiter=50 * system.shape[1])
    rest = system @ solution - aim
    if -rest[-1] < 1e-10:
        return None
    move: Array = -rest[:-1] / rest[-1]
    return move


if __name__ == "__main__":
    main()
