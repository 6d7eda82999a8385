"""Tree ensembles as models: random forests, boosted trees and single trees, from any of the usual libraries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.cases import AskableModel
from holdfast.columns import Columns
from holdfast.domain import Domain
from holdfast.errors import HoldfastError
from holdfast.models.frame import (
    Bound,
    bounds_of_table,
    check_class_names,
    check_column_names,
    read_bounds,
    read_class_names,
    read_device,
    read_rows,
    shown_bounds,
)
from holdfast.models.model import Access, Queries
from holdfast.tensors import read_tensor
from holdfast.tree_ensembles import from_catboost, from_lightgbm, from_sklearn, from_xgboost
from holdfast.tree_ensembles.encoders import before_encoding, reads_table
from holdfast.tree_ensembles.ensemble import TreeEnsemble
from holdfast.tree_ensembles.files import read_trees
from holdfast.tree_ensembles.scalers import before_scaling, split_pipeline

_LIBRARIES = "scikit-learn, XGBoost, LightGBM or CatBoost"


class TreeModel(AskableModel):
    """A classifier made of trees. ``hf.trees`` makes it; ``hf.ExactTrees`` finds its exact radii.

    Scores are log-odds for boosted trees (of two classes half of them, once with each sign), and probabilities for
    forests and single trees. They are summed in the
    precision and order of the library, so that decisions are the same.

    Args:
        ensemble: The trees.
        bounds: The box that inputs live in, ``(low, high)``: numbers, or one for each column. None: unbounded.
        scale: What counts as a change of one unit in each column, ``[n]``: inputs and bounds are values divided by it.
            None: values as they are.
        domain: Which points inside the bounds are inputs. None: all.

    Raises:
        HoldfastError: An argument is malformed.
    """

    device = torch.device("cpu")
    dtype = torch.float64
    access = Access.SCORES

    def __init__(
        self,
        ensemble: TreeEnsemble,
        bounds: tuple[Bound, Bound] | None = None,
        scale: Any = None,
        domain: Domain | None = None,
    ):
        self.ensemble, self.domain = ensemble, domain
        self.columns = ensemble.names
        self.low, self.high = read_bounds(bounds, self.device, self.dtype)
        self.scale = _read_scale(scale, ensemble.columns)
        self.queries = Queries()
        self._names = ensemble.classes or tuple(map(str, range(len(ensemble.base))))

    def __repr__(self) -> str:
        count = len(self.ensemble.roots)
        return f"TreeModel({self.ensemble.source}, {count} trees, bounds={shown_bounds(self.low, self.high)})"

    @property
    def classes(self) -> tuple[str, ...]:
        return self._names

    def __call__(self, rows: Tensor, *, exact: bool = False) -> Tensor:
        rows = read_rows(rows).to(self.device, self.dtype)
        if tuple(rows.shape[1:]) != (self.ensemble.columns,):
            raise HoldfastError(
                f"this model expects rows of {self.ensemble.columns} columns, got shape {tuple(rows.shape)}."
            )
        self.queries += Queries(forward=len(rows))
        return self.centred(torch.from_numpy(self.ensemble.scores((rows * self.scale).numpy())))

    def centred(self, scores: Tensor) -> Tensor:
        """Return sums of leaf values ``[..., C]`` as scores: of two classes, half the log-odds with each sign."""
        if self.ensemble.mean or self.ensemble.separate or scores.shape[-1] != 2:
            return scores
        half = (scores[..., 1:] - scores[..., :1]) / 2  # the score of either class then tells what features do to it
        return torch.cat([-half, half], -1)

    def probabilities(self, scores: Tensor) -> Tensor:
        """Convert scores to what the library calls probabilities; those of one against the rest do not sum to 1."""
        if self.ensemble.mean:
            return scores
        odds = self.ensemble.slope * scores
        return odds.sigmoid() if self.ensemble.separate else odds.softmax(1)

    def chunk(self, rows: Tensor, gradient: bool = True) -> int:
        return max(1, 2**22 // len(self.ensemble.roots))

    def content(self) -> dict[str, Tensor]:
        own = self.ensemble
        kind = [own.single, own.sums is np.float32, own.mean, own.separate, own.slope]
        return {name: torch.from_numpy(array) for name, array in vars(own).items() if isinstance(array, np.ndarray)} | {
            "scale": self.scale,
            "rounding": torch.tensor(kind, dtype=torch.float64),
        }

    def check_ready(self) -> None:
        """Fitted trees are always ready."""

    def on(self, device: torch.device | str) -> TreeModel:
        """Return the model itself: trees stay on the CPU."""
        if read_device(device).type != "cpu":
            raise HoldfastError(f"a TreeModel computes on the CPU and cannot be moved to {device}.")
        return self


def trees(
    model: Any,
    bounds: tuple[Bound, Bound] | None = None,
    *,
    scale: Any = None,
    columns: Columns | None = None,
    classes: Sequence[str] = (),
) -> TreeModel:
    """Return a model made of trees from a fitted classifier or from its file.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> x, y = load_iris(return_X_y=True)
    >>> trees(RandomForestClassifier(10, random_state=0).fit(x, y), bounds=(0, 10))
    TreeModel(RandomForestClassifier, 10 trees, bounds=(0, 10))

    Args:
        model: A DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier or
            HistGradientBoostingClassifier of scikit-learn; an XGBClassifier or Booster; an LGBMClassifier or Booster;
            a CatBoostClassifier; or the path of a file: XGBoost .json or .ubj, LightGBM .txt, CatBoost .json,
            scikit-learn .skops. Files are read without pickle, those of XGBoost, LightGBM and CatBoost also without
            the library. A pipeline of scalers before such a classifier is read in the units of its own input.
        bounds: The box that inputs live in, ``(low, high)``: numbers, or one for each column. None: unbounded.
        scale: What counts as a change of one unit in each column, ``[n]``, such as its standard deviation. Inputs,
            bounds and radii are then in these units. None: values as they are.
        columns: The columns of the table that the classifier was trained on, as ``columns.matrix(table)``; or that a
            pipeline was fitted on, whose ``ColumnTransformer`` encodes its categories. They replace bounds and scale,
            and whole numbers and categories stay what they are.
        classes: Names of the classes. Default: those that the classifier knows, or numbers.

    Returns:
        The model.

    Raises:
        HoldfastError: The model is of another kind, not fitted, or has parts that are not supported, such as
            categorical splits.
    """
    names = read_class_names(classes)
    if isinstance(model, (str, Path)):
        ensemble: TreeEnsemble | None = read_trees(Path(model), names)
    else:
        ensemble = _from_object(model, columns)
    if ensemble is None:
        raise HoldfastError(f"expected a tree classifier of {_LIBRARIES}, or its file, got {type(model).__name__}.")
    check_class_names(names, len(ensemble.base))
    made = TreeModel(ensemble, bounds, scale) if columns is None else _of_table(ensemble, columns, bounds, scale)
    made._names = names or made._names
    return made


def _of_table(ensemble: TreeEnsemble, columns: Columns, bounds: Any, scale: Any) -> TreeModel:
    box = bounds_of_table(columns, ensemble.columns, scale if bounds is None else bounds)
    check_column_names(ensemble.names, columns)
    made = TreeModel(ensemble, box, columns.scales, columns.domain())
    made.features = columns.features()
    return made


def _from_object(model: Any, columns: Columns | None = None) -> TreeEnsemble | None:
    """Return the trees of a classifier in memory; its library is imported already. None: it is of another kind."""
    if "sklearn" in sys.modules:
        steps, last = split_pipeline(model)
        if last is not model:
            found = _from_object(last)
            if found is None or not steps:
                return found
            names = _column_names(model)
            if columns is not None and reads_table(steps, int(getattr(model, "n_features_in_", 0)), columns):
                return before_encoding(found, steps, names, columns)
            return before_scaling(found, steps, names)
        if (found := from_sklearn.from_estimator(model)) is not None:
            return found
    for library, read in (("xgboost", _from_xgboost), ("lightgbm", _from_lightgbm), ("catboost", _from_catboost)):
        if library in sys.modules and (found := read(sys.modules[library], model)) is not None:
            return found
    return None


def _column_names(model: Any) -> tuple[str, ...]:
    return tuple(map(str, getattr(model, "feature_names_in_", ())))


def _class_names(model: Any) -> tuple[str, ...]:
    return tuple(map(str, getattr(model, "classes_", ())))


def _from_xgboost(library: Any, model: Any) -> TreeEnsemble | None:
    if isinstance(model, library.Booster):
        return from_xgboost.from_booster(model)
    if not isinstance(model, library.XGBClassifier):
        return None
    if not model.__sklearn_is_fitted__():
        raise HoldfastError("this XGBClassifier is not fitted: call fit first.")
    return from_xgboost.from_classifier(model)


def _from_lightgbm(library: Any, model: Any) -> TreeEnsemble | None:
    if isinstance(model, library.Booster):
        return from_lightgbm.from_text(model.model_to_string())
    if not isinstance(model, library.LGBMClassifier):
        return None
    if not model.__sklearn_is_fitted__():
        raise HoldfastError("this LGBMClassifier is not fitted: call fit first.")
    return from_lightgbm.from_text(model.booster_.model_to_string(), _class_names(model))


def _from_catboost(library: Any, model: Any) -> TreeEnsemble | None:
    if not isinstance(model, library.CatBoost):
        return None
    if not model.is_fitted():
        raise HoldfastError(f"this {type(model).__name__} is not fitted: call fit first.")
    return from_catboost.from_model(model, _class_names(model))


def _read_scale(scale: Any, columns: int) -> Tensor:
    if scale is None:
        return torch.ones(columns, dtype=torch.float64)
    read = read_tensor(scale, "scale", "positive numbers, one for each column").to(torch.float64)
    if read.ndim > 1 or (read.ndim == 1 and len(read) != columns):
        raise HoldfastError(f"scale must be one number for each of {columns} columns, got shape {tuple(read.shape)}.")
    if not bool((torch.isfinite(read) & (read > 0)).all()):
        raise HoldfastError("scale must be finite and over 0 in every column.")
    return read.expand(columns).contiguous()
