"""Reads classifiers of XGBoost from what the library itself writes: JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, Tree, TreeEnsemble, below, joined, one_column

_BINARY = ("binary:logistic", "binary:logitraw")
_MULTI = ("multi:softprob", "multi:softmax")


def from_booster(booster: Any, best: int | None = None, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of an ``xgboost.Booster``.

    Args:
        booster: The booster.
        best: The number of rounds that predictions use; None: all.
        classes: Names of the classes.
    """
    return from_json(json.loads(booster.save_raw("json")), best, classes)


def from_json(record: Any, best: int | None = None, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a model of XGBoost.

    Args:
        record: The parsed JSON of the model.
        best: The number of rounds that predictions use; None: as many as the file says that early stopping chose, or
            all.
        classes: Names of the classes.

    Raises:
        HoldfastError: The model is not a classifier of trees, or has parts that are not supported.
    """
    try:
        return _read(record["learner"], best, classes)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise HoldfastError(f"this is not a model of XGBoost, or it is damaged ({type(error).__name__}).") from error


def _read(learner: Any, best: int | None, classes: tuple[str, ...]) -> TreeEnsemble:
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]
    if objective not in (*_BINARY, *_MULTI):
        raise HoldfastError(f"this XGBoost model predicts {objective}: expected a classifier of one label.")
    if booster["name"] != "gbtree":
        raise HoldfastError(f"XGBoost's booster {booster['name']} is not supported: train one with booster='gbtree'.")
    parameters, model = learner["learner_model_param"], booster["model"]
    columns, outputs = int(parameters["num_feature"]), max(1, int(parameters["num_class"]))
    if not model["trees"]:
        raise HoldfastError("this XGBoost model has no trees: fit it first.")
    chosen = learner.get("attributes", {}).get("best_iteration")
    best = int(chosen) + 1 if best is None and chosen is not None else best
    count = model["iteration_indptr"][best] if best else len(model["trees"])
    trees = [
        _tree(tree, 1 if outputs == 1 else int(column), max(2, outputs))
        for tree, column in zip(model["trees"][:count], model["tree_info"], strict=False)
    ]
    base = np.asarray(json.loads(parameters["base_score"]), np.float32).reshape(-1)
    base = np.broadcast_to(base, (outputs,))
    if objective in _BINARY:
        odds = np.float64(1 / base[0] - 1)  # a logarithm in double precision rounds as the library's does
        base = np.array([0, -np.log(odds) if objective == "binary:logistic" else base[0]], np.float32)
    names = tuple(learner.get("feature_names") or ())
    settings = {"sums": np.float32, "names": names, "classes": classes, "source": "XGBoost"}
    return joined(trees, base, columns, single=True, **settings)


def _tree(tree: Any, column: int, outputs: int) -> Tree:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise HoldfastError("XGBoost's multi_strategy='multi_output_tree' is not supported: use one_output_per_tree.")
    if any(tree.get("split_type", ())):
        raise HoldfastError("categorical splits of XGBoost are not supported: encode such columns as one-hot.")
    left, value = np.asarray(tree["left_children"]), np.asarray(tree["split_conditions"], np.float32)
    leaf = left == -1
    feature = np.where(leaf, LEAF, np.asarray(tree["split_indices"]))
    threshold = below(value)  # XGBoost goes left below the threshold, and not at it
    return Tree(feature, threshold, left, np.asarray(tree["right_children"]), one_column(value, column, outputs))
