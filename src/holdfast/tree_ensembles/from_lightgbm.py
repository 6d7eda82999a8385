"""Reads classifiers of LightGBM from the text that the library itself writes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, Tree, TreeEnsemble, joined, one_column

_CATEGORICAL, _ZERO_IS_MISSING = 1, 4  # bits of decision_type


def from_text(text: str, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a model of LightGBM.

    Args:
        text: What ``Booster.model_to_string`` returns or ``Booster.save_model`` writes.
        classes: Names of the classes.

    Raises:
        HoldfastError: The model is not a classifier of trees, or has parts that are not supported.
    """
    try:
        return _read(text, classes)
    except (KeyError, ValueError, IndexError) as error:
        raise HoldfastError(f"this is not a model of LightGBM, or it is damaged ({type(error).__name__}).") from error


def _read(text: str, classes: tuple[str, ...]) -> TreeEnsemble:
    sections = _sections(text)
    header = next(sections)
    objective, outputs = header.get("objective", "none").split(" ")[0], int(header["num_class"])
    if objective not in ("binary", "multiclass", "multiclassova", "softmax", "ova"):
        raise HoldfastError(f"this LightGBM model predicts {objective}: expected a classifier of one label.")
    trees = [
        _tree(section, 1 if outputs == 1 else number % outputs, max(2, outputs))
        for number, section in enumerate(sections)
    ]
    if not trees:
        raise HoldfastError("this LightGBM model has no trees: fit it first.")
    if "average_output" in header:  # the mean of the trees' scores decides as their sum does
        for tree in trees:
            tree.value = tree.value * (max(1, outputs) / len(trees))
    names = tuple(header["feature_names"].split(" "))
    columns = int(header["max_feature_idx"]) + 1
    base = np.zeros(max(2, outputs))
    return joined(trees, base, columns, single=False, names=names, classes=classes, source="LightGBM")


def _sections(text: str) -> Iterator[dict[str, str]]:
    """Yield the header and then each tree as pairs of name and value."""
    head, *trees = text.split("\nTree=")
    if not head.lstrip().startswith("tree"):
        raise HoldfastError("this is not a model of LightGBM: its first line should be 'tree'.")
    for section in (head, *(tree.split("\nend of trees")[0] for tree in trees)):
        pairs = (line.partition("=") for line in section.splitlines())
        yield {name: value for name, _, value in pairs}


def _tree(section: dict[str, str], column: int, outputs: int) -> Tree:
    values = np.array(section["leaf_value"].split(), np.float64)
    if section.get("is_linear", "0") != "0":
        raise HoldfastError("linear trees of LightGBM are not supported: train with linear_tree=False.")
    if int(section["num_leaves"]) == 1:
        return Tree([LEAF], [0.0], [0], [0], one_column(values[:1], column, outputs))
    kinds = np.array(section["decision_type"].split(), np.int64)
    if (kinds & _CATEGORICAL).any():
        raise HoldfastError("categorical splits of LightGBM are not supported: encode such columns as one-hot.")
    if (kinds & _ZERO_IS_MISSING).any():
        raise HoldfastError("LightGBM's zero_as_missing is not supported: train with zero_as_missing=False.")
    splits = len(kinds)
    left, right = (np.array(section[side].split(), np.int64) for side in ("left_child", "right_child"))
    # Leaf k is written as the child -k - 1; here leaves follow the splits.
    left, right = (np.where(child < 0, splits - 1 - child, child) for child in (left, right))
    feature = np.concatenate([np.array(section["split_feature"].split(), np.int64), np.full(len(values), LEAF)])
    threshold = np.concatenate([np.array(section["threshold"].split(), np.float64), np.zeros(len(values))])
    none, inner = np.zeros(len(values), np.int64), np.zeros((splits, outputs))
    return Tree(
        feature,
        threshold,
        np.concatenate([left, none]),
        np.concatenate([right, none]),
        np.concatenate([inner, one_column(values, column, outputs)]),
    )
