"""The version of the package and of its results."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("holdfast")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

RESULTS = 8
"""Raised by every change of what an explainer or a criterion returns, so that stored results are computed again."""
