"""holdfast: which features a prediction holds fast to, and how fast it holds."""

from holdfast import data
from holdfast.cases import Cases
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.features import Features
from holdfast.model import Classifier, Queries
from holdfast.robustness import PGD, Judge, Linear, MinNorm, Radii, Robustness
from holdfast.version import __version__

__all__ = [
    "PGD",
    "Cases",
    "Classifier",
    "Features",
    "HoldfastError",
    "HoldfastWarning",
    "Judge",
    "Linear",
    "MinNorm",
    "Queries",
    "Radii",
    "Robustness",
    "__version__",
    "data",
]
