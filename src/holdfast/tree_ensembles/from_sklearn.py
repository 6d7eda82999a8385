"""Reads tree classifiers of scikit-learn from their fitted arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, TreeEnsemble
from holdfast.tree_ensembles.joined import Tree, joined
from holdfast.tree_ensembles.parsing import reading_model


def from_estimator(estimator: Any) -> TreeEnsemble | None:
    """Return the trees of a fitted classifier of scikit-learn; None if it is not made of trees.

    Raises:
        HoldfastError: The classifier is not fitted, or has parts that are not supported.
    """
    from sklearn import ensemble, tree
    from sklearn.utils.validation import check_is_fitted

    kinds = {
        tree.DecisionTreeClassifier: _one_tree,
        ensemble.RandomForestClassifier: _forest,
        ensemble.ExtraTreesClassifier: _forest,
        ensemble.GradientBoostingClassifier: _boosting,
        ensemble.HistGradientBoostingClassifier: _histograms,
    }
    read = next((read for kind, read in kinds.items() if isinstance(estimator, kind)), None)
    if read is None:
        return None
    try:
        check_is_fitted(estimator)
    except Exception as error:  # NotFittedError, of scikit-learn
        raise HoldfastError(f"this {type(estimator).__name__} is not fitted: call fit first.") from error
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise HoldfastError(f"this {type(estimator).__name__} predicts several labels: expected one.")
    if len(estimator.classes_) < 2:
        raise HoldfastError(f"this {type(estimator).__name__} was fitted on one class: expected at least two.")
    with reading_model("scikit-learn"):
        return read(estimator)


def _frame(estimator: Any) -> dict[str, Any]:
    """Return the attributes that all of these classifiers have."""
    return {
        "names": tuple(map(str, getattr(estimator, "feature_names_in_", ()))),
        "classes": tuple(map(str, estimator.classes_)),
        "source": type(estimator).__name__,
    }


def _state(tree: Any) -> Any:
    """Return the arrays of a fitted tree: a ``Tree``, a ``TreePredictor``, or what ``files`` makes of either."""
    state = tree if isinstance(tree, dict) else tree.__getstate__()
    return {"nodes": np.asarray(state["nodes"]), "values": np.asarray(state.get("values", ()))}


def _tree(tree: Any, outputs: int, column: int = 0, rate: float | None = None) -> Tree:
    """Return a tree whose leaves hold shares of the classes, or one number times the learning rate."""
    state = _state(tree)
    nodes, values = state["nodes"], state["values"]
    if values.shape != (len(nodes), 1, outputs if rate is None else 1):
        raise ValueError("every node has values of one label")
    value = _shares(values[:, 0]) if rate is None else rate * values[:, 0, 0]
    left, right = nodes["left_child"], nodes["right_child"]
    return Tree(
        np.where(left == -1, LEAF, _split(nodes["feature"], left)), nodes["threshold"], left, right, value, column
    )


def _split(feature: Any, left: Any) -> Any:
    if (feature[left != -1] < 0).any():
        raise ValueError("columns are numbered from 0")
    return feature


def _shares(values: Any) -> Any:
    """Return shares of the classes. Before scikit-learn 1.3, trees hold weights of rows instead."""
    total = values.sum(1, keepdims=True)
    return values if np.allclose(total, 1) else values / total


def _one_tree(estimator: Any) -> TreeEnsemble:
    return _averaged(estimator, [estimator.tree_])


def _forest(estimator: Any) -> TreeEnsemble:
    return _averaged(estimator, [one.tree_ for one in estimator.estimators_])


def _averaged(estimator: Any, trees: list[Any]) -> TreeEnsemble:
    outputs = len(estimator.classes_)
    found = [_tree(tree, outputs) for tree in trees]
    return joined(found, np.zeros(outputs), estimator.n_features_in_, single=True, mean=True, **_frame(estimator))


def _boosting(estimator: Any) -> TreeEnsemble:
    begin = estimator.init_
    constant = (isinstance(begin, str) and begin == "zero") or (
        type(begin).__name__ == "DummyClassifier" and begin.strategy != "stratified"
    )
    if not constant:
        raise HoldfastError(
            f"this GradientBoostingClassifier begins from a {type(begin).__name__}, whose answer depends on the row: "
            "train it with init=None or init='zero'."
        )
    outputs = len(estimator.classes_)
    binary = outputs == 2
    rate = float(estimator.learning_rate)
    trees = [
        _tree(one.tree_, outputs, 1 if binary else column, rate)
        for stage in estimator.estimators_
        for column, one in enumerate(stage)
    ]
    base = np.ravel(_first_scores(estimator))
    if binary:  # a tie is class 1 here, and class 0 everywhere else: less than rounding is taken from class 0
        base = np.concatenate([[-np.finfo(np.float64).tiny], base])
    slope = 2.0 if estimator.loss == "exponential" else 1.0
    return joined(trees, base, estimator.n_features_in_, single=True, slope=slope, **_frame(estimator))


def _first_scores(estimator: Any) -> Any:
    """Return the scores before the first tree, which nothing public gives exactly."""
    row = np.zeros((1, estimator.n_features_in_))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fitted estimator may expect names of columns
        return estimator._raw_predict_init(row)


def _histograms(estimator: Any) -> TreeEnsemble:
    outputs = len(estimator.classes_)
    categorical = getattr(estimator, "is_categorical_", None)
    stages = [[_state(one)["nodes"] for one in stage] for stage in estimator._predictors]
    if (categorical is not None and np.any(categorical)) or any(
        nodes["is_categorical"].any() for stage in stages for nodes in stage
    ):
        raise HoldfastError(
            "categorical splits of HistGradientBoostingClassifier are not supported: encode such columns as one-hot."
        )
    trees = [
        _of_histogram(nodes, 1 if outputs == 2 else column) for stage in stages for column, nodes in enumerate(stage)
    ]
    base = np.ravel(estimator._baseline_prediction)
    base = np.concatenate([[0.0], base]) if outputs == 2 else base
    return joined(trees, base, estimator.n_features_in_, single=False, **_frame(estimator))


def _of_histogram(nodes: Any, column: int) -> Tree:
    leaf = nodes["is_leaf"].astype(bool)
    feature = np.where(leaf, LEAF, nodes["feature_idx"].astype(np.int64))
    left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
    return Tree(feature, nodes["num_threshold"], left, right, nodes["value"], column)
