"""Reads tree classifiers of scikit-learn from their fitted arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, Tree, TreeEnsemble, joined, one_column


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
    return read(estimator)


def _frame(estimator: Any) -> dict[str, Any]:
    """Return the attributes that all of these classifiers have."""
    return {
        "names": tuple(map(str, getattr(estimator, "feature_names_in_", ()))),
        "classes": tuple(map(str, estimator.classes_)),
        "source": type(estimator).__name__,
    }


def _arrays(tree: Any, value: Any) -> Tree:
    leaf = tree.children_left == -1
    return Tree(np.where(leaf, LEAF, tree.feature), tree.threshold, tree.children_left, tree.children_right, value)


def _probabilities(tree: Any) -> Any:
    counts = tree.value[:, 0, :]
    return counts / counts.sum(1, keepdims=True)


def _one_tree(estimator: Any) -> TreeEnsemble:
    tree = estimator.tree_
    base = np.zeros(len(estimator.classes_))
    trees = [_arrays(tree, _probabilities(tree))]
    return joined(trees, base, estimator.n_features_in_, single=True, mean=True, **_frame(estimator))


def _forest(estimator: Any) -> TreeEnsemble:
    trees = [_arrays(one.tree_, _probabilities(one.tree_)) for one in estimator.estimators_]
    base = np.zeros(len(estimator.classes_))
    return joined(trees, base, estimator.n_features_in_, single=True, mean=True, **_frame(estimator))


def _boosting(estimator: Any) -> TreeEnsemble:
    from sklearn.dummy import DummyClassifier

    outputs = len(estimator.classes_)
    binary = estimator.estimators_.shape[1] == 1
    trees = [
        _arrays(
            one.tree_,
            one_column(estimator.learning_rate * one.tree_.value[:, 0, 0], 1 if binary else column, outputs),
        )
        for stage in estimator.estimators_
        for column, one in enumerate(stage)
    ]
    if not isinstance(estimator.init_, (str, DummyClassifier)):  # "zero", or the shares of the classes
        raise HoldfastError(
            f"GradientBoostingClassifier begins from a {type(estimator.init_).__name__}: only trees are supported."
        )
    return _with_base(estimator, trees, single=True)


def _histograms(estimator: Any) -> TreeEnsemble:
    if getattr(estimator, "is_categorical_", None) is not None and np.any(estimator.is_categorical_):
        raise HoldfastError(
            "categorical splits of HistGradientBoostingClassifier are not supported: encode such columns as one-hot."
        )
    binary = len(estimator.classes_) == 2
    trees = []
    for stage in estimator._predictors:
        for column, one in enumerate(stage):
            nodes = one.nodes
            leaf = nodes["is_leaf"].astype(bool)
            value = one_column(nodes["value"], 1 if binary else column, len(estimator.classes_))
            feature = np.where(leaf, LEAF, nodes["feature_idx"].astype(np.int64))
            left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
            trees.append(Tree(feature, nodes["num_threshold"], left, right, value))
    return _with_base(estimator, trees, single=False)


def _with_base(estimator: Any, trees: list[Tree], *, single: bool) -> TreeEnsemble:
    """Return the ensemble with the base that makes its scores those of the estimator."""
    frame, columns, outputs = _frame(estimator), estimator.n_features_in_, len(estimator.classes_)
    bare = joined(trees, np.zeros(outputs), columns, single=single, **frame)
    row = np.zeros((1, columns))
    decision = np.ravel(_decision(estimator, row))
    base = decision if len(decision) > 1 else np.array([0.0, decision[0]])
    return joined(trees, base - bare.scores(row)[0], columns, single=single, **frame)


def _decision(estimator: Any, row: Any) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fitted estimator may expect names of columns
        return estimator.decision_function(row)
