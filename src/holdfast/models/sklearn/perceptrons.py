"""Multi-layer perceptrons of scikit-learn as networks of torch."""

from __future__ import annotations

from typing import Any

from torch import nn

from holdfast.models.affine import AffineMap
from holdfast.models.sklearn.linear import LinearScores, two_columns
from holdfast.models.sklearn.refusals import refused

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
}


def perceptron(estimator: Any) -> nn.Sequential | None:
    """Return the logits of an ``MLPClassifier`` as a network; None if it is another kind.

    Raises:
        HoldfastError: It gives several labels to a row.
    """
    from sklearn.neural_network import MLPClassifier

    if not isinstance(estimator, MLPClassifier):
        return None
    if estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1:
        raise refused(estimator, "it gives several labels to a row")
    pairs = zip(estimator.coefs_, estimator.intercepts_, strict=True)
    maps = [AffineMap.of(weight.T, bias) for weight, bias in pairs]
    if estimator.n_outputs_ == 1:
        maps[-1] = two_columns(maps[-1])
    layers: list[nn.Module] = []
    for one in maps:
        layers += [LinearScores(one), _ACTIVATIONS[estimator.activation]()]
    return nn.Sequential(*layers[:-1]).eval()
