"""Pipelines of scalers before trees: decisions are those of the pipeline, also beside thresholds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import holdfast as hf
from tree_models import KINDS, both_sides, library_scores, rows_beside_thresholds, table

SCALERS: dict[str, list[Any]] = {
    "standard": [StandardScaler()],
    "standard, no mean": [StandardScaler(with_mean=False)],
    "standard, no scale": [StandardScaler(with_std=False)],
    "range": [MinMaxScaler((-1, 2))],
    "range, cut": [MinMaxScaler(clip=True)],
    "robust": [RobustScaler()],
    "robust, centre only": [RobustScaler(with_scaling=False)],
    "largest": [MaxAbsScaler()],
    "several": [StandardScaler(), "passthrough", MinMaxScaler()],
    "nested": [make_pipeline(RobustScaler(), MaxAbsScaler())],
}


def _fitted(steps: list[Any], kind: str) -> Any:
    x, y = table(rows=90)
    x = x * np.array([1e-3, 1.0, 1e4]) + np.array([0.0, 100.0, -3e3])
    named = [(str(number), step if isinstance(step, str) else clone(step)) for number, step in enumerate(steps)]
    return Pipeline([*named, ("trees", KINDS[kind]())]).fit(x, y), x


@pytest.mark.parametrize("kind", ["forest", "boosting", "histograms", "xgboost", "lightgbm"])
@pytest.mark.parametrize("name", SCALERS)
def test_decisions_are_those_of_the_pipeline(name: str, kind: str) -> None:
    model, x = _fitted(SCALERS[name], kind)
    made = hf.trees(model)
    rows = np.concatenate([x, x + np.random.default_rng(0).normal(0, x.std(0), x.shape), _far(x)])
    for some in (rows, rows_beside_thresholds(made.ensemble, rows)):
        ours = made(torch.from_numpy(some))
        assert (ours.argmax(1).numpy() == np.ravel(model.predict(some))).all()
        np.testing.assert_allclose(made.probabilities(ours).numpy(), model.predict_proba(some), rtol=1e-5, atol=1e-6)


def _far(x: Any) -> Any:
    return np.where(np.random.default_rng(1).random(x.shape) < 0.3, 1e30, x)


def test_scores_change_at_the_threshold_and_nowhere_beside_it() -> None:
    model, x = _fitted(SCALERS["standard"], "tree")
    made = hf.trees(model)
    root = int(made.ensemble.roots[0])
    column, threshold = int(made.ensemble.feature[root]), made.ensemble.threshold[root]
    last = model.steps[-1][1]
    for value, left in ((threshold, True), (np.nextafter(threshold, math.inf), False)):
        row = x[:1].copy()
        row[0, column] = value
        scaled = model.steps[0][1].transform(row)
        assert (np.float32(scaled[0, column]) <= last.tree_.threshold[0]) == left
    assert threshold not in both_sides(float(threshold))  # found in double precision


def test_radii_are_in_the_units_of_the_pipelines_input() -> None:
    model, x = _fitted(SCALERS["standard"], "forest")
    cases = hf.trees(model, bounds=(-1e5, 1e5)).ask(x[:4])
    radii = hf.ExactTrees()(cases, torch.ones(4, 1, 3, dtype=torch.bool))
    assert radii.proven.all()
    assert (model.predict(radii.witness[:, 0].numpy()) != model.predict(x[:4])).all()
    assert torch.equal(hf.from_sklearn(model, bounds=(-1e5, 1e5))(cases.x), cases.model(cases.x))


def test_names_of_columns_are_those_of_the_pipelines_input() -> None:
    x, y = table()
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler(), KINDS["forest"]()).fit(frame, y)
    made = hf.trees(model)
    assert made.columns == ("a", "b", "c") == hf.from_sklearn(model).columns
    assert made.classes == ("0", "1", "2")
    np.testing.assert_allclose(made(torch.from_numpy(x)), library_scores(model, frame), atol=1e-12)


def test_trees_without_a_split_are_folded() -> None:
    x, y = table()
    model = make_pipeline(StandardScaler(), KINDS["lightgbm"]().set_params(min_child_samples=1000)).fit(x, y)
    ours = hf.trees(model)(torch.from_numpy(x))
    np.testing.assert_allclose(ours.softmax(1), model.predict_proba(x), atol=1e-9)
