"""One voice for everything that goes wrong: what was expected, what came, what to do."""

from __future__ import annotations


class HoldfastError(ValueError):
    """Bad input or an impossible request. The message is one clear sentence."""


class HoldfastWarning(UserWarning):
    """Work goes on, but the answer means less than it seems to."""
