"""Errors about estimators that cannot be read."""

from __future__ import annotations

from typing import Any

from holdfast.errors import UnreadableError
from holdfast.tree_ensembles.encoders import refused_step as refused_step


def refused(estimator: Any, why: str) -> UnreadableError:
    """Return the error for a classifier that is refused, with the way that is left."""
    name = type(estimator).__name__
    return UnreadableError(
        f"cannot read this {name}: {why}; use hf.FunctionModel(estimator.predict_proba, ...) instead."
    )
