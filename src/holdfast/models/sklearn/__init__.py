"""Fitted classifiers of scikit-learn as models."""

from holdfast.models.sklearn.estimators import from_sklearn

__all__ = ["from_sklearn"]
