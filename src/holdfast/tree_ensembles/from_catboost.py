"""Reads classifiers of CatBoost from the JSON that the library itself writes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, Tree, TreeEnsemble, joined, one_column


def from_model(model: Any, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a fitted ``catboost.CatBoost``.

    Args:
        model: The classifier.
        classes: Names of the classes.
    """
    with tempfile.TemporaryDirectory() as folder:  # CatBoost writes JSON to files only
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return from_json(json.loads(path.read_text()), classes)


def from_json(record: Any, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a model of CatBoost.

    Args:
        record: The parsed JSON that ``save_model(path, format="json")`` writes.
        classes: Names of the classes.

    Raises:
        HoldfastError: The model is not a classifier of symmetric trees, or has parts that are not supported.
    """
    try:
        return _read(record, classes)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise HoldfastError(f"this is not a model of CatBoost, or it is damaged ({type(error).__name__}).") from error


def _read(record: Any, classes: tuple[str, ...]) -> TreeEnsemble:
    loss = record["model_info"]["params"]["loss_function"]["type"]
    if loss not in ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll"):
        raise HoldfastError(f"this CatBoost model was trained with {loss}: expected a classifier of one label.")
    if "oblivious_trees" not in record:
        raise HoldfastError("CatBoost's trees must be symmetric: train with grow_policy='SymmetricTree'.")
    features = record["features_info"]
    if features.get("categorical_features") or features.get("text_features") or features.get("embedding_features"):
        raise HoldfastError("categorical features of CatBoost are not supported: encode such columns as one-hot.")
    floats = features["float_features"]
    scale, bias = record["scale_and_bias"]
    bias = np.atleast_1d(np.asarray(bias, np.float64))
    outputs = len(bias)
    trees = [_tree(tree, floats, scale, outputs) for tree in record["oblivious_trees"]]
    base = np.concatenate([[0.0], bias]) if outputs == 1 else bias
    names = tuple(str(one.get("feature_id") or one["flat_feature_index"]) for one in floats)
    return joined(trees, base, len(floats), single=True, names=names, classes=classes, source="CatBoost")


def _tree(tree: Any, floats: Any, scale: float, outputs: int) -> Tree:
    """Return a symmetric tree as a binary one: nodes of one level have the same split; the last split comes first."""
    splits = tree["splits"] or []
    if any(split.get("split_type") != "FloatFeature" for split in splits):
        raise HoldfastError("categorical splits of CatBoost are not supported: encode such columns as one-hot.")
    depth = len(splits)
    place = [floats[split["float_feature_index"]]["flat_feature_index"] for split in splits]
    border = np.array([split["border"] for split in splits], np.float32).astype(np.float64)
    inner = 2**depth - 1
    level = np.array([int(number + 1).bit_length() - 1 for number in range(inner)], np.int64)
    feature = np.concatenate([np.array(place, np.int64)[depth - 1 - level] if depth else [], np.full(2**depth, LEAF)])
    threshold = np.concatenate([border[depth - 1 - level] if depth else [], np.zeros(2**depth)])
    own = np.arange(2 ** (depth + 1) - 1)
    leaves = np.asarray(tree["leaf_values"], np.float64).reshape(2**depth, -1) * scale
    values = one_column(leaves[:, 0], 1, 2) if outputs == 1 else leaves
    values = np.concatenate([np.zeros((inner, values.shape[1])), values])
    return Tree(feature, threshold, 2 * own + 1, 2 * own + 2, values)
