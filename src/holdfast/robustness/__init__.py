"""Robustness-S: the smallest change inside a feature subset that changes a decision.

An ``Attack`` gives upper bounds, a ``Certificate`` lower bounds, an ``Exact`` method the value itself.
"""

from holdfast.robustness.exact_neighbours import ExactNeighbours
from holdfast.robustness.judge import Judge
from holdfast.robustness.kinds import Attack, Certificate, Exact, Moves, Solution
from holdfast.robustness.linear import ExactLinear
from holdfast.robustness.method import Robustness
from holdfast.robustness.minnorm import MinNorm
from holdfast.robustness.pgd import PGD
from holdfast.robustness.radii import Radii
from holdfast.robustness.rows import Rows

__all__ = [
    "PGD",
    "Attack",
    "Certificate",
    "Exact",
    "ExactLinear",
    "ExactNeighbours",
    "Judge",
    "MinNorm",
    "Moves",
    "Radii",
    "Robustness",
    "Rows",
    "Solution",
]
