"""Steps of preprocessing of scikit-learn as one affine map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from holdfast.models.affine import AffineMap
from holdfast.models.sklearn.refusals import refused_step
from holdfast.tree_ensembles.encoders import transformer_columns


def folded(step: Any, width: int) -> AffineMap:
    """Return a fitted transformer as an affine map.

    Args:
        step: The transformer, a pipeline of transformers, ``"passthrough"`` or None.
        width: The number of its input columns.

    Returns:
        The map.

    Raises:
        HoldfastError: It is not affine, or not known.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_selection import SelectorMixin
    from sklearn.pipeline import Pipeline

    if step is None or (isinstance(step, str) and step == "passthrough"):
        return AffineMap.identity(width)
    if isinstance(step, Pipeline):
        return in_turn([one for _, one in step.steps], width)
    if isinstance(step, ColumnTransformer):
        return side_by_side(step, width, lambda one, columns: _of_columns(one, columns, width))
    if isinstance(step, SelectorMixin):
        return AffineMap.selecting(np.flatnonzero(step.get_support()).tolist(), width)
    for kind, read in _readers():
        if isinstance(step, kind):
            return read(step, width)
    raise refused_step(step, "it is not affine" if _known_curved(step) else "it is not known to be affine")


def in_turn(steps: Sequence[Any], width: int) -> AffineMap:
    """Return transformers that are applied one after the other as one map."""
    whole = AffineMap.identity(width)
    for step in steps:
        whole = whole.then(folded(step, len(whole.bias)))
    return whole


def _readers() -> list[tuple[type, Callable[[Any, int], AffineMap]]]:
    from sklearn.decomposition import PCA, TruncatedSVD
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import (
        FunctionTransformer,
        MaxAbsScaler,
        MinMaxScaler,
        OneHotEncoder,
        RobustScaler,
        StandardScaler,
    )

    return [
        (StandardScaler, lambda step, width: _centred(step.mean_, step.scale_, width)),
        (RobustScaler, _robust_scaler),
        (MinMaxScaler, _min_max_scaler),
        (MaxAbsScaler, _max_abs_scaler),
        (PCA, _pca),
        (TruncatedSVD, lambda step, width: AffineMap.of(step.components_, np.zeros(len(step.components_)))),
        (SimpleImputer, _imputer),
        (OneHotEncoder, _one_hot),
        (FunctionTransformer, _function),
    ]


def _centred(centre: Any, scale: Any, width: int) -> AffineMap:
    """Return ``(x - centre) / scale``; None: no such part."""
    scale = np.ones(width) if scale is None else np.asarray(scale, dtype=float)
    centre = np.zeros(width) if centre is None else np.asarray(centre, dtype=float)
    return AffineMap.scaling(1 / scale, -centre / scale)


def _robust_scaler(step: Any, width: int) -> AffineMap:
    return _centred(step.center_ if step.with_centering else None, step.scale_ if step.with_scaling else None, width)


def _min_max_scaler(step: Any, width: int) -> AffineMap:
    if step.clip:
        raise refused_step(step, "clip=True is not affine")
    return AffineMap.scaling(step.scale_, step.min_)


def _max_abs_scaler(step: Any, width: int) -> AffineMap:
    if getattr(step, "clip", False):
        raise refused_step(step, "clip=True is not affine")
    return _centred(None, step.scale_, width)


def _pca(step: Any, width: int) -> AffineMap:
    weight = np.array(step.components_, dtype=float)
    if step.whiten:
        scale = np.sqrt(step.explained_variance_)
        weight /= np.maximum(scale, np.finfo(scale.dtype).eps)[:, None]
    return AffineMap.of(weight, -weight @ np.asarray(step.mean_, dtype=float))


def _imputer(step: Any, width: int) -> AffineMap:
    """Return an imputer of NaN, which changes no finite input."""
    missing = step.missing_values
    if not (isinstance(missing, float) and np.isnan(missing)):
        raise refused_step(step, f"it replaces {missing!r}, which an input may hold")
    if step.add_indicator:
        raise refused_step(step, "add_indicator=True adds columns that only missing values change")
    kept = np.arange(width)
    if not step.keep_empty_features:
        kept = np.flatnonzero([not _is_nan(value) for value in step.statistics_])
    return AffineMap.selecting(kept.tolist(), width)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _function(step: Any, width: int) -> AffineMap:
    """Return the transformer that a column transformer makes of ``"passthrough"``."""
    if step.func is not None:
        raise refused_step(step, "its function is not known to be affine")
    return AffineMap.identity(width)


def _one_hot(step: Any, width: int) -> AffineMap:
    """Return an encoder of columns that hold one of two numbers, as straight lines through both of them."""
    parts = []
    dropped = step.drop_idx_ if step.drop_idx_ is not None else [None] * width
    for column, (categories, drop) in enumerate(zip(step.categories_, dropped, strict=True)):
        values = np.asarray(categories)
        if len(values) > 2 or values.dtype.kind not in "biuf" or not np.isfinite(values.astype(float)).all():
            raise refused_step(step, f"column {column} has {len(values)} categories, and only two numbers are affine")
        if getattr(step, "_infrequent_enabled", False):
            raise refused_step(step, "it joins rare categories")
        select = AffineMap.selecting([column], width)
        low, high = float(values[0]), float(values[-1])
        if len(values) == 1:
            weight, bias = np.zeros((1, 1)), np.ones(1)
        else:
            weight, bias = np.array([[-1.0], [1.0]]) / (high - low), np.array([high, -low]) / (high - low)
        kept = [place for place in range(len(values)) if place != drop]
        parts.append(select.then(AffineMap.of(weight, bias)).then(AffineMap.selecting(kept, len(values))))
    return AffineMap.stacked(parts)


def _of_columns(step: Any, columns: list[int], width: int) -> AffineMap:
    return AffineMap.selecting(columns, width).then(folded(step, len(columns)))


def side_by_side(step: Any, width: int, part: Callable[[Any, list[int]], AffineMap]) -> AffineMap:
    """Return the parts of a column transformer, in the order of its output.

    Args:
        step: The fitted column transformer.
        width: The number of its input columns.
        part: From a transformer and the numbers of its columns to its map.

    Raises:
        HoldfastError: It weights its parts, drops every column, or chooses columns by a function.
    """
    if getattr(step, "transformer_weights", None):
        raise refused_step(step, "transformer_weights are not supported")
    parts = []
    for _, transformer, given in step.transformers_:
        columns = transformer_columns(step, given, width)
        if (isinstance(transformer, str) and transformer == "drop") or not columns:
            continue
        parts.append(part(transformer, columns))
    if not parts:
        raise refused_step(step, "it drops every column")
    return AffineMap.stacked(parts)


def _known_curved(step: Any) -> bool:
    """Whether the step is known not to be affine."""
    from sklearn import preprocessing

    names = ("Normalizer", "PolynomialFeatures", "QuantileTransformer", "PowerTransformer", "Binarizer")
    more = ("KBinsDiscretizer", "SplineTransformer")
    return isinstance(step, tuple(getattr(preprocessing, name) for name in names + more))
