"""The laws that extensions must obey, as functions to call in their tests."""

from holdfast.testing.robustness import check_robustness as check_robustness
