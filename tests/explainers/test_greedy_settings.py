"""Settings of the Greedy family: what is taken, and what is refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import holdfast as hf
from toys import small_net

D = 8


def _cases(n: int = 2) -> hf.Cases:
    return hf.TorchModel(small_net(inputs=D), (0, 1)).ask(torch.rand(n, D, generator=torch.Generator().manual_seed(2)))


@pytest.mark.parametrize("budget", [0, 0.0, 1.2, -1])
def test_impossible_budgets_are_refused(budget: float) -> None:
    for kind in (hf.GreedyAS, hf.Greedy):
        with pytest.raises(hf.HoldfastError, match="budget"):
            kind(budget=budget)(_cases())


@pytest.mark.parametrize("kind", [hf.GreedyAS, hf.Greedy])
def test_a_budget_beyond_all_features_means_all(kind: Any) -> None:
    orders = [kind(hf.RobustnessRest(hf.MinNorm(steps=10)), budget=budget)(_cases()).order for budget in (D, 120)]
    assert torch.equal(*orders)


@pytest.mark.parametrize(
    "make",
    [
        lambda: hf.GreedyAS(samples=0),
        lambda: hf.GreedyAS(inclusion=1.0),
        lambda: hf.GreedyAS(step=0.0),
        lambda: hf.GreedyAS(step=1, shortlist=0),
        lambda: hf.GreedyAS(shortlist=2),  # step is a share
        lambda: hf.BoundaryNormals(steps=0),
        lambda: hf.BoundaryNormals(classes=0),
        lambda: hf.BoundaryNormals(soft=-1),
        lambda: hf.OneStepBanzhaf(samples=0),
        lambda: hf.GreedyAS(samples=2.5),  # type: ignore[arg-type]  # wrong on purpose
        lambda: hf.GreedyAS(hf.MinNorm()),  # type: ignore[arg-type]  # wrong on purpose
        lambda: hf.Greedy(hf.MinNorm()),  # type: ignore[arg-type]  # wrong on purpose
        lambda: hf.GreedyAS(estimator=hf.MinNorm),  # type: ignore[arg-type]  # wrong on purpose
        lambda: hf.GreedyAS(seed=None),  # type: ignore[arg-type]  # wrong on purpose
        lambda: hf.BoundaryNormals(steps=1.5),  # type: ignore[arg-type]  # wrong on purpose
        lambda: hf.Regression(censored="zero"),  # type: ignore[arg-type]  # wrong on purpose
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(hf.HoldfastError):
        make()


@pytest.mark.parametrize("kind", [hf.GreedyAS, hf.OneStepBanzhaf, hf.Greedy])
def test_an_objective_may_be_given_by_class_or_name(kind: Any) -> None:
    for objective in (hf.RobustnessRelevant, "robustness-relevant"):
        assert kind(objective) == kind(hf.RobustnessRelevant(hf.MinNorm(steps=20))), "not the judge, which is dear"
    with pytest.raises(hf.HoldfastError, match="expected a holdfast criterion, got MinNorm"):
        kind(hf.MinNorm())


@pytest.mark.parametrize("kind", [hf.GreedyAS, hf.OneStepBanzhaf])
def test_an_estimator_may_be_given_by_class_or_name(kind: Any) -> None:
    for estimator in (hf.Regression, "regression"):
        assert kind(estimator=estimator) == kind(estimator=hf.Regression())
    with pytest.raises(hf.HoldfastError, match="expected a holdfast estimator, got Insertion"):
        kind(estimator=hf.Insertion())


def test_a_regression_says_how_many_samples_it_needs() -> None:
    before = _cases()
    spent = before.model.queries
    with pytest.raises(hf.HoldfastError, match="needs at least 16 samples, got 15"):
        hf.GreedyAS(samples=15, estimator=hf.Regression())(before)
    with pytest.raises(hf.HoldfastError, match="needs at least 9 samples, got 8"):
        hf.GreedyAS(samples=8, estimator=hf.Regression(paired=False))(before)
    with pytest.raises(hf.HoldfastError, match="subsets that differ"):
        hf.GreedyAS(samples=50, inclusion=0.0, estimator=hf.Regression())(before)
    assert before.model.queries == spent, "nothing ran"


@pytest.mark.slow
def test_a_feature_that_changes_nothing_alone_is_not_chosen_first() -> None:
    def scores(rows: np.ndarray) -> np.ndarray:
        return np.stack([0.5 - rows[:, 1], rows[:, 1] - 0.5], 1)

    cases = hf.FunctionModel(scores, bounds=(0, 1)).ask(torch.zeros(3, 3))
    objective = hf.RobustnessRelevant(hf.Judge.quick())
    for samples in (1, 4):
        ranking = hf.GreedyAS(objective, budget=1, step=1, samples=samples)(cases)
        assert ranking.order[:, 0].tolist() == [1, 1, 1], "the radius of the others alone is infinite, not 0"
