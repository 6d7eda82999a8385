"""Analyses of many rankings and curves. Each function returns a result with ``table()`` and ``plot()``."""

from holdfast.analyses.agreement import Agreement as Agreement
from holdfast.analyses.agreement import Marks as Marks
from holdfast.analyses.agreement import agreement as agreement
from holdfast.analyses.analysis import Analysis as Analysis
from holdfast.analyses.diagnostics import Diagnostics as Diagnostics
from holdfast.analyses.diagnostics import diagnostics as diagnostics
from holdfast.analyses.intervals import bootstrap as bootstrap
from holdfast.analyses.reference_values import REFERENCES as REFERENCES
from holdfast.analyses.reference_values import ReferenceValues as ReferenceValues
from holdfast.analyses.reference_values import reference_values as reference_values
from holdfast.analyses.result import Result as Result
from holdfast.analyses.runtime import Runtime as Runtime
from holdfast.analyses.runtime import runtime as runtime
from holdfast.analyses.sanity import Sanity as Sanity
from holdfast.analyses.sanity import sanity as sanity
from holdfast.analyses.sensitivity import Sensitivity as Sensitivity
from holdfast.analyses.sensitivity import sensitivity as sensitivity
from holdfast.analyses.significance import Comparison as Comparison
from holdfast.analyses.significance import Significance as Significance
from holdfast.analyses.significance import holm as holm
from holdfast.analyses.significance import significance as significance
