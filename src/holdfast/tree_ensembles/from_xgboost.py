"""Reads classifiers of XGBoost from what the library itself writes: JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, Floats, TreeEnsemble
from holdfast.tree_ensembles.joined import Tree, joined
from holdfast.tree_ensembles.parsing import reading_model, reals, wholes

_BINARY, _RAW = "binary:logistic", "binary:logitraw"
_MULTI = ("multi:softprob", "multi:softmax")
_DELETED = 2**31 - 1  # the feature of a node that was cut off after training


def from_booster(booster: Any, best: int | None = None, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of an ``xgboost.Booster``.

    Args:
        booster: The booster.
        best: The number of rounds that predictions use; None: all.
        classes: Names of the classes.
    """
    return _checked(json.loads(booster.save_raw("json")), best, classes)


def from_classifier(model: Any) -> TreeEnsemble:
    """Return the trees of a fitted ``xgboost.XGBClassifier``.

    Args:
        model: The classifier. After early stopping, its predictions use the rounds up to the best one.

    Raises:
        HoldfastError: A number stands for missing values.
    """
    if model.missing is not None and not np.isnan(model.missing):
        raise HoldfastError(
            f"this XGBClassifier takes {model.missing:g} for a missing value, which is not supported: "
            "train it with missing=nan."
        )
    booster = model.get_booster()
    chosen = booster.attr("best_iteration")
    best = None if chosen is None else int(chosen) + 1
    return from_booster(booster, best, tuple(map(str, model.classes_)))


def from_json(record: Any, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a model of XGBoost.

    A file that an ``XGBClassifier`` saved is read as that class predicts: after early stopping, with the rounds up to
    the best one. A file that a ``Booster`` saved is read with all rounds, which is what a ``Booster`` predicts with.

    Args:
        record: The parsed JSON of the model.
        classes: Names of the classes.

    Raises:
        HoldfastError: The model is not a classifier of trees, or has parts that are not supported.
    """
    with reading_model("XGBoost"):
        attributes = record["learner"].get("attributes", {})
        chosen = attributes.get("best_iteration") if "scikit_learn" in attributes else None
        best = None if chosen is None else int(chosen) + 1
    return _checked(record, best, classes)


def _checked(record: Any, best: int | None, classes: tuple[str, ...]) -> TreeEnsemble:
    with reading_model("XGBoost"):
        return _read(record["learner"], best, classes)


def _read(learner: Any, best: int | None, classes: tuple[str, ...]) -> TreeEnsemble:
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]
    if objective == _RAW:
        raise HoldfastError(
            f"XGBoost decides {_RAW} at a score of 0.5, and not at 0: train with objective='{_BINARY}'."
        )
    if objective not in (_BINARY, *_MULTI):
        raise HoldfastError(f"this XGBoost model predicts {objective}: expected a classifier of one label.")
    if booster["name"] != "gbtree":
        raise HoldfastError(f"XGBoost's booster {booster['name']} is not supported: train one with booster='gbtree'.")
    parameters, model = learner["learner_model_param"], booster["model"]
    if int(parameters.get("num_target", 1)) > 1:
        raise HoldfastError("this XGBoost model predicts several labels: expected a classifier of one label.")
    columns, outputs = int(parameters["num_feature"]), max(1, int(parameters["num_class"]))
    kept = _of_rounds(model, best, outputs)
    if outputs > max(1, len(kept)):  # before a claimed number takes memory
        raise HoldfastError(f"this XGBoost model has {outputs} classes and {len(kept)} trees: fit it first.")
    places = wholes(model["tree_info"])[: len(kept)]
    if len(places) != len(kept):
        raise ValueError("every tree adds to a class")
    trees = [_tree(tree, 1 if outputs == 1 else int(place)) for tree, place in zip(kept, places, strict=True)]
    base = _base(parameters["base_score"], objective, outputs)
    names = tuple(map(str, learner.get("feature_names") or ()))
    settings = {"sums": np.float32, "names": names, "classes": classes, "source": "XGBoost"}
    return joined(trees, base, columns, single=True, **settings)


def _of_rounds(model: Any, best: int | None, outputs: int) -> Any:
    """Return the trees of the first rounds."""
    if best is None:
        return model["trees"]
    ends = model.get("iteration_indptr")  # XGBoost before 2.0 writes none
    each = outputs * int(model["gbtree_model_param"].get("num_parallel_tree", 1))
    return model["trees"][: best * each if ends is None else int(wholes(ends)[best])]


def _base(given: Any, objective: str, outputs: int) -> Floats:
    """Return the scores before the first tree, ``[C]``, in single precision."""
    read = json.loads(given) if isinstance(given, str) else given
    base = np.broadcast_to(reals(read if isinstance(read, list | np.ndarray) else [read]).astype(np.float32), outputs)
    if objective != _BINARY:
        return base.astype(np.float64)
    odds = np.float64(1 / base[0] - 1)  # a logarithm in double precision rounds as the library's does
    return np.array([0, -np.log(odds)], np.float32).astype(np.float64)


def _tree(tree: Any, column: int) -> Tree:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise HoldfastError("XGBoost's multi_strategy='multi_output_tree' is not supported: use one_output_per_tree.")
    split = wholes(tree["split_indices"])
    left, right = wholes(tree["left_children"]), wholes(tree["right_children"])
    value = reals(tree["split_conditions"]).astype(np.float32)
    if not len(split) == len(left) == len(right) == len(value):
        raise ValueError("every node has a feature, two children and a number")
    cut = split == _DELETED
    if np.any(wholes(tree.get("split_type", ()))[: len(cut)]):
        raise HoldfastError("categorical splits of XGBoost are not supported: encode such columns as one-hot.")
    feature = np.where(left == -1, LEAF, split)
    # XGBoost goes left below the threshold, and not at it.
    threshold = np.where(np.isinf(value), value, np.nextafter(value, np.float32(-np.inf))).astype(np.float64)
    if cut.any():
        place = np.cumsum(~cut) - 1
        kept = left != -1
        left, right = (np.where(kept, place[np.where(kept, child, 0)], child) for child in (left, right))
        feature, threshold, left, right, value = (part[~cut] for part in (feature, threshold, left, right, value))
    return Tree(feature, threshold, left, right, value, column)
