"""Explainers without gradients on trees of two classes and on tables."""

from __future__ import annotations

import pytest
import torch

import holdfast as hf
from tree_models import fitted, table

BOOSTED = ["boosting", "histograms", "xgboost", "lightgbm"]


def _cases(kind: str) -> tuple[hf.Cases, hf.TreeModel]:
    model = hf.trees(fitted(kind, columns=4, classes=2), bounds=(0, 1))
    return model.ask(table(columns=4, classes=2)[0][:6]), model


@pytest.mark.parametrize("kind", BOOSTED)
def test_the_score_of_either_class_tells_what_features_do_to_it(kind: str) -> None:
    cases, model = _cases(kind)
    assert set(cases.label.tolist()) == {0, 1}
    point = torch.full((4,), 0.5, dtype=torch.float64)
    values = hf.KernelShap(point).attribute(cases)
    own = model(cases.x).gather(1, cases.label[:, None])[:, 0]
    total = own - model(point[None])[0, cases.label]
    torch.testing.assert_close(values.sum(1), total)
    assert bool((values != 0).any(1).all()), "the score of the first class alone is always 0"
    without = hf.LeaveOneOut(point).attribute(cases)
    for feature in range(4):
        replaced = cases.x.clone()
        replaced[:, feature] = 0.5
        drop = own - model(replaced).gather(1, cases.label[:, None])[:, 0]
        torch.testing.assert_close(without[:, feature], drop)


@pytest.mark.parametrize("kind", BOOSTED)
def test_asking_about_the_other_class_gives_twice_the_score_and_the_same_order(kind: str) -> None:
    cases, model = _cases(kind)
    targeted = model.ask(cases.x, target=1 - cases.label)
    for explainer in (hf.KernelShap(0.5), hf.LeaveOneOut(0.5)):
        torch.testing.assert_close(explainer.attribute(targeted), 2 * explainer.attribute(cases))
        assert torch.equal(explainer(targeted).order, explainer(cases).order)


@pytest.mark.parametrize("kind", BOOSTED)
def test_every_explainer_without_gradients_ranks_them(kind: str) -> None:
    cases, _ = _cases(kind)
    rows = torch.from_numpy(table(columns=4, classes=2)[0][50:])
    for explainer in (hf.Anchor(rows), hf.Greedy(budget=2), hf.GreedyAS(budget=2), hf.OneStepBanzhaf(), hf.Random()):
        assert explainer(cases).order.sort(1).values.tolist() == [[0, 1, 2, 3]] * 6
