"""Nearest-neighbour classifiers as models: scores in double precision, without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.cases import AskableModel
from holdfast.chunks import chunked
from holdfast.columns import Columns
from holdfast.errors import HoldfastError
from holdfast.models.affine import AffineMap
from holdfast.models.frame import (
    Bound,
    bounds_of_table,
    check_class_names,
    read_bounds,
    read_class_names,
    read_device,
    read_rows,
    shown_bounds,
)
from holdfast.models.model import Access, Queries
from holdfast.settings import Count, read_setting
from holdfast.tensors import read_tensor

_TIE = 1e-9  # what a class loses in vote shares for its number, so that the smallest of tied classes wins
_BYTES = 2**26  # of distances at once


class NeighboursModel(AskableModel):
    """The vote of the k nearest training points, by Euclidean distance; every vote counts the same.

    With k = 1, the score of a class is minus the squared distance to its nearest point. With more neighbours it is the
    share of the votes, minus 1e-9 times the number of the class: of tied classes the smallest wins, as in
    scikit-learn. Of training points at the same distance, those that come first in ``points`` vote; scikit-learn
    promises no order. Where two classes are at the same distance, the smaller one is predicted, and a change needs more
    than a tie.

    Made by ``hf.neighbours`` and ``hf.from_sklearn``.

    Args:
        points: Training points ``[N, m]`` in double precision, where distances are measured.
        labels: Their classes ``[N]``, from 0.
        k: The number of neighbours that vote.
        bounds: The box that inputs live in, ``(low, high)``; None: inputs are not bounded.
        classes: Names of the classes.
        step: The map from flat inputs ``[n]`` to where distances are measured. Default: none.

    Raises:
        HoldfastError: An argument is malformed.
    """

    access = Access.SCORES
    device = torch.device("cpu")
    dtype = torch.float64

    def __init__(
        self,
        points: Tensor,
        labels: Tensor,
        k: int = 1,
        bounds: tuple[Bound, Bound] | None = None,
        *,
        classes: Sequence[str] = (),
        step: AffineMap | None = None,
    ):
        self.points, self.labels, self.step = points, labels, step
        self.k: int = read_setting(k, Count, "k")
        if self.k > len(points):
            raise HoldfastError(f"k must be at most the number of training points, {len(points)}, got {self.k}.")
        count = int(labels.max()) + 1
        check_class_names(read_class_names(classes), max(count, len(classes)))
        self._names = read_class_names(classes) or tuple(map(str, range(count)))
        if len(self._names) < 2:
            raise HoldfastError("expected training points of at least two classes, got one class.")
        self.low, self.high = read_bounds(bounds, self.device, self.dtype)
        self.queries = Queries()

    def __repr__(self) -> str:
        kind = f"{len(self.points)} points, k={self.k}"
        return f"NeighboursModel({kind}, bounds={shown_bounds(self.low, self.high)})"

    @property
    def classes(self) -> tuple[str, ...]:
        return self._names

    @property
    def width(self) -> int:
        """The number of coordinates of an input."""
        return (self.points if self.step is None else self.step.weight).shape[1]

    def __call__(self, rows: Tensor, *, exact: bool = False) -> Tensor:
        rows = read_rows(rows).to(self.device, self.dtype)
        parts = chunked(lambda piece: self.scores(self.distances(rows[piece])), len(rows), self.chunk(rows))
        return torch.cat([part for _, part in parts])

    def content(self) -> dict[str, Tensor]:
        step = {} if self.step is None else {"weight": self.step.weight, "bias": self.step.bias}
        return {"points": self.points, "labels": self.labels, "k": torch.tensor(self.k), **step}

    def distances(self, rows: Tensor) -> Tensor:
        """Return squared distances to all training points, and count the rows.

        They are sums of squares of differences. Faster products of matrices would lose digits near a boundary.

        Args:
            rows: Inputs ``[R, *shape]`` in double precision.

        Returns:
            Squared distances ``[R, N]``.

        Raises:
            HoldfastError: The rows have another number of coordinates.
        """
        flat = rows.flatten(1)
        if flat.shape[1] != self.width:
            raise HoldfastError(
                f"expected inputs of {self.width} coordinates, as in training, got {flat.shape[1]}: choose the same "
                "columns."
            )
        mapped = flat if self.step is None else self.step(flat)
        distance: Tensor = torch.cdist(mapped, self.points, compute_mode="donot_use_mm_for_euclid_dist")
        self.queries += Queries(forward=len(rows))
        squared: Tensor = distance.square()
        return squared

    def scores(self, squared: Tensor) -> Tensor:
        """Return the scores ``[R, classes]`` of rows at squared distances ``[R, N]``."""
        count = len(self.classes)
        if self.k == 1:
            nearest = squared.new_full((len(squared), count), -torch.inf)
            nearest.scatter_reduce_(1, self.labels.expand_as(squared), -squared, "amax")
            return nearest.clamp_min(-torch.finfo(squared.dtype).max)  # a class that no point has
        near = squared.sort(dim=1, stable=True).indices[:, : self.k]
        votes: Tensor = torch.nn.functional.one_hot(self.labels[near], count).sum(1)
        return votes.to(self.dtype) / self.k - _TIE * torch.arange(count)

    def probabilities(self, scores: Tensor) -> Tensor:
        """Return the shares of the votes: one and zeros with k = 1, as ``predict_proba`` of scikit-learn."""
        if self.k == 1:
            return torch.nn.functional.one_hot(scores.argmax(1), scores.shape[1]).to(scores)
        return scores + _TIE * torch.arange(scores.shape[1])

    def chunk(self, rows: Tensor, gradient: bool = True) -> int:
        return max(1, min(1024, _BYTES // (8 * len(self.points))))

    def check_ready(self) -> None:
        """Training points are always ready."""

    def on(self, device: torch.device | str) -> NeighboursModel:
        """Return the model itself: it computes on the CPU."""
        if read_device(device).type != "cpu":
            raise HoldfastError(f"a NeighboursModel computes on the CPU and cannot be moved to {device}.")
        return self


def neighbours(
    points: Any,
    labels: Any = None,
    k: int = 1,
    bounds: tuple[Bound, Bound] | None = None,
    *,
    columns: Columns | None = None,
    classes: Sequence[str] = (),
) -> NeighboursModel:
    """Make a nearest-neighbour classifier, which ``hf.ExactNeighbours`` measures exactly.

    >>> model = neighbours([[0.0, 0], [1, 1]], ["low", "high"], bounds=(0, 1))
    >>> model.ask(torch.tensor([[0.2, 0.1]])).label, model.classes
    (tensor([1]), ('high', 'low'))

    Args:
        points: Training inputs ``[N, *shape]``; or a fitted ``KNeighborsClassifier`` of scikit-learn, and nothing but
            bounds and names of classes after it.
        labels: The class of each, ``[N]``: numbers or names. Classes are numbered in their sorted order.
        k: The number of neighbours that vote.
        bounds: The box that inputs live in, ``(low, high)``; None: inputs are not bounded.
        columns: The columns of the table whose rows are ``points``, as ``columns.matrix(table)``. They replace bounds,
            and whole numbers and categories stay what they are. Distances to neighbours are those of the matrix: train
            on standardised columns with ``hf.from_sklearn`` where their units differ.
        classes: Names of the classes, in sorted order of their labels. Default: the labels.

    Returns:
        The model.

    Raises:
        HoldfastError: The points and labels do not fit, or the classifier weights votes or uses another metric.
    """
    if hasattr(points, "kneighbors"):
        if labels is not None or k != 1:
            raise HoldfastError("a fitted KNeighborsClassifier has its own labels and its own k: leave both out.")
        width = int(getattr(points, "n_features_in_", 0))  # 0: not fitted, which is refused below
        box, step = (bounds, None) if columns is None or not width else _of_table(columns, width, bounds)
        return _with_columns(of_estimator(points, box, classes=classes, step=step), columns)
    read = read_tensor(points, "points", "training inputs [N, *shape]").double()
    if read.ndim < 2 or not read.numel() or not bool(torch.isfinite(read).all()):
        raise HoldfastError(f"points must be finite training inputs [N, *shape], got shape {tuple(read.shape)}.")
    if labels is None:
        raise HoldfastError("expected a label for each training point, got none: give labels [N].")
    given = np.asarray(labels)
    if given.shape != (len(read),):
        raise HoldfastError(f"labels must be [N] = [{len(read)}], one for each point, got shape {given.shape}.")
    names, numbers = np.unique(given, return_inverse=True)
    check_class_names(read_class_names(classes), len(names))
    chosen, flat = classes or [str(name) for name in names], read.flatten(1)
    box, step = (bounds, None) if columns is None else _of_table(columns, flat.shape[1], bounds)
    made = NeighboursModel(flat, torch.as_tensor(numbers).long(), k, box, classes=chosen, step=step)
    return _with_columns(made, columns)


def _of_table(columns: Columns, width: int, bounds: Any) -> tuple[tuple[Tensor, Tensor], AffineMap]:
    """Return the bounds of a table, and the map from scaled units to the numbers of its matrix."""
    box = bounds_of_table(columns, width, bounds)
    return box, AffineMap.scaling(columns.scales, [0.0] * columns.width)


def _with_columns(model: NeighboursModel, columns: Columns | None) -> NeighboursModel:
    """Tell a model which points are rows of a table."""
    if columns is not None:
        model.columns, model.domain, model.features = columns.names, columns.domain(), columns.features()
    return model


def of_estimator(
    estimator: Any,
    bounds: tuple[Bound, Bound] | None = None,
    *,
    classes: Sequence[str] = (),
    step: AffineMap | None = None,
) -> NeighboursModel:
    """Make the model of a fitted ``KNeighborsClassifier`` of scikit-learn.

    Args:
        estimator: The classifier: uniform weights and Euclidean distance.
        bounds: The box that inputs live in; None: inputs are not bounded.
        classes: Names of the classes. Default: the classifier's ``classes_``.
        step: The steps of a pipeline before it, as one map.

    Returns:
        The model.

    Raises:
        HoldfastError: It is no such classifier, is not fitted, weights votes or uses another metric.
    """
    from sklearn.neighbors import KNeighborsClassifier

    if not isinstance(estimator, KNeighborsClassifier):
        raise HoldfastError(f"expected a KNeighborsClassifier, got {type(estimator).__name__}.")
    if not hasattr(estimator, "classes_"):
        raise HoldfastError("the KNeighborsClassifier is not fitted: call fit(X, y) before asking about it.")
    metric, p = estimator.effective_metric_, estimator.effective_metric_params_.get("p", 2)
    weighted = estimator.effective_metric_params_.get("w") is not None
    if (metric not in ("euclidean", "l2") and not (metric == "minkowski" and p == 2)) or weighted:
        raise HoldfastError(
            f"expected a KNeighborsClassifier with Euclidean distance, got metric={metric!r}: use "
            "hf.FunctionModel(estimator.predict_proba, ...)."
        )
    if estimator.weights not in ("uniform", None):
        raise HoldfastError(
            f"expected a KNeighborsClassifier with weights='uniform', got {estimator.weights!r}: use "
            "hf.FunctionModel(estimator.predict_proba, ...)."
        )
    if estimator.outputs_2d_:
        raise HoldfastError("expected a KNeighborsClassifier of one label a row, got several: explain them one by one.")
    points, labels = estimator._fit_X, torch.as_tensor(estimator._y).long()
    points = points.toarray() if hasattr(points, "toarray") else points
    names = classes or [str(name) for name in estimator.classes_]
    tensor = torch.tensor(np.asarray(points), dtype=torch.float64)
    return NeighboursModel(tensor, labels, estimator.n_neighbors, bounds, classes=names, step=step)
