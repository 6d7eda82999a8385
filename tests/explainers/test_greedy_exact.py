"""Greedy on exact radii measures few subsets, and chooses what measuring every subset chooses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import holdfast as hf
from holdfast.criteria.criterion import Leading
from holdfast.robustness.brackets import Brackets
from tree_models import KINDS, fitted, table

CLOSE = 1e-6  # relative difference of two radii that are one


def _cases(kind: str, columns: int, seed: int, count: int = 2) -> hf.Cases:
    x, _ = table(columns=columns, seed=seed)
    return hf.trees(fitted(kind, columns, seed=seed), bounds=(0, 1)).ask(x[:count])


def _every_value(cases: hf.Cases, objective: hf.RobustnessRest, chosen: Tensor) -> Tensor:
    """Measure each feature beside those chosen ``[B, d]``, without what other subsets say: ``[B, d]``."""
    d = chosen.shape[1]
    tried = chosen[:, None] | torch.eye(d, dtype=torch.bool)
    every = [objective(cases, tried[:, feature : feature + 1]) for feature in range(d)]
    return torch.cat(every, 1).masked_fill(chosen, -math.inf)


def _best_in_order(values: Tensor, order: list[int]) -> bool:
    """Return whether no feature has a larger value than one before it, and equal ones are in the order of numbers."""
    for place, feature in enumerate(order):
        for later in order[place + 1 :]:
            own, other = float(values[feature]), float(values[later])
            if other > own * (1 + CLOSE) or (other == own and later < feature):
                return False
    return True


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@settings(max_examples=12, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    columns=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    budget=st.integers(1, 6),
    step=st.integers(1, 3),
)
def test_greedy_chooses_what_measuring_every_feature_chooses(
    p: float, kind: str, columns: int, seed: int, budget: int, step: int
) -> None:
    cases = _cases(kind, columns, seed)
    objective = hf.RobustnessRest(hf.ExactTrees(p))
    budget = min(budget, columns)
    ranking = hf.Greedy(objective, budget, step)(cases)
    for case in range(len(cases)):
        order, chosen = ranking.order[case].tolist(), torch.zeros(1, columns, dtype=torch.bool)
        for taken in range(0, budget, step):
            values = _every_value(cases[case], objective, chosen)[0]
            joins, last = min(step, budget - taken), taken + step >= budget
            rest = order[taken:] if last else order[taken : taken + joins]
            assert _best_in_order(values, rest)
            least = min(float(values[feature]) for feature in order[taken : taken + joins])
            left = [float(values[feature]) for feature in order[taken + joins :]]
            assert all(value <= least * (1 + CLOSE) for value in left)
            chosen[0, order[taken : taken + joins]] = True


class _Plain(hf.RobustnessRest):
    """The criterion without bounds that subsets learn from each other: it measures what the nearest change moves."""

    def leading(self, cases: hf.Cases, relevant: Tensor, candidates: Tensor, wanted: Tensor, state: Any) -> Leading:
        return super(hf.RobustnessRest, self).leading(cases, relevant, candidates, wanted, state)


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "histograms"])
def test_the_order_is_that_of_plain_greedy_with_fewer_solves(kind: str) -> None:
    cases = _cases(kind, 8, 3, 4)
    solves = []
    orders = []
    for objective in (_Plain(hf.ExactTrees()), hf.RobustnessRest(hf.ExactTrees())):
        before = cases.model.queries
        orders.append(hf.Greedy(objective, 5, 1)(cases).order)
        solves.append((cases.model.queries - before).forward)
    assert torch.equal(*orders)
    assert solves[1] < 0.8 * solves[0]


def test_the_other_cases_of_a_batch_change_nothing() -> None:
    cases = _cases("xgboost", 6, 5, 4)
    explainer = hf.Greedy(hf.RobustnessRest(hf.ExactTrees()), 4, 1)
    together = explainer(cases).order
    assert all(torch.equal(explainer(cases[case]).order[0], together[case]) for case in range(4))


def test_a_method_that_ignores_tolerances_is_asked_once_for_each_subset() -> None:
    x, y = table(rows=60, columns=5, classes=2)
    cases = hf.neighbours(x, y, k=1, bounds=(0, 1)).ask(torch.from_numpy(x[:3] * 0.9))
    objective = hf.RobustnessRest(hf.ExactNeighbours())
    ranking = hf.Greedy(objective, 3, 1)(cases)
    assert torch.equal(ranking.order, hf.Greedy(_Plain(hf.ExactNeighbours()), 3, 1)(cases).order)


def test_features_of_several_columns_are_held_together() -> None:
    x, _ = table(columns=6, seed=2)
    model = hf.trees(fitted("boosting", 6, seed=2), bounds=(0, 1))
    cases = model.ask(x[:3], features=hf.Features.of(torch.tensor([0, 0, 1, 1, 2, 2])))
    plain, quick = (hf.Greedy(kind(hf.ExactTrees()), 2, 1)(cases).order for kind in (_Plain, hf.RobustnessRest))
    assert torch.equal(plain, quick)


@settings(max_examples=15, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 10**6))
def test_brackets_hold_the_radius_of_every_subset(kind: str, seed: int) -> None:
    """Whatever was measured, roughly or not: low <= radius <= high, and proven bounds are bounds."""
    columns = 5
    cases = _cases(kind, columns, seed, 1)
    method = hf.ExactTrees()
    drawn = torch.rand(8, columns, generator=torch.Generator().manual_seed(seed)) < 0.6
    brackets = Brackets(cases, method)
    for number, subset in enumerate(drawn):
        brackets.measure(torch.tensor([0]), subset[None], rough=number % 2 == 0)
    every = torch.tensor([[bool(number >> bit & 1) for bit in range(columns)] for number in range(2**columns)])
    radius = torch.stack([method.radius(cases, one[None, None])[0, 0] for one in every])
    bracket = brackets.of(0, every)
    assert bool((bracket.low <= radius * (1 + CLOSE)).all())
    assert bool((bracket.proven <= bracket.low).all())
    assert bool((radius <= bracket.high * (1 + CLOSE)).all())


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@settings(max_examples=12, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 10**6), tolerance=st.sampled_from([0.0, 0.05, 0.5]))
def test_what_a_caller_knows_does_not_change_a_radius(p: float, kind: str, seed: int, tolerance: float) -> None:
    """Lower bounds come from larger subsets, witnesses from smaller ones; some witnesses are none."""
    cases = _cases(kind, 4, seed, 3)
    large = torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(seed)) < 0.8
    small = large & (torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(seed + 1)) < 0.8)
    middle = small | (large & (torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(seed + 2)) < 0.5))
    method = hf.ExactTrees(p)
    lower, start = method(cases, large).lower, method(cases, small).witness.clone()
    start[0] = cases.x[0] + 0.01
    plain = method(cases, middle)
    told = method(cases, middle, start=start, lower=lower, tolerance=tolerance)
    assert bool((told.radius <= plain.radius * (1 + tolerance) * (1 + CLOSE)).all())
    assert bool((told.radius >= plain.radius * (1 - CLOSE)).all())
    assert bool((told.lower <= plain.radius * (1 + CLOSE)).all())
    assert bool((told.lower >= lower * (1 - CLOSE)).all())
    assert bool((told.radius <= told.lower * (1 + tolerance) * (1 + CLOSE)).all())
    assert tolerance > 0 or bool(told.proven.all())


def test_bounds_that_do_not_fit_are_refused() -> None:
    cases = _cases("tree", 3, 0)
    subsets = torch.ones(2, 1, 3, dtype=torch.bool)
    for wrong in (torch.zeros(2), torch.full((2, 1), -1.0), torch.full((2, 1), math.nan)):
        with pytest.raises(hf.HoldfastError, match=r"^lower must be bounds \(2, 1\) that are at least 0"):
            hf.ExactTrees()(cases, subsets, lower=wrong)


def test_a_start_that_leaves_the_domain_is_no_bound() -> None:
    """The start changes the decision, but whole numbers are allowed only."""
    x, _ = table(columns=3, seed=1)
    columns = hf.Columns((hf.Column("a"), hf.Column("b"), hf.Column("c", "integer")))
    x[:, 2] = x[:, 2].round()
    model = hf.trees(fitted("boosting", seed=1), columns=columns)
    cases = model.ask(torch.from_numpy(x[:4]))
    subsets = torch.ones(4, 1, 3, dtype=torch.bool)
    free = hf.trees(fitted("boosting", seed=1), bounds=(0, 1)).ask(torch.from_numpy(x[:4]))
    start = hf.ExactTrees()(free, subsets).witness
    plain, told = hf.ExactTrees()(cases, subsets), hf.ExactTrees()(cases, subsets, start=start)
    torch.testing.assert_close(plain.radius, told.radius)
    assert torch.equal(plain.proven, told.proven)
