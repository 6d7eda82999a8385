"""The package's version, readable without an installation."""

__version__ = "0.1.0"

RESULTS = 4
"""Raised with every change that alters what an explainer or a criterion returns: stored results are then made anew."""
