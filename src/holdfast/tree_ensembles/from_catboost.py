"""Reads classifiers of CatBoost from the JSON that the library itself writes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, TreeEnsemble
from holdfast.tree_ensembles.joined import Tree, joined
from holdfast.tree_ensembles.parsing import reading_model, reals, wholes

_ONE_LABEL = ("Logloss", "CrossEntropy", "MultiClass")
_SEPARATE = ("MultiClassOneVsAll",)
_OTHERS = ("categorical_features", "text_features", "embedding_features")


def from_model(model: Any, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a fitted ``catboost.CatBoost``.

    Args:
        model: The classifier.
        classes: Names of the classes.
    """
    with tempfile.TemporaryDirectory() as folder:  # CatBoost writes JSON to files only
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return from_json(json.loads(path.read_text(encoding="utf-8")), classes)


def from_json(record: Any, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a model of CatBoost.

    Args:
        record: The parsed JSON that ``save_model(path, format="json")`` writes.
        classes: Names of the classes; empty: those in the record.

    Raises:
        HoldfastError: The model is not a classifier of symmetric trees, or has parts that are not supported.
    """
    with reading_model("CatBoost"):
        return _read(record, classes)


def _read(record: Any, classes: tuple[str, ...]) -> TreeEnsemble:
    loss = record["model_info"]["params"]["loss_function"]["type"]
    if loss not in (*_ONE_LABEL, *_SEPARATE):
        raise HoldfastError(f"this CatBoost model was trained with {loss}: expected a classifier of one label.")
    if "oblivious_trees" not in record:
        raise HoldfastError("CatBoost's trees must be symmetric: train with grow_policy='SymmetricTree'.")
    features = record["features_info"]
    if any(features.get(kind) for kind in _OTHERS):
        raise HoldfastError("categorical features of CatBoost are not supported: encode such columns as one-hot.")
    floats = features["float_features"]
    scale, bias = record["scale_and_bias"]
    scale, bias = reals([scale])[0], reals(bias if isinstance(bias, list) else [bias])
    outputs = len(bias)
    trees = [_tree(tree, floats, scale, outputs) for tree in record["oblivious_trees"]]
    base = np.concatenate([[0.0], bias]) if outputs == 1 else bias
    known = record["model_info"].get("class_params", {}).get("class_names", ())
    settings: dict[str, Any] = {
        "names": _names(floats),
        "classes": classes or (tuple(map(str, known)) if len(known) == len(base) else ()),
        "separate": loss in _SEPARATE,
        "source": "CatBoost",
    }
    return joined(trees, base, len(floats), single=True, **settings)


def _names(floats: Any) -> tuple[str, ...]:
    """Return the names of the columns; empty if they are only numbers."""
    names = tuple(str(one.get("feature_id") or number) for number, one in enumerate(floats))
    return () if names == tuple(map(str, range(len(names)))) else names


def _tree(tree: Any, floats: Any, scale: float, outputs: int) -> Tree:
    """Return a symmetric tree as a binary one: nodes of one level have the same split; the last split comes first."""
    splits = tree["splits"] or []
    if any(split.get("split_type") != "FloatFeature" for split in splits):
        raise HoldfastError("categorical splits of CatBoost are not supported: encode such columns as one-hot.")
    depth, values = len(splits), reals(tree["leaf_values"]) * scale
    if len(values) != outputs << depth:  # before a claimed depth takes memory
        raise ValueError("every leaf has one value for each class")
    numbers = wholes([split["float_feature_index"] for split in splits])
    if (numbers < 0).any():
        raise ValueError("columns are numbered from 0")
    place = wholes([floats[number]["flat_feature_index"] for number in numbers])
    border = reals([split["border"] for split in splits]).astype(np.float32).astype(np.float64)
    inner, leaves = 2**depth - 1, 2**depth
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    feature = np.concatenate([place[depth - 1 - level], np.full(leaves, LEAF)])
    threshold = np.concatenate([border[depth - 1 - level], np.zeros(leaves)])
    own = np.arange(inner + leaves)
    values = values if outputs == 1 else values.reshape(leaves, outputs)
    values = np.concatenate([np.zeros((inner, *values.shape[1:])), values])
    return Tree(feature, threshold, 2 * own + 1, 2 * own + 2, values, 1)
