"""Scalers of scikit-learn before trees, folded into the thresholds so that every decision stays what it was.

A scaler maps each column by a function that never decreases, as it is computed in floating point. So the rows that go
left at a threshold are those up to one largest number of double precision, which bisection finds.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, Floats, Integers, TreeEnsemble
from holdfast.tree_ensembles.joined import decided

_SCALERS = ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler")
_LARGEST = float(np.finfo(np.float64).max)
_LOWEST_BITS = np.iinfo(np.int64).min


def split_pipeline(model: Any) -> tuple[list[Any], Any]:
    """Return the steps before the last one, and the last one; a model that is no pipeline has none before it.

    Args:
        model: Any model; scikit-learn is imported already.
    """
    from sklearn.pipeline import Pipeline

    if not isinstance(model, Pipeline) or not model.steps:
        return [], model
    *before, (_, last) = model.steps
    more, last = split_pipeline(last)
    return [one for _, step in before for one in single_steps(step)] + more, last


def single_steps(step: Any) -> list[Any]:
    """Return the steps that a step consists of: those of a pipeline, none of ``"passthrough"``."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return []
    before, last = split_pipeline(step)
    return [*before, last] if last is step else [*before, *single_steps(last)]


def before_scaling(ensemble: TreeEnsemble, steps: Sequence[Any], names: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return an ensemble that decides for rows before some scalers as the given one does after them.

    Args:
        ensemble: The trees after the scalers.
        steps: Fitted scalers, the first one first.
        names: Names of the columns before the scalers.

    Raises:
        HoldfastError: A step is not one of the scalers, not fitted, or has other columns.
    """
    for step in steps:
        check_scaler(step, ensemble.columns)
    names = names or ensemble.names
    threshold = folded_thresholds(ensemble, steps)
    return decided(dataclasses.replace(ensemble, threshold=threshold, single=False, names=names))


def folded_thresholds(ensemble: TreeEnsemble, steps: Sequence[Any]) -> Floats:
    """Return for each node the largest number before some steps that goes left, ``[N]``; infinite: all, or none.

    Args:
        ensemble: The trees after the steps.
        steps: Objects whose ``transform`` maps each column by a function that never decreases.
    """
    inner = ensemble.feature != LEAF
    feature, wanted = ensemble.feature[inner], ensemble.threshold[inner]
    pairs, place = np.unique(np.stack([feature, wanted], 1), axis=0, return_inverse=True)
    threshold = ensemble.threshold.copy()
    threshold[inner] = _largest_left(pairs, ensemble, steps)[place.reshape(-1)]
    return threshold


def check_scaler(step: Any, columns: int) -> None:
    """Refuse a step before trees that is none of the scalers, not fitted, or fitted on other columns."""
    from sklearn import preprocessing

    kinds = tuple(getattr(preprocessing, name) for name in _SCALERS)
    name = type(step).__name__
    if type(step) not in kinds:
        raise HoldfastError(
            f"cannot fold the step {name} before trees: only {', '.join(_SCALERS)} are folded; apply it before and "
            "pass the classifier alone."
        )
    if getattr(step, "n_features_in_", None) != columns:
        raise HoldfastError(f"the step {name} is not fitted on the {columns} columns of the trees: fit the pipeline.")
    scale = getattr(step, "scale_", None)
    if scale is not None and not (np.asarray(scale) > 0).all():
        raise HoldfastError(f"the step {name} has a scale that is not over 0: fit the pipeline again.")


def _largest_left(pairs: Floats, ensemble: TreeEnsemble, steps: Sequence[Any]) -> Floats:
    """Return the largest raw number that goes left, for each pair of feature and threshold; infinite: all, or none."""
    feature = pairs[:, 0].astype(np.int64)
    start = np.searchsorted(feature, np.arange(ensemble.columns + 1))
    row = np.arange(len(feature)) - start[feature]  # thresholds of one column stand below one another
    shape = (int(row.max(initial=0)) + 1, ensemble.columns)

    def left(raw: Floats) -> NDArray[np.bool_]:
        rows = np.zeros(shape)
        rows[row, feature] = raw
        seen = scaled(rows, steps)[row, feature]
        if ensemble.single:
            seen = seen.astype(np.float32).astype(np.float64)
        return np.asarray(seen <= pairs[:, 1])

    with np.errstate(over="ignore"):
        return _bisected(left, len(feature))


def _bisected(left: Callable[[Floats], NDArray[np.bool_]], count: int) -> Floats:
    low = _order(np.full(count, -_LARGEST))
    high = _order(np.full(count, _LARGEST))
    none, every = ~left(_number(low)), left(_number(high))
    for _ in range(64):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        there = left(_number(middle))
        low, high = np.where(there, middle, low), np.where(there, high, middle)
    return np.where(every, np.inf, np.where(none, -np.inf, _number(low)))


def _order(numbers: Floats) -> Integers:
    """Return whole numbers in the order of numbers of double precision, without gaps."""
    bits = numbers.view(np.int64)
    return np.where(bits < 0, _LOWEST_BITS - bits, bits)


def _number(order: Integers) -> Floats:
    return np.where(order < 0, _LOWEST_BITS - order, order).view(np.float64)


def scaled(rows: Floats, steps: Sequence[Any]) -> Floats:
    """Return rows after the steps, as the library computes them.

    Args:
        rows: ``[R, n]``.
        steps: Fitted scalers.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fitted scaler may expect names of columns
        for step in steps:
            rows = np.asarray(step.transform(rows), np.float64).clip(-_LARGEST, _LARGEST)  # a scaler refuses infinity
    return rows
