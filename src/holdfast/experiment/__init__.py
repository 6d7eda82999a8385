"""Experiments: what was computed is kept, and only what is missing is computed."""

from holdfast.experiment.store import Store, Unit

__all__ = ["Store", "Unit"]
