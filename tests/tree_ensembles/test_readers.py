"""What readers of tree ensembles make of fitted classifiers, beside what the libraries themselves compute."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest
import torch
import xgboost
from sklearn.ensemble import GradientBoostingClassifier

import holdfast as hf
from holdfast.models.trees import TreeModel
from holdfast.tree_ensembles import from_catboost
from tree_fits import FITS, MORE, SMALL, TWO, Fit, catboost_record
from tree_models import Array, library_scores, rows_beside_thresholds, table

CHOICES = [(name, fit, classes) for name, fit in FITS.items() for classes in (2, 3)]
CHOICES += [(name, fit, 2) for name, fit in TWO.items()] + [(name, fit, 3) for name, fit in MORE.items()]


def _check(model: Any, made: TreeModel, columns: int = 3, decide: Any = None) -> None:
    """Compare scores, probabilities and decisions with those of the library."""
    drawn = np.random.default_rng(1)
    wide = drawn.normal(0.5, 1, (200, columns))
    beside = rows_beside_thresholds(made.ensemble, wide)
    for rows in (wide, beside):
        ours = made(torch.from_numpy(rows))
        expected = library_scores(model, rows)
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-5, atol=1e-5)
        probabilities = made.probabilities(ours).numpy()
        np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=1e-5, atol=1e-6)
        decided = np.asarray(model.classes_)[ours.argmax(1).numpy()]
        assert (decided == np.ravel(model.predict(rows))).all()


@pytest.mark.parametrize(("name", "fit", "classes"), CHOICES, ids=[f"{name}-{count}" for name, _, count in CHOICES])
def test_scores_probabilities_and_decisions_are_those_of_the_library(name: str, fit: Fit, classes: int) -> None:
    model = fit(*table(classes=classes))
    _check(model, hf.trees(model))


@pytest.mark.parametrize("name", ["tree", "forest", "histograms", "xgboost", "lightgbm", "extra trees"])
def test_classifiers_that_saw_missing_values_are_read(name: str) -> None:
    x, y = table(classes=2)
    x[y == 1, 0] = np.nan  # nothing but missing values tells the classes apart
    x[:30, 1], x[30:60, 2] = 0.0, np.nan
    x[60:80] *= -1
    model = FITS[name](x, y)
    made = hf.trees(model)
    assert np.isfinite(made.ensemble.threshold).all()
    _check(model, made)
    near_zero = np.zeros((9, 3)) + np.array([-1, -1e-34, -1e-35, -1e-36, 0, 1e-36, 1e-35, 1e-34, 1])[:, None]
    assert (made(torch.from_numpy(near_zero)).argmax(1).numpy() == model.predict(near_zero)).all()
    radii = hf.ExactTrees()(hf.trees(model, bounds=(-9, 9)).ask(_two_rows()), torch.ones(2, 1, 3, dtype=torch.bool))
    assert (radii.proven | radii.unreachable).all()


def _two_rows() -> Array:
    return np.random.default_rng(3).normal(size=(2, 3))


def test_a_tie_is_decided_as_the_library_decides_it() -> None:
    x, y = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]]), np.array([0, 1, 1, 1, 1])
    model = GradientBoostingClassifier(init="zero", n_estimators=3, max_depth=1).fit(x, y)
    assert model.decision_function(x)[0] == 0
    assert (hf.trees(model)(torch.from_numpy(x)).argmax(1).numpy() == model.predict(x)).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_boosters_are_read_as_they_predict(classes: int) -> None:
    x, y = table(classes=classes)
    settings: dict[str, Any] = {"objective": "binary:logistic"}
    settings |= {"objective": "multi:softprob", "num_class": 3} if classes == 3 else {}
    data, other = xgboost.DMatrix(x[:80], y[:80]), xgboost.DMatrix(x[80:], y[80:])
    settings |= {"max_depth": 4, "eta": 1.0, "nthread": 1}
    stopping: dict[str, Any] = {"evals": [(other, "other")], "early_stopping_rounds": 2, "verbose_eval": False}
    booster = xgboost.train(settings, data, 60, **stopping)
    assert booster.best_iteration + 1 < booster.num_boosted_rounds()
    expected = booster.predict(xgboost.DMatrix(x), output_margin=True)
    ours = hf.trees(booster)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(ours if classes == 3 else ours[:, 1] - ours[:, 0], expected, atol=1e-5)
    model = lightgbm.LGBMClassifier(**SMALL).fit(x, y)
    ours = hf.trees(model.booster_)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(ours, library_scores(model, x), atol=1e-9)


@pytest.mark.parametrize("name", ["forest", "histograms", "gradient boosting", "xgboost", "lightgbm"])
def test_names_of_columns_and_classes_are_kept(name: str) -> None:
    x, y = table(classes=2)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(x, columns=["age", "hours", "gain"])
    labels = y if name == "xgboost" else np.array(["no", "yes"])[y]
    model = FITS[name](frame, labels)
    made = hf.trees(model)
    assert made.columns == ("age", "hours", "gain")
    assert made.classes == (("0", "1") if name == "xgboost" else ("no", "yes"))
    ours = made(torch.from_numpy(x))
    np.testing.assert_allclose(ours.numpy(), library_scores(model, frame), atol=1e-5)
    assert hf.trees(FITS[name](x, y)).columns == ()
    assert hf.trees(model, classes=["a", "b"]).classes == ("a", "b")
    with pytest.raises(hf.HoldfastError, match=r"^3 classes are named, and the model has 2\.$"):
        hf.trees(model, classes=["a", "b", "c"])


@pytest.mark.parametrize(("classes", "loss"), [(2, "Logloss"), (3, "MultiClass"), (3, "MultiClassOneVsAll")])
def test_catboost_is_read_as_it_predicts(classes: int, loss: str) -> None:
    catboost = pytest.importorskip("catboost")
    x, y = table(classes=classes)
    settings = {"iterations": 8, "depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(loss_function=loss, **settings).fit(x, y)
    made = hf.trees(model)
    _check(model, made)
    assert made.classes == tuple(map(str, range(classes)))


def test_a_record_of_catboost_has_the_scores_that_are_written_in_it() -> None:
    record = catboost_record([[1.0, 2.0, 3.0, 4.0]], [0.25], "Logloss")
    made = TreeModel(from_catboost.from_json(record))
    rows = torch.tensor([[0.5, 2.0], [0.6, 2.0], [0.5, 2.1], [0.6, 2.1]], dtype=torch.float64)
    assert made(rows)[:, 1].tolist() == [1.125, 2.125, 3.125, 4.125]
    assert made.columns == ("a", "b")
    several = catboost_record([[float(number) for number in range(12)]], [0.0, 1.0, 2.0], "MultiClass")
    assert TreeModel(from_catboost.from_json(several))(rows)[2].tolist() == [12.0, 15.0, 18.0]


@pytest.mark.parametrize("name", ["forest", "gradient boosting", "histograms", "xgboost", "lightgbm"])
def test_rows_with_missing_values_are_refused(name: str) -> None:
    x, y = table()
    x[1, 2] = np.nan
    made = hf.trees(FITS[name](np.nan_to_num(x), y))
    with pytest.raises(hf.HoldfastError, match=r"^x holds NaN or infinity, first in case 1\.$"):
        made.ask(x[:3])


def test_rows_beyond_single_precision_are_seen_as_infinite() -> None:
    made = hf.trees(FITS["forest"](*table()))
    far = torch.tensor([[1e300, -1e300, 1e39]], dtype=torch.float64)
    assert torch.equal(made(far), made(far.clamp(-1e9, 1e9)))
