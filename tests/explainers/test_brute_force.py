"""The brute-force optimum beside all orders, and other explainers beside the optimum."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch

import holdfast as hf
from holdfast.testing.subjects import inputs, network
from tree_models import fitted, table

OBJECTIVES = [hf.RobustnessRest(hf.ExactTrees()), hf.RobustnessRelevant(hf.ExactTrees()), hf.Insertion(), hf.Deletion()]


def _trees(kind: str = "forest", columns: int = 4, count: int = 3) -> hf.Cases:
    cases: hf.Cases = hf.trees(fitted(kind, columns), bounds=(0, 1)).ask(table(columns=columns)[0][:count])
    return cases


def _area(cases: hf.Cases, ranking: hf.Ranking, objective: hf.Criterion, most: int) -> torch.Tensor:
    area: torch.Tensor = hf.trace(cases, ranking, objective, range(1, most + 1)).auc()
    return area if objective.higher_is_better else -area


@pytest.mark.parametrize("budget", [2, 3])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.name)
def test_no_order_has_a_better_area(objective: hf.Criterion, budget: int) -> None:
    cases = _trees()
    best = _area(cases, hf.BruteForce(objective, budget)(cases), objective, budget)
    every = []
    for order in permutations(range(4)):
        scores = torch.tensor(order).argsort().neg().expand(len(cases), -1)
        every.append(_area(cases, hf.Ranking.by_score(cases, scores), objective, budget))
    torch.testing.assert_close(best, torch.stack(every).amax(0))


@pytest.mark.parametrize("objective", OBJECTIVES[:2], ids=lambda one: one.name)
def test_greedy_is_at_most_the_optimum(objective: hf.Criterion) -> None:
    cases = _trees(columns=6, count=6)
    best = _area(cases, hf.BruteForce(objective, 3)(cases), objective, 3)
    for other in (hf.Greedy(objective, 3, 1), hf.GreedyAS(objective, 3, 1), hf.Random()):
        assert bool((_area(cases, other(cases), objective, 3) <= best + 1e-9).all())


def test_one_feature_is_the_one_with_the_best_value() -> None:
    cases = hf.TorchModel(network(), (0, 1)).ask(inputs())
    objective = hf.RobustnessRest(hf.MinNorm(steps=10))
    values = objective(cases, torch.eye(12, dtype=torch.bool).expand(5, 12, 12))
    ranking = hf.BruteForce(objective, 1)(cases)
    assert torch.equal(ranking.order[:, 0], values.argmax(1))
    assert torch.equal(ranking.order, values.argsort(dim=1, descending=True, stable=True))


def test_models_without_gradients_are_measured_by_what_fits_them() -> None:
    ranking = hf.BruteForce(budget=2)(_trees())
    assert "BruteForce needs gradients" in ranking.notes[0]
    assert "Judge" in ranking.notes[0]


def test_too_many_subsets_are_refused_before_any_is_measured() -> None:
    cases = _trees()
    before = cases.model.queries
    with pytest.raises(hf.HoldfastError, match=r"^BruteForce measures every subset, and 4 features have 10 of up to 2"):
        hf.BruteForce(budget=2, most_subsets=9)(cases)
    assert cases.model.queries == before
    wide = hf.FunctionModel(lambda rows: rows[:, :2], (0, 1)).ask(inputs(1, 40))
    with pytest.raises(hf.HoldfastError, match="over most_subsets = 5,000: use Greedy, fewer features"):
        hf.BruteForce()(wide)
    assert hf.BruteForce(hf.Insertion(), budget=2).rows(4) == 10 * (hf.Insertion().rows or 0)


def test_what_cannot_change_is_said_with_its_proof() -> None:
    model = hf.trees(fitted("forest"), bounds=(0, 1))
    x = table()[0][:1]
    free = model.ask(x)
    radius = float(hf.ExactTrees()(free, torch.ones(1, 1, free.features.count, dtype=torch.bool)).radius)
    tight = hf.trees(fitted("forest"), bounds=(x[0] - radius / 100, x[0] + radius / 100)).ask(x)
    for explainer in (hf.BruteForce(budget=2), hf.Greedy(budget=2, step=1), hf.GreedyAS(budget=2, step=1)):
        with pytest.raises(
            hf.HoldfastError, match="it is proven that no change inside the bounds changes the decision of"
        ):
            explainer(tight)
