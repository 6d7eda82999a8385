"""holdfast: which features a prediction holds fast to, and how fast it holds."""

from holdfast import data
from holdfast.cases import Cases
from holdfast.criteria import Criterion, PerturbRelevant, PerturbRest
from holdfast.curve import Curve, trace
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.explainers import (
    BoundaryNormals,
    Explainer,
    Grad,
    Greedy,
    GreedyAS,
    OneStepBanzhaf,
    Random,
    Regression,
)
from holdfast.features import Features
from holdfast.model import Classifier, Queries
from holdfast.ranking import Ranking
from holdfast.robustness import PGD, Judge, Linear, MinNorm, Radii, Robustness
from holdfast.version import __version__

__all__ = [
    "PGD",
    "BoundaryNormals",
    "Cases",
    "Classifier",
    "Criterion",
    "Curve",
    "Explainer",
    "Features",
    "Grad",
    "Greedy",
    "GreedyAS",
    "HoldfastError",
    "HoldfastWarning",
    "Judge",
    "Linear",
    "MinNorm",
    "OneStepBanzhaf",
    "PerturbRelevant",
    "PerturbRest",
    "Queries",
    "Radii",
    "Random",
    "Ranking",
    "Regression",
    "Robustness",
    "__version__",
    "data",
    "trace",
]
