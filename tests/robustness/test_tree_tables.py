"""Exact radii of trees on tables with whole numbers, ordered and other categories, beside all rows there can be."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor
from xgboost import XGBClassifier

import holdfast as hf
from tree_models import both_sides

_JOBS, _GRADES = ["clerk", "nurse", "pilot", "smith"], ["low", "middle", "high"]


def _table(seed: int, rows: int = 80) -> dict[str, Any]:
    drawn = np.random.default_rng(seed)
    return {
        "age": drawn.integers(20, 27, rows).tolist(),
        "income": drawn.uniform(1, 4, rows).round(1).tolist(),
        "job": [_JOBS[one] for one in drawn.integers(0, 4, rows)],
        "grade": [_GRADES[one] for one in drawn.integers(0, 3, rows)],
    }


def _columns(table: dict[str, Any], **stated: Any) -> hf.Columns:
    return hf.Columns.read(
        table,
        kinds={"grade": "ordered"},
        categories={"grade": _GRADES, "job": _JOBS},
        scale={"age": 1.7, "income": 0.9, "grade": 1.3},
        **stated,
    )


def _model(columns: hf.Columns, table: dict[str, Any], seed: int, forest: bool) -> hf.TreeModel:
    drawn = np.random.default_rng(seed)
    matrix = columns.matrix(table)
    scores = matrix @ drawn.normal(size=matrix.shape[1]) + np.sin(3 * matrix[:, 0]) + drawn.normal(0, 0.2, len(matrix))
    y = (scores > np.median(scores)).astype(int)
    trees = RandomForestClassifier(5, max_depth=4, random_state=0)
    boosted = XGBClassifier(n_estimators=5, max_depth=3)
    fitted = (trees if forest else boosted).fit(matrix, y)
    return hf.trees(fitted, columns=columns, classes=["refused", "granted"])


def _all_rows(columns: hf.Columns, model: hf.TreeModel) -> Tensor:
    """Return every row of the table that differs for the model: incomes just on both sides of its thresholds."""
    ensemble = model.ensemble
    place = columns.slices["income"].start
    ends = [columns["income"].low, columns["income"].high]
    for threshold in np.unique(ensemble.threshold[ensemble.feature == place]):
        ends += both_sides(threshold)
    ends = [end for end in sorted(set(ends)) if columns["income"].low <= end <= columns["income"].high]
    ages = range(int(columns["age"].low), int(columns["age"].high) + 1)
    rows = list(itertools.product(ages, ends, _JOBS, _GRADES))
    age, income, job, grade = zip(*rows, strict=True)
    return columns.encode({"age": age, "income": income, "job": job, "grade": grade})


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), forest=st.booleans(), rising=st.booleans(), fixed=st.booleans())
def test_radii_are_those_of_all_rows(p: float, seed: int, forest: bool, rising: bool, fixed: bool) -> None:
    table = _table(seed)
    columns = _columns(table, rising=["age", "grade"] if rising else [], fixed=["job"] if fixed else [])
    model = _model(columns, table, seed, forest)
    cases = model.ask(columns.encode(table)[:3], features=columns.features())
    subsets = torch.rand(3, 3, cases.features.count, generator=torch.Generator().manual_seed(seed)) < 0.6
    subsets[:, 0] = True
    radii = hf.ExactTrees(p)(cases, subsets)
    every = _all_rows(columns, model)
    for b in range(3):
        x = cases.x[b]
        own = torch.cat([every, x[None].expand(len(every), -1).clone()])  # also incomes that stay as they are
        own[len(every) :, :] = every
        own[len(every) :, columns.slices["income"]] = x[columns.slices["income"]]
        allowed = columns.domain().contains(own, x.expand_as(own))
        scores = model(own)
        label = cases.label[b : b + 1]
        decided = scores.index_fill(1, label, -math.inf).amax(1) > scores[:, label[0]]  # a tie is no change
        for k in range(3):
            free = cases.features.expand(subsets[b, k : k + 1])[0]
            inside = ((own == x) | free).all(1) & allowed & decided
            lengths = torch.linalg.vector_norm(own[inside] - x, p, dim=1)
            expected = float(lengths.min()) if len(lengths) else math.inf
            assert float(radii.radius[b, k]) == pytest.approx(expected, rel=1e-6, abs=1e-6)
            assert bool(radii.proven[b, k])
            if math.isfinite(expected):
                witness = radii.witness[b, k]
                assert columns.domain().contains(witness[None], x[None]).all()
                assert columns.changes(x, witness)


def test_a_row_of_a_table_is_explained_and_read_aloud() -> None:
    table = _table(1)
    columns = _columns(table, fixed=["grade"], units={"income": "€"})
    model = _model(columns, table, 1, False)
    cases = model.ask(columns.encode(table)[:1], features=columns.features())
    ranking = hf.Greedy(budget=3, step=1)(cases)
    radii = hf.Judge()(cases, torch.ones(1, 1, 3, dtype=torch.bool))
    assert sorted(columns.moving[feature] for feature in ranking.order[0].tolist()) == ["age", "income", "job"]
    assert any("ExactTrees" in note for note in radii.notes)
    changes = columns.changes(cases.x, radii.witness[0])
    assert " if " in columns.sentence(changes, model.classes[0], model.classes[1], bool(radii.proven.all()))


def test_bad_tables_are_refused_in_one_sentence() -> None:
    table = _table(0)
    columns = _columns(table)
    model = _model(columns, table, 0, False)
    x = columns.encode(table)[:1].clone()
    x[0, 0] += 0.3
    with pytest.raises(hf.HoldfastError, match=r"^x is no row of the table, first in case 0"):
        model.ask(x.clamp(*columns.bounds()))
    with pytest.raises(hf.HoldfastError, match="columns state the bounds and the scale"):
        hf.trees(XGBClassifier(n_estimators=1).fit(columns.matrix(table), [0, 1] * 40), bounds=(0, 1), columns=columns)
    with pytest.raises(hf.HoldfastError, match=r"trained on 1 columns, and columns.matrix gives 7"):
        hf.trees(XGBClassifier(n_estimators=1).fit([[0.0], [1.0]] * 40, [0, 1] * 40), columns=columns)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_a_search_from_decisions_stays_in_the_table(p: float) -> None:
    table = _table(5)
    columns = _columns(table, rising=["age"])
    exact_model = _model(columns, table, 5, True)
    matrix = columns.matrix(table)
    np.testing.assert_allclose(columns.unscaled(columns.encode(table)), matrix, rtol=1e-15)

    def predict(rows: Any) -> Any:
        return exact_model.ensemble.scores(rows).argmax(1)

    model = hf.FunctionModel(predict, classes=2, columns=columns)
    x = columns.encode(table)[:4]
    subsets = torch.ones(4, 1, 4, dtype=torch.bool)
    exact = hf.ExactTrees(p)(exact_model.ask(x, features=columns.features()), subsets)
    radii = hf.DecisionBased(p, queries=1000)(model.ask(x, features=columns.features()), subsets)
    assert columns.domain().contains(radii.witness[:, 0], x).all()
    assert (radii.radius >= exact.radius * (1 - 1e-6)).all()
    assert (radii.radius[exact.witnessed] <= 1.5 * exact.radius[exact.witnessed]).all()


def test_the_judge_takes_the_method_that_fits_a_table() -> None:
    table = _table(2)
    columns = _columns(table)
    matrix, y = columns.matrix(table), np.array([0, 1] * 40)
    x = columns.encode(table)[:1]
    logistic = hf.from_sklearn(LogisticRegression().fit(matrix, y), columns=columns)
    neighbours = hf.from_sklearn(KNeighborsClassifier(1).fit(matrix, y), columns=columns)
    trees = hf.from_sklearn(RandomForestClassifier(3, random_state=0).fit(matrix, y), columns=columns)
    used = {logistic: "DecisionBased", neighbours: "DecisionBased", trees: "ExactTrees"}
    for model, method in used.items():
        cases = model.ask(x, features=columns.features())
        radii = hf.Judge.quick()(cases, torch.ones(1, 1, 4, dtype=torch.bool))
        assert radii.method.startswith(method)
        assert bool((radii.lower <= radii.radius).all())
        if bool(radii.witnessed.all()):
            assert columns.domain().contains(radii.witness[:, 0], x).all()


@pytest.mark.parametrize("explainer", [hf.Greedy(budget=2, step=1), hf.GreedyAS(budget=2, step=1, samples=2)])
def test_greedy_methods_explain_rows_of_a_table(explainer: hf.Explainer) -> None:
    table = _table(3)
    columns = _columns(table)
    model = hf.from_sklearn(LogisticRegression().fit(columns.matrix(table), np.array([0, 1] * 40)), columns=columns)
    ranking = explainer(model.ask(columns.encode(table)[:1], features=columns.features()))
    assert sorted(ranking.order[0].tolist()) == [0, 1, 2, 3]
    assert any("this model has whole numbers or categories" in note for note in ranking.notes)
    assert ranking.method == repr(explainer)
