"""Experiments: what was computed is kept, and only what is missing is computed."""

from holdfast.experiment.engine import Engine, Local
from holdfast.experiment.run import Progress, Summary, run
from holdfast.experiment.store import Store, Unit
from holdfast.experiment.study import (
    DiagnosticsCheck,
    Gallery,
    Measure,
    Method,
    References,
    SanityCheck,
    SensitivityCheck,
    Study,
)

__all__ = [
    "DiagnosticsCheck",
    "Engine",
    "Gallery",
    "Local",
    "Measure",
    "Method",
    "Progress",
    "References",
    "SanityCheck",
    "SensitivityCheck",
    "Store",
    "Study",
    "Summary",
    "Unit",
    "run",
]
