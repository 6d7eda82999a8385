"""Small fitted tree classifiers of every library, with a table to ask about."""

from __future__ import annotations

import itertools
import math
from typing import Any

import lightgbm
import numpy as np
import torch
import xgboost
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

import holdfast as hf

Array = NDArray[np.float64]
KINDS: dict[str, Any] = {
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": lambda: RandomForestClassifier(7, max_depth=4, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(7, max_depth=4, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=0),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=6, max_depth=3, min_samples_leaf=3),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1),
    "lightgbm": lambda: lightgbm.LGBMClassifier(
        n_estimators=6, max_depth=3, min_child_samples=3, verbose=-1, num_threads=1
    ),
}


def table(rows: int = 120, columns: int = 3, classes: int = 3, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    """Return random rows in [0, 1], of single precision as all libraries see them, and classes that depend on them."""
    drawn = np.random.default_rng(seed)
    x = drawn.random((rows, columns)).astype(np.float32).astype(np.float64)
    y = (np.sin(7 * x).sum(1) * 2 + drawn.normal(0, 0.3, rows)).round().astype(np.int64) % classes
    return x, y


def fitted(kind: str, columns: int = 3, classes: int = 3, seed: int = 0) -> Any:
    """Return a fitted classifier of this kind."""
    x, y = table(columns=columns, classes=classes, seed=seed)
    return KINDS[kind]().fit(x, y)


def library_scores(model: Any, x: Array) -> Array:
    """Return what the library itself computes before it decides, ``[N, classes]``."""
    if isinstance(model, xgboost.XGBClassifier):
        raw = model.predict(x, output_margin=True)
    elif isinstance(model, lightgbm.LGBMClassifier):
        raw = model.predict(x, raw_score=True)
    elif type(model).__module__.startswith("catboost"):
        raw = model.predict(x, prediction_type="RawFormulaVal")
    elif hasattr(model, "decision_function"):
        raw = model.decision_function(x)
    else:
        return np.asarray(model.predict_proba(x), np.float64)
    raw = np.asarray(raw, np.float64)
    return raw if raw.ndim == 2 else np.stack([-raw / 2, raw / 2], 1)


def both_sides(threshold: float) -> list[float]:
    """Return the largest number of single precision up to a threshold, and the smallest one above it."""
    below = np.float32(threshold)
    below = np.nextafter(below, np.float32(-np.inf)) if below > threshold else below
    return [float(below), float(np.nextafter(below, np.float32(np.inf)))]


def rows_beside_thresholds(ensemble: Any, rows: Array, most: int = 60) -> Array:
    """Return rows in which one column is at a threshold of the trees, or next to it in single or double precision."""
    found = []
    for column in range(ensemble.columns):
        thresholds = np.unique(ensemble.threshold[ensemble.feature == column])[:most]
        near = thresholds.astype(np.float32)
        steps = [np.nextafter(near, np.float32(way)).astype(np.float64) for way in (-np.inf, np.inf)]
        steps += [np.nextafter(thresholds, way) for way in (-np.inf, np.inf)]
        for place, values in enumerate([thresholds, near.astype(np.float64), *steps]):
            beside = rows[(np.arange(len(values)) + place) % len(rows)].copy()
            beside[:, column] = values
            found.append(beside)
    return np.concatenate(found) if sum(map(len, found)) else rows


def brute_radius(
    model: Any, ensemble: Any, x: Array, free: Any, p: float, target: int | None = None, scale: Any = 1.0
) -> float:
    """Return the radius in the box [0, 1] by asking the library about one point of every cell between thresholds."""
    choices = []
    for feature in range(len(x)):
        ends = [x[feature]]
        if free[feature]:
            for threshold in np.unique(ensemble.threshold[ensemble.feature == feature]):
                ends += both_sides(threshold)
        choices.append(sorted(end for end in set(ends) if 0 <= end <= 1))
    points = np.array(list(itertools.product(*choices)))
    scores = library_scores(model, points)
    own = int(model.predict(x[None])[0]) if target is None else target
    rest = np.delete(scores, own, 1).max(1)
    difference = rest - scores[:, own] if target is None else scores[:, own] - rest
    changed = difference > 1e-5 * np.abs(ensemble.value).max()  # a tie is no change
    if not changed.any():
        return math.inf
    return float(np.linalg.norm((points[changed] - x) / scale, p, axis=1).min())


def tree_cases(kind: str = "boosting", count: int = 3) -> hf.Cases:
    """Return cases of a small tree model."""
    x, _ = table()
    return hf.trees(fitted(kind), bounds=(0, 1)).ask(torch.from_numpy(x[:count]))
