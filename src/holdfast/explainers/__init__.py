"""Explainers: ways to find an order of the features."""

from holdfast.explainers.anchor import Anchor
from holdfast.explainers.chance import Random
from holdfast.explainers.counterfactual import Counterfactual
from holdfast.explainers.estimators import BoundaryNormals, Estimator, Regression
from holdfast.explainers.explainer import Attribution, Explainer
from holdfast.explainers.gradients import ExpectedGradients, Grad, IntegratedGradients
from holdfast.explainers.greedy import Greedy, GreedyAS, OneStepBanzhaf
from holdfast.explainers.masks import Bbmp
from holdfast.explainers.propagation import DeepLift, Lrp
from holdfast.explainers.removal import LeaveOneOut, Shap

EXPLAINERS: tuple[type[Explainer], ...] = (
    GreedyAS,
    Greedy,
    OneStepBanzhaf,
    Grad,
    IntegratedGradients,
    ExpectedGradients,
    Shap,
    LeaveOneOut,
    DeepLift,
    Lrp,
    Bbmp,
    Counterfactual,
    Anchor,
    Random,
)
"""Every explainer, for listings and for the tests that hold all of them to the same laws."""

__all__ = [
    "EXPLAINERS",
    "Anchor",
    "Attribution",
    "Bbmp",
    "BoundaryNormals",
    "Counterfactual",
    "DeepLift",
    "Estimator",
    "ExpectedGradients",
    "Explainer",
    "Grad",
    "Greedy",
    "GreedyAS",
    "IntegratedGradients",
    "LeaveOneOut",
    "Lrp",
    "OneStepBanzhaf",
    "Random",
    "Regression",
    "Shap",
]
