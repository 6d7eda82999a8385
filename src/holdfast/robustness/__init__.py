"""Robustness-S: the smallest perturbation inside a feature subset that changes a decision."""

from holdfast.robustness.judge import Judge
from holdfast.robustness.linear import ExactLinear
from holdfast.robustness.method import Found, Radii, Robustness
from holdfast.robustness.minnorm import MinNorm
from holdfast.robustness.pgd import PGD
from holdfast.robustness.rows import Rows

__all__ = ["PGD", "ExactLinear", "Found", "Judge", "MinNorm", "Radii", "Robustness", "Rows"]
