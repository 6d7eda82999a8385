"""Checks for extensions: call them in the tests of your own explainers, criteria and robustness methods.

Each check runs small networks on the CPU and raises an ``AssertionError`` with one sentence that says which law is
broken. No test framework is needed.

>>> from holdfast.explainers.gradients import Grad
>>> check_explainer(Grad())
"""

from holdfast.testing.criteria import check_criterion as check_criterion
from holdfast.testing.explainers import check_explainer as check_explainer
from holdfast.testing.robustness import check_robustness as check_robustness
