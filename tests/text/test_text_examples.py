"""The examples in the docstrings of the text room run."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from holdfast.text import model, network, substitution, words


@pytest.mark.parametrize("module", [model, network, substitution, words], ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module: ModuleType) -> None:
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
