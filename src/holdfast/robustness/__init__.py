"""Robustness-S: the smallest perturbation inside a feature subset that changes a decision."""

from holdfast.robustness.judge import Judge
from holdfast.robustness.linear import Linear
from holdfast.robustness.method import Found, Radii, Robustness
from holdfast.robustness.minnorm import MinNorm
from holdfast.robustness.pgd import PGD
from holdfast.robustness.rows import Rows

METHODS: tuple[type[Robustness], ...] = (MinNorm, Judge, PGD, Linear)
"""Every method, for listings and for the tests that hold all of them to the same laws."""

__all__ = ["METHODS", "PGD", "Found", "Judge", "Linear", "MinNorm", "Radii", "Robustness", "Rows"]
