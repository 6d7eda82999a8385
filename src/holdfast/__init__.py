"""holdfast: which features a prediction holds fast to, and how fast it holds."""

from holdfast import analyses, data, text
from holdfast.cases import Cases
from holdfast.criteria import Criterion, Deletion, Insertion, PerturbRelevant, PerturbRest
from holdfast.curve import Curve, trace
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.explainers import (
    Anchor,
    Attribution,
    Bbmp,
    BoundaryNormals,
    Counterfactual,
    DeepLift,
    ExpectedGradients,
    Explainer,
    Grad,
    Greedy,
    GreedyAS,
    IntegratedGradients,
    LeaveOneOut,
    Lrp,
    OneStepBanzhaf,
    Random,
    Regression,
    Shap,
)
from holdfast.features import Features
from holdfast.model import BlackBox, Classifier, Queries
from holdfast.pace import Pace
from holdfast.ranking import Ranking
from holdfast.reference import Words
from holdfast.robustness import PGD, Judge, Linear, MinNorm, Radii, Robustness
from holdfast.version import __version__

__all__ = [
    "PGD",
    "Anchor",
    "Attribution",
    "Bbmp",
    "BlackBox",
    "BoundaryNormals",
    "Cases",
    "Classifier",
    "Counterfactual",
    "Criterion",
    "Curve",
    "DeepLift",
    "Deletion",
    "ExpectedGradients",
    "Explainer",
    "Features",
    "Grad",
    "Greedy",
    "GreedyAS",
    "HoldfastError",
    "HoldfastWarning",
    "Insertion",
    "IntegratedGradients",
    "Judge",
    "LeaveOneOut",
    "Linear",
    "Lrp",
    "MinNorm",
    "OneStepBanzhaf",
    "Pace",
    "PerturbRelevant",
    "PerturbRest",
    "Queries",
    "Radii",
    "Random",
    "Ranking",
    "Regression",
    "Robustness",
    "Shap",
    "Words",
    "__version__",
    "analyses",
    "data",
    "text",
    "trace",
]
