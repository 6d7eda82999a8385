"""Errors about estimators that cannot be read."""

from __future__ import annotations

from typing import Any

from holdfast.errors import HoldfastError


class UnreadableError(HoldfastError):
    """The classifier is of a kind that is not read, but it can be asked as a function."""


def refused(estimator: Any, why: str) -> HoldfastError:
    """Return the error for a classifier that is refused, with the way that is left."""
    name = type(estimator).__name__
    return UnreadableError(
        f"cannot read this {name}: {why}; use hf.FunctionModel(estimator.predict_proba, ...) instead."
    )


def refused_step(step: Any, why: str) -> HoldfastError:
    """Return the error for a step of a pipeline that is refused, with the ways that are left."""
    name = type(step).__name__
    return UnreadableError(
        f"cannot fold the step {name} of this pipeline: {why}; apply it before and pass the classifier alone, or use "
        "hf.FunctionModel(estimator.predict_proba, ...) instead."
    )
