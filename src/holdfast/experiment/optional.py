"""Methods that an experiment leaves out where they do not fit its model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.experiment.study import Method
from holdfast.models.model import Model


def fitting(
    methods: Sequence[Method], optional: Collection[str], model: Model
) -> tuple[tuple[Method, ...], dict[str, str]]:
    """Leave out the optional methods that a model gives too little access, or that explain other models only.

    Args:
        methods: The methods of the experiment.
        optional: Names of those that may be left out. Others stay, and fail when they are computed.
        model: The model.

    Returns:
        The methods that stay, and what the report says about the others.
    """
    reasons = {method.name: _reason(method, model) for method in methods if method.name in optional}
    told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items() if reason)
    stay = tuple(method for method in methods if not reasons.get(method.name))
    return stay, {"left out": told} if told else {}


def _reason(method: Method, model: Model) -> str:
    """Return why a method does not fit a model; empty if it does."""
    for explainer in method.explainers.values():
        used = explainer.adapted(model)
        if used.needs > model.access:
            return f"needs {used.needs}"
        if refusal := used.refusal(model):
            return refusal.rstrip(".")
    return ""
