"""Classifiers that readers of trees refuse, each with one sentence that names the part and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import holdfast as hf
from holdfast.tree_ensembles import from_catboost
from tree_fits import SMALL, catboost_record
from tree_models import table

X, Y = table(classes=2)
BOTH = np.stack([Y, 1 - Y], 1)
FEW = {"n_estimators": 3, "max_depth": 2, "n_jobs": 1}
OTHER = r"expected a tree classifier of scikit-learn, XGBoost, LightGBM or CatBoost, or its file, got {}\."
FITTED = r"this {} is not fitted: call fit first\."


def _codes() -> Any:
    """Return a column whose categories tell the classes apart in no order."""
    pd = pytest.importorskip("pandas")
    codes = np.where(Y == 1, 2 * np.arange(len(Y)) % 8, (2 * np.arange(len(Y)) + 1) % 8)
    return pd.DataFrame({"job": pd.Categorical(codes), "age": X[:, 0]})


def _categories(**settings: Any) -> Any:
    chosen = {**FEW, "max_depth": 3, "enable_categorical": True, "max_cat_to_onehot": 1, **settings}
    return xgboost.XGBClassifier(**chosen).fit(_codes(), Y)


def _xgb(**settings: Any) -> Any:
    return xgboost.XGBClassifier(**{**FEW, **settings})


def _lgbm(**settings: Any) -> Any:
    return lightgbm.LGBMClassifier(**{**SMALL, **settings})


def _own(score: Any, labels: Any) -> Any:
    return 1 / (1 + np.exp(-labels)) - score, np.ones_like(labels)


def _begun(init: Any) -> Any:
    return GradientBoostingClassifier(init=init, n_estimators=2).fit(X, Y)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "regressor": (lambda: RandomForestRegressor(3).fit(X, Y), OTHER.format("RandomForestRegressor")),
    "tree regressor": (lambda: DecisionTreeRegressor().fit(X, Y), OTHER.format("DecisionTreeRegressor")),
    "xgboost regressor": (lambda: xgboost.XGBRegressor(**FEW).fit(X, Y), OTHER.format("XGBRegressor")),
    "lightgbm regressor": (lambda: lightgbm.LGBMRegressor(**SMALL).fit(X, Y), OTHER.format("LGBMRegressor")),
    "linear": (lambda: LogisticRegression().fit(X, Y), OTHER.format("LogisticRegression")),
    "number": (lambda: 3, OTHER.format("int")),
    "several outputs": (
        lambda: MultiOutputClassifier(DecisionTreeClassifier()).fit(X, BOTH),
        OTHER.format("MultiOutputClassifier"),
    ),
    "tree, not fitted": (DecisionTreeClassifier, FITTED.format("DecisionTreeClassifier")),
    "forest, not fitted": (RandomForestClassifier, FITTED.format("RandomForestClassifier")),
    "boosting, not fitted": (GradientBoostingClassifier, FITTED.format("GradientBoostingClassifier")),
    "histograms, not fitted": (HistGradientBoostingClassifier, FITTED.format("HistGradientBoostingClassifier")),
    "xgboost, not fitted": (xgboost.XGBClassifier, FITTED.format("XGBClassifier")),
    "lightgbm, not fitted": (lightgbm.LGBMClassifier, FITTED.format("LGBMClassifier")),
    "booster without trees": (
        lambda: xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, Y), 0),
        r"this model of XGBoost has no trees, or an empty one: fit it first\.",
    ),
    "several labels": (
        lambda: RandomForestClassifier(3).fit(X, BOTH),
        r"this RandomForestClassifier predicts several labels: expected one\.",
    ),
    "several labels of xgboost": (
        lambda: _xgb().fit(X, BOTH),
        r"this XGBoost model predicts several labels: expected a classifier of one label\.",
    ),
    "trees of several outputs": (
        lambda: _xgb(multi_strategy="multi_output_tree").fit(*table()),
        r"XGBoost's multi_strategy='multi_output_tree' is not supported: use one_output_per_tree\.",
    ),
    "one class": (
        lambda: DecisionTreeClassifier().fit(X, 0 * Y),
        r"this DecisionTreeClassifier was fitted on one class: expected at least two\.",
    ),
    "begun from a classifier": (
        lambda: _begun(LogisticRegression()),
        r"this GradientBoostingClassifier begins from a LogisticRegression, whose answer depends on the row: train it "
        r"with init=None or init='zero'\.",
    ),
    "begun from chance": (
        lambda: _begun(DummyClassifier(strategy="stratified")),
        r"this GradientBoostingClassifier begins from a DummyClassifier, whose answer .*",
    ),
    "categories of scikit-learn": (
        lambda: HistGradientBoostingClassifier(max_iter=3).fit(_codes(), Y),
        r"categorical splits of HistGradientBoostingClassifier are not supported: encode such columns as one-hot\.",
    ),
    "categories of xgboost": (
        _categories,
        r"categorical splits of XGBoost are not supported: encode such columns as one-hot\.",
    ),
    "categories as one-hot splits": (lambda: _categories(max_cat_to_onehot=99), r"categorical splits of XGBoost .*"),
    "categories of lightgbm": (
        lambda: _lgbm(min_data_per_group=1, cat_smooth=0).fit(_codes(), Y),
        r"categorical splits of LightGBM are not supported: encode such columns as one-hot\.",
    ),
    "dart": (
        lambda: _xgb(booster="dart").fit(X, Y),
        r"XGBoost's booster dart is not supported: train one with booster='gbtree'\.",
    ),
    "gblinear": (
        lambda: xgboost.XGBClassifier(booster="gblinear", n_estimators=3).fit(X, Y),
        r"XGBoost's booster gblinear is not supported: train one with booster='gbtree'\.",
    ),
    "raw": (
        lambda: _xgb(objective="binary:logitraw").fit(X, Y),
        r"XGBoost decides binary:logitraw at a score of 0\.5, and not at 0: train with objective='binary:logistic'\.",
    ),
    "hinge": (
        lambda: _xgb(objective="binary:hinge").fit(X, Y),
        r"this XGBoost model predicts binary:hinge: expected a classifier of one label\.",
    ),
    "a number for missing values": (
        lambda: _xgb(missing=0).fit(X, Y),
        r"this XGBClassifier takes 0 for a missing value, which is not supported: train it with missing=nan\.",
    ),
    "booster of numbers": (
        lambda: lightgbm.LGBMRegressor(**SMALL).fit(X, Y).booster_,
        r"this LightGBM model predicts regression: expected a classifier of one label\.",
    ),
    "own objective": (
        lambda: _lgbm(objective=_own).fit(X, Y),
        r"this LightGBM model was trained with a loss of its own, so its classes are not known: train with "
        r"objective='binary' or 'multiclass'\.",
    ),
    "linear trees": (
        lambda: _lgbm(linear_tree=True).fit(X, Y),
        r"linear trees of LightGBM are not supported: train with linear_tree=False\.",
    ),
    "zero as missing": (
        lambda: _lgbm(zero_as_missing=True).fit(X, Y),
        r"LightGBM's zero_as_missing is not supported: train with zero_as_missing=False\.",
    ),
    "components": (
        lambda: make_pipeline(PCA(2), DecisionTreeClassifier()).fit(X, Y),
        r"cannot fold the step PCA before trees: only StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler are "
        r"folded; apply it before and pass the classifier alone\.",
    ),
    "pipeline, not fitted": (
        lambda: make_pipeline(StandardScaler(), DecisionTreeClassifier()),
        FITTED.format("DecisionTreeClassifier"),
    ),
    "a fitted classifier after a new scaler": (
        lambda: make_pipeline(StandardScaler(), DecisionTreeClassifier().fit(X, Y)),
        r"the step StandardScaler is not fitted on the 3 columns of the trees: fit the pipeline\.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:Found.*unknown|Using.*objective")
def test_what_is_not_supported_is_refused_in_one_sentence(name: str) -> None:
    make, said = REFUSED[name]
    with pytest.raises(hf.HoldfastError, match=f"^{said}$"):
        hf.trees(make())


def _catboost(**changes: Any) -> Any:
    return catboost_record([[1.0, 2.0, 3.0, 4.0]], [0.0], "Logloss") | changes


ODD = [
    (_catboost(features_info={"categorical_features": [1]}), "categorical features of CatBoost are not supported"),
    (_catboost(model_info={"params": {"loss_function": {"type": "RMSE"}}}), "was trained with RMSE"),
    (_catboost(oblivious_trees=[]), "has no trees"),
    (_catboost(oblivious_trees=[{"splits": [{"split_type": "OneHotFeature"}], "leaf_values": [1]}]), "categorical"),
    ({name: part for name, part in _catboost().items() if name != "oblivious_trees"}, "grow_policy='SymmetricTree'"),
    (catboost_record([[1.0, 2.0, 3.0]], [0.0], "Logloss"), "this is not a model of CatBoost, or it is damaged"),
    (catboost_record([[1.0, float("nan")]], [0.0], "Logloss"), "the value of a leaf is not finite"),
    (_catboost(scale_and_bias=[1, [float("inf")]]), "finite first score"),
    (_catboost(oblivious_trees=[{"splits": [{"split_type": "FloatFeature"}] * 90, "leaf_values": [1]}]), "damaged"),
]


@pytest.mark.parametrize(("record", "said"), ODD, ids=[said for _, said in ODD])
def test_odd_records_of_catboost_are_refused(record: Any, said: str) -> None:
    with pytest.raises(hf.HoldfastError, match=said):
        from_catboost.from_json(record)


def test_categories_of_catboost_are_refused() -> None:
    catboost = pytest.importorskip("catboost")
    frame = _codes().astype({"job": str})
    settings = {"iterations": 3, "verbose": 0, "cat_features": ["job"], "allow_writing_files": False}
    with pytest.raises(hf.HoldfastError, match=r"^categorical features of CatBoost are not supported: encode such"):
        hf.trees(catboost.CatBoostClassifier(**settings).fit(frame, Y))
    with pytest.raises(hf.HoldfastError, match=r"^this CatBoostClassifier is not fitted: call fit first\.$"):
        hf.trees(catboost.CatBoostClassifier())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(hf.HoldfastError, match=r"^cannot read the trees .*none\.json: No such file or directory\.$"):
        hf.trees(tmp_path / "none.json")
