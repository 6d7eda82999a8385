"""Analyses: what many rankings and curves say together. Each returns a result with ``table()`` and ``plot(ax)``."""

from holdfast.analyses.agreement import Agreement, Marks, agreement
from holdfast.analyses.diagnostics import Diagnostics, diagnostics
from holdfast.analyses.reference_values import REFERENCES, ReferenceValues, reference_values
from holdfast.analyses.result import Result, bootstrap
from holdfast.analyses.runtime import Runtime, runtime
from holdfast.analyses.sanity import Sanity, sanity
from holdfast.analyses.sensitivity import Sensitivity, sensitivity
from holdfast.analyses.significance import Comparison, Significance, holm, significance

__all__ = [
    "REFERENCES",
    "Agreement",
    "Comparison",
    "Diagnostics",
    "Marks",
    "ReferenceValues",
    "Result",
    "Runtime",
    "Sanity",
    "Sensitivity",
    "Significance",
    "agreement",
    "bootstrap",
    "diagnostics",
    "holm",
    "reference_values",
    "runtime",
    "sanity",
    "sensitivity",
    "significance",
]
