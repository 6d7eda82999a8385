"""Explainers: ways to find an order of the features."""

from holdfast.explainers.estimators import BoundaryNormals, Estimator, Regression
from holdfast.explainers.explainer import Explainer
from holdfast.explainers.greedy import Greedy, GreedyAS, OneStepBanzhaf
from holdfast.explainers.simple import Grad, Random

EXPLAINERS: tuple[type[Explainer], ...] = (GreedyAS, Greedy, OneStepBanzhaf, Grad, Random)
"""Every explainer, for listings and for the tests that hold all of them to the same laws."""

__all__ = [
    "EXPLAINERS",
    "BoundaryNormals",
    "Estimator",
    "Explainer",
    "Grad",
    "Greedy",
    "GreedyAS",
    "OneStepBanzhaf",
    "Random",
    "Regression",
]
