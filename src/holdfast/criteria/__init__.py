"""Criteria: a number for each subset of features that an explanation calls relevant."""

from holdfast.criteria.criterion import Criterion, Marginals
from holdfast.criteria.removal import Deletion, Insertion
from holdfast.criteria.robust import PerturbRelevant, PerturbRest

CRITERIA: tuple[type[Criterion], ...] = (PerturbRest, PerturbRelevant, Insertion, Deletion)
"""Every criterion, for listings and for the tests that hold all of them to the same laws."""

__all__ = ["CRITERIA", "Criterion", "Deletion", "Insertion", "Marginals", "PerturbRelevant", "PerturbRest"]
