"""Ways to fit tree classifiers of every library, and a record of CatBoost made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm
import xgboost
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from tree_models import Array

Fit = Callable[[Array, Any], Any]
FEW = {"n_estimators": 6, "max_depth": 3}
SMALL = {**FEW, "min_child_samples": 3, "verbose": -1, "num_threads": 1}
BAGS = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}


def _xgb(**settings: Any) -> Fit:
    return lambda x, y: xgboost.XGBClassifier(**{**FEW, "n_jobs": 1, **settings}).fit(x, y)


def _lgbm(**settings: Any) -> Fit:
    return lambda x, y: lightgbm.LGBMClassifier(**{**SMALL, **settings}).fit(x, y)


def _gradient(**settings: Any) -> Fit:
    return lambda x, y: GradientBoostingClassifier(**{**FEW, "random_state": 0, **settings}).fit(x, y)


def _xgb_stopped(x: Array, y: Any) -> Any:
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=4, n_jobs=1, early_stopping_rounds=2, learning_rate=1.0)
    model.fit(x[:80], y[:80], eval_set=[(x[80:], y[80:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    return model


def _lgbm_stopped(x: Array, y: Any) -> Any:
    model = lightgbm.LGBMClassifier(**{**SMALL, "n_estimators": 60, "learning_rate": 1.0})
    model.fit(x[:80], y[:80], eval_X=x[50:], eval_y=y[50:], callbacks=[lightgbm.early_stopping(2, verbose=False)])
    assert 1 < model.best_iteration_ < 60
    return model


FITS: dict[str, Fit] = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0).fit,
    "tree of classes by weight": DecisionTreeClassifier(max_depth=4, class_weight="balanced", random_state=0).fit,
    "forest": RandomForestClassifier(7, max_depth=4, random_state=0).fit,
    "extra trees": ExtraTreesClassifier(7, max_depth=4, random_state=0).fit,
    "gradient boosting": _gradient(),
    "gradient boosting from zero": _gradient(init="zero"),
    "gradient boosting from a constant": _gradient(init=DummyClassifier(strategy="uniform")),
    "histograms": HistGradientBoostingClassifier(max_iter=6, max_depth=3, min_samples_leaf=3).fit,
    "histograms stopped": HistGradientBoostingClassifier(max_iter=40, min_samples_leaf=3, early_stopping=True).fit,
    "xgboost": _xgb(),
    "xgboost exact": _xgb(tree_method="exact"),
    "xgboost approx": _xgb(tree_method="approx"),
    "xgboost with parallel trees": _xgb(num_parallel_tree=3, subsample=0.6),
    "xgboost with pruned nodes": _xgb(tree_method="exact", max_depth=5, gamma=2),
    "xgboost with a base score": _xgb(base_score=0.3),
    "xgboost of whole leaves": _xgb(max_leaves=4, grow_policy="lossguide"),
    "xgboost forest": lambda x, y: xgboost.XGBRFClassifier(**FEW, n_jobs=1).fit(x, y),
    "xgboost stopped": _xgb_stopped,
    "lightgbm": _lgbm(),
    "lightgbm forest": _lgbm(**BAGS),
    "lightgbm stopped": _lgbm_stopped,
    "lightgbm of one leaf": _lgbm(min_child_samples=1000),
    "lightgbm of extra trees": _lgbm(extra_trees=True),
    "lightgbm without missing values": _lgbm(use_missing=False),
}
TWO: dict[str, Fit] = {
    "gradient boosting, exponential": _gradient(loss="exponential"),
    "lightgbm with a slope": _lgbm(sigmoid=2.5),
    "lightgbm by weight": _lgbm(is_unbalance=True),
}
MORE: dict[str, Fit] = {
    "xgboost softmax": _xgb(objective="multi:softmax"),
    "lightgbm one against the rest": _lgbm(objective="multiclassova"),
}

# x[0] > 0.5 is bit 0 of the number of a leaf, x[1] > 2 is bit 1.
SPLITS = [
    {"split_type": "FloatFeature", "float_feature_index": 0, "border": 0.5},
    {"split_type": "FloatFeature", "float_feature_index": 1, "border": 2.0},
]
COLUMNS = [{"flat_feature_index": 0, "feature_id": "a"}, {"flat_feature_index": 1, "feature_id": "b"}]


def catboost_record(leaves: list[list[float]], bias: list[float], loss: str) -> dict[str, Any]:
    return {
        "model_info": {"params": {"loss_function": {"type": loss}}},
        "features_info": {"float_features": COLUMNS},
        "oblivious_trees": [{"splits": SPLITS[: len(some).bit_length() - 1], "leaf_values": some} for some in leaves],
        "scale_and_bias": [2, bias],
    }
