"""Reads classifiers of LightGBM from the text that the library itself writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, Floats, Integers, TreeEnsemble
from holdfast.tree_ensembles.joined import Tree, joined
from holdfast.tree_ensembles.parsing import reading_model

_CATEGORICAL, _ZERO_IS_MISSING = 1, 4  # bits of decision_type
_ONE_LABEL = ("binary", "multiclass", "softmax")
_SEPARATE = ("multiclassova", "multiclass_ova", "ova", "ovr")
_ZERO = float(np.float32(1e-35))  # numbers up to this size are read as 0
_INFINITE = 1e300  # how an infinite threshold is written


def from_text(text: str, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a model of LightGBM.

    Args:
        text: What ``Booster.model_to_string`` returns or ``Booster.save_model`` writes.
        classes: Names of the classes.

    Raises:
        HoldfastError: The model is not a classifier of trees, or has parts that are not supported.
    """
    with reading_model("LightGBM"):
        return _read(text, classes)


def _read(text: str, classes: tuple[str, ...]) -> TreeEnsemble:
    header, sections = _sections(text)
    words = header.get("objective", "none").split(" ")
    outputs = int(header["num_class"])
    if words[0] == "none":
        raise HoldfastError(
            "this LightGBM model was trained with a loss of its own, so its classes are not known: train with "
            "objective='binary' or 'multiclass'."
        )
    if words[0] not in (*_ONE_LABEL, *_SEPARATE):
        raise HoldfastError(f"this LightGBM model predicts {words[0]}: expected a classifier of one label.")
    if not sections:
        raise HoldfastError("this LightGBM model has no trees: fit it first.")
    if outputs < 1 or len(sections) % outputs:
        raise ValueError("every round has one tree of each class")
    trees = [_tree(section, 1 if outputs == 1 else number % outputs) for number, section in enumerate(sections)]
    columns = int(header["max_feature_idx"]) + 1
    slope = float(next((word[8:] for word in words if word.startswith("sigmoid:")), 1))
    if "average_output" in header:  # a forest: its raw scores are sums, and its probabilities are of their means
        slope *= outputs / len(trees)
    settings: dict[str, Any] = {
        "names": _names(header["feature_names"]),
        "classes": classes,
        "slope": slope,
        "separate": words[0] in _SEPARATE,
        "source": "LightGBM",
    }
    return joined(trees, np.zeros(max(2, outputs)), columns, single=False, **settings)


def _names(line: str) -> tuple[str, ...]:
    names = tuple(line.split(" "))
    return () if names == tuple(f"Column_{number}" for number in range(len(names))) else names


def _sections(text: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the header and each tree as pairs of name and value."""
    if not text.lstrip().startswith("tree"):
        raise HoldfastError("this is not a model of LightGBM: its first line should be 'tree'.")
    trees, end, _ = text.partition("\nend of trees")
    if not end:
        raise HoldfastError("this model of LightGBM is damaged: it has no line 'end of trees'; save it again.")
    head, *parts = (
        {name: value for name, _, value in (line.partition("=") for line in section.splitlines())}
        for section in trees.split("\nTree=")
    )
    if len(head.get("tree_sizes", "").split()) != len(parts):
        raise HoldfastError("this model of LightGBM is damaged: trees are missing; save it again.")
    return head, parts


def _reals(section: dict[str, str], name: str) -> Floats:
    return np.array(section[name].split(), np.float64)


def _wholes(section: dict[str, str], name: str) -> Integers:
    return np.array(section[name].split(), np.int64)


def _tree(section: dict[str, str], column: int) -> Tree:
    if section.get("is_linear", "0") != "0":
        raise HoldfastError("linear trees of LightGBM are not supported: train with linear_tree=False.")
    values = _reals(section, "leaf_value")
    if int(section["num_leaves"]) != len(values):
        raise ValueError("every leaf has a value")
    if len(values) == 1:
        return Tree([LEAF], [0.0], [0], [0], values, column)
    kinds = _wholes(section, "decision_type")
    if (kinds & _CATEGORICAL).any():
        raise HoldfastError("categorical splits of LightGBM are not supported: encode such columns as one-hot.")
    if (kinds & _ZERO_IS_MISSING).any():
        raise HoldfastError("LightGBM's zero_as_missing is not supported: train with zero_as_missing=False.")
    splits = len(kinds)
    split, threshold = _wholes(section, "split_feature"), _thresholds(_reals(section, "threshold"))
    if (split < 0).any() or len(split) != splits or len(threshold) != splits:
        raise ValueError("every split has a feature and a threshold")
    # Leaf k is written as the child -k - 1; here leaves follow the splits.
    left, right = (
        np.where(child < 0, splits - 1 - child, child)
        for child in (_wholes(section, "left_child"), _wholes(section, "right_child"))
    )
    none, zeros = np.full(len(values), LEAF), np.zeros(len(values))
    feature, threshold = np.concatenate([split, none]), np.concatenate([threshold, zeros])
    left, right = np.concatenate([left, none]), np.concatenate([right, none])
    return Tree(feature, threshold, left, right, np.concatenate([np.zeros(splits), values]), column)


def _thresholds(written: Floats) -> Floats:
    """Return thresholds for values as they are: the library reads values near 0 as 0."""
    least = np.nextafter(-_ZERO, -np.inf)
    near = np.where(written < 0, least, _ZERO)
    exact = np.where((written >= -_ZERO) & (written < _ZERO), near, written)
    return np.where(np.abs(exact) >= _INFINITE, np.copysign(np.inf, exact), exact)
