"""Exact radii of tree ensembles, beside a search of every cell by the library's own predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from torch import Tensor

import holdfast as hf
from holdfast.tree_ensembles.joined import Tree, joined
from tree_models import KINDS, brute_radius, fitted, table, tree_cases

NORMS = (1.0, 2.0, math.inf)


def _subsets(cases: hf.Cases, seed: int = 0, k: int = 3) -> Tensor:
    drawn = torch.rand(len(cases), k, cases.features.count, generator=torch.Generator().manual_seed(seed)) < 0.6
    drawn[:, 0] = True
    return drawn


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_radii_are_those_of_every_cell(kind: str, classes: int, p: float) -> None:
    model = fitted(kind, classes=classes)
    cases = hf.trees(model, bounds=(0, 1)).ask(table()[0][:4])
    subsets = _subsets(cases)
    radii = hf.ExactTrees(p)(cases, subsets)
    assert radii.proven.all()
    assert torch.equal(radii.lower, radii.radius)
    ensemble = hf.trees(model).ensemble
    expected = [
        [brute_radius(model, ensemble, cases.x[b].numpy(), subsets[b, k].numpy(), p) for k in range(3)]
        for b in range(4)
    ]
    np.testing.assert_allclose(radii.radius.numpy(), expected, rtol=1e-6, atol=1e-6)  # the grid of single precision


@pytest.mark.parametrize("p", NORMS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), columns=st.integers(1, 4), kind=st.sampled_from(sorted(KINDS)))
def test_targeted_radii_are_those_of_every_cell(p: float, seed: int, columns: int, kind: str) -> None:
    model = fitted(kind, columns, seed=seed)
    made = hf.trees(model, bounds=(0, 1))
    x = table(columns=columns, seed=seed)[0][:2]
    label = made(torch.from_numpy(x)).argmax(1)
    target = (label + 1) % len(made.classes)
    cases = made.ask(x, target=target)
    subsets = _subsets(cases, seed)
    radii = hf.ExactTrees(p)(cases, subsets)
    for b in range(2):
        for k in range(3):
            free = subsets[b, k].numpy()
            expected = brute_radius(model, made.ensemble, x[b], free, p, int(target[b]))
            assert float(radii.radius[b, k]) == pytest.approx(expected, rel=1e-6, abs=1e-6)
            assert bool(radii.proven[b, k])


def test_a_scale_changes_the_unit_of_radii_and_nothing_else() -> None:
    model, scale = fitted("xgboost"), np.array([0.1, 3.0, 1.7])
    x = table()[0][:4]
    made = hf.trees(model, bounds=(0 / scale, 1 / scale), scale=scale)
    cases = made.ask(x / scale)
    radii = hf.ExactTrees(2)(cases, torch.ones(4, 1, 3, dtype=torch.bool))
    expected = [brute_radius(model, made.ensemble, row, np.ones(3, bool), 2, scale=scale) for row in x]
    np.testing.assert_allclose(radii.radius[:, 0].numpy(), expected, rtol=1e-6, atol=1e-6)
    witness = radii.witness[:, 0].numpy() * scale
    assert (model.predict(witness) != model.predict(x)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_witnesses_change_what_the_library_predicts_and_points_inside_do_not(kind: str) -> None:
    model = fitted(kind)
    cases = hf.trees(model, bounds=(0, 1)).ask(table()[0][:5])
    for p in NORMS:
        radii = hf.ExactTrees(p)(cases, torch.ones(5, 1, 3, dtype=torch.bool))
        drawn = np.random.default_rng(0)
        for case in range(5):
            label = model.predict(cases.x[case : case + 1].numpy())
            assert model.predict(radii.witness[case].numpy()) != label
            noise = drawn.normal(size=(2000, 3))
            noise *= drawn.random((2000, 1)) ** (1 / 3) / np.linalg.norm(noise, p, axis=1, keepdims=True)
            inside = cases.x[case].numpy() + 0.999 * float(radii.radius[case, 0]) * noise
            assert (model.predict(inside.clip(0, 1)) == label).all()


def test_what_nothing_in_the_box_changes_is_proven_unreachable() -> None:
    x, y = table(classes=2)
    model = GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0).fit(x[:, :1], y)
    wide = np.concatenate([x[:, :1], np.zeros((len(x), 2))], 1)
    model = GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0).fit(wide, y)
    cases = hf.trees(model, bounds=(0, 1)).ask(wide[:3])
    only_unused = torch.tensor([False, True, True]).expand(3, 1, 3)
    radii = hf.ExactTrees()(cases, only_unused)
    assert radii.unreachable.all()
    assert torch.isinf(radii.lower).all()
    assert not radii.censored.any()


def test_a_limit_of_branches_leaves_an_honest_bracket() -> None:
    x, y = table(rows=400, columns=12, classes=2, seed=3)
    model = RandomForestClassifier(60, max_depth=6, random_state=0, n_jobs=1).fit(x, y)
    cases = hf.trees(model, bounds=(0, 1)).ask(x[:4])
    subsets = torch.ones(4, 1, 12, dtype=torch.bool)
    short, full = (hf.ExactTrees(2, nodes=nodes)(cases, subsets) for nodes in (1, 100_000))
    assert not short.proven.all()
    assert full.proven.all()
    assert (short.lower <= full.radius * (1 + 1e-6)).all()
    assert (short.radius >= full.radius * (1 - 1e-6)).all()
    assert any("not settled" in note for note in short.notes)


def test_the_answer_does_not_depend_on_threads() -> None:
    cases = tree_cases("forest", 6)
    subsets = _subsets(cases, k=4)
    one, two = (hf.ExactTrees(1, workers=workers)(cases, subsets) for workers in (1, 3))
    assert torch.equal(one.witness, two.witness)
    assert repr(hf.ExactTrees(1, workers=3)) == repr(hf.ExactTrees(1))


def test_progress_is_reported_before_the_end() -> None:
    cases = tree_cases("tree", 3)
    seen: list[tuple[int, int]] = []
    hf.ExactTrees()(cases, torch.ones(3, 40, 3, dtype=torch.bool), progress=lambda *at: seen.append(at))
    assert seen == [(64, 120), (120, 120)]


def test_other_models_are_refused_in_one_sentence() -> None:
    def scores(rows: Any) -> Any:
        return rows[:, :2]

    cases = hf.FunctionModel(scores).ask(torch.rand(1, 3))
    with pytest.raises(hf.HoldfastError, match=r"^ExactTrees needs a model made by hf\.trees, got a FunctionModel"):
        hf.ExactTrees()(cases, torch.ones(1, 1, 3, dtype=torch.bool))


def _stump(values: list[float], thresholds: tuple[float, float, float]) -> Tree:
    """Return a tree of one feature with a leaf in each of four intervals; class 0 has the score 0."""
    first, second, third = thresholds
    score = np.array([[0, value] for value in (0, values[0], 0, values[1], 0, *values[2:])])
    return Tree(
        [0, -1, 0, -1, 0, -1, -1],
        [first, 0, second, 0, third, 0, 0],
        [1, 0, 3, 0, 5, 0, 0],
        [2, 0, 4, 0, 6, 0, 0],
        score,
    )


def test_a_change_at_the_edge_of_the_last_ball_is_found() -> None:
    trees = [_stump([0, 0, 0, 0.6], ends) for ends in ((0.5, 1.5, 2.5), (0.25, 0.5, 2.5))]
    model = hf.TreeModel(joined(trees, [1, 0], 1, single=False), bounds=(0, 3))
    radii = hf.ExactTrees()(model.ask(torch.zeros(1, 1).double()), torch.ones(1, 1, 1, dtype=torch.bool))
    assert float(radii.radius) == pytest.approx(2.5)
    assert bool(radii.proven)


def test_a_change_by_a_small_margin_behind_a_tie_is_no_proof_of_a_larger_radius() -> None:
    ensemble = joined([_stump([-1, 0, 1e-6, 1], (0.5, 1.5, 2.5))], [0, 0], 1, single=False)
    model = hf.TreeModel(ensemble, bounds=(0, 3))
    radii = hf.ExactTrees()(model.ask(torch.zeros(1, 1).double()), torch.ones(1, 1, 1, dtype=torch.bool))
    assert float(radii.radius) == pytest.approx(1.5)
    assert bool(radii.proven)


def test_removing_features_changes_the_score_of_both_classes() -> None:
    model = hf.trees(fitted("xgboost", classes=2), bounds=(0, 1))
    cases = model.ask(table(classes=2)[0][:20])
    values = hf.LeaveOneOut(reference=0.5).attribute(cases)
    for label in (0, 1):
        assert bool((values[cases.label == label] != 0).any(1).float().mean() > 0.8)


def test_more_ties_than_are_left_out_end_in_an_honest_bracket() -> None:
    same = [_stump([0, 0, 0, 0], (0.2 * step + 0.1, 0.2 * step + 0.2, 9.0)) for step in range(12)]
    uneven = _stump([0, 0, 0, 0.0317], (0.1, 0.2, 9.0))  # so that a tie is not known from the numbers in the leaves
    trees = [_stump([-1, 0, 1, 1], (0.05, 2.6, 8.0)), uneven, *same]
    model = hf.TreeModel(joined(trees, [0, 0], 1, single=False), bounds=(0, 10))
    radii = hf.ExactTrees()(model.ask(torch.zeros(1, 1).double()), torch.ones(1, 1, 1, dtype=torch.bool))
    assert float(radii.radius) == pytest.approx(2.6)
    assert 0.05 <= float(radii.lower) <= 2.6
    assert not bool(radii.proven)
