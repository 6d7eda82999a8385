"""Linear classifiers of scikit-learn: weights and biases of their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.errors import HoldfastError
from holdfast.models.affine import AffineMap


class Inputs(nn.Module):
    """Rows ``[R, *shape]`` as flat inputs; refuses rows that have another number of coordinates than in training."""

    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def forward(self, rows: Tensor) -> Tensor:
        flat = rows.flatten(1)
        if flat.shape[1] != self.width:
            raise HoldfastError(
                f"expected inputs of {self.width} columns, as in training, got {flat.shape[1]}: choose the same "
                "columns."
            )
        return flat


class LinearScores(nn.Linear):
    """An affine map as a layer in double precision; refuses rows of another width."""

    def __init__(self, scores: AffineMap):
        outputs, inputs = scores.weight.shape
        super().__init__(inputs, outputs, dtype=torch.float64)
        with torch.no_grad():
            self.weight.copy_(scores.weight)
            self.bias.copy_(scores.bias)
        self._inputs = Inputs(inputs)
        self.eval().requires_grad_(False)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(self._inputs(input))


def linear_scores(estimator: Any) -> AffineMap | None:
    """Return the scores of a linear classifier; None if it is another kind.

    A binary classifier has one logit z. Its two scores are ``-z/2`` and ``z/2``: a tie is the first class, as in
    ``predict``.
    """
    from sklearn import discriminant_analysis, linear_model, svm

    kinds = (
        linear_model.LogisticRegression,
        linear_model.RidgeClassifier,
        linear_model.RidgeClassifierCV,
        linear_model.SGDClassifier,
        linear_model.Perceptron,
        svm.LinearSVC,
        discriminant_analysis.LinearDiscriminantAnalysis,
    )
    if not isinstance(estimator, kinds):
        return None
    weight = estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else np.atleast_2d(estimator.coef_)
    bias = np.broadcast_to(np.asarray(estimator.intercept_, dtype=float), len(weight))
    scores = AffineMap.of(weight, np.array(bias))
    return two_columns(scores) if len(weight) == 1 else scores


def two_columns(logit: AffineMap) -> AffineMap:
    """Return the scores ``-z/2`` and ``z/2`` of the logit z."""
    halves = torch.tensor([[-0.5], [0.5]], dtype=torch.float64)
    return logit.then(AffineMap(halves, torch.zeros(2, dtype=torch.float64)))
