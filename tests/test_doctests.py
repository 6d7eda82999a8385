"""The examples in docstrings run, with ``hf`` and ``torch`` at hand."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import torch

import holdfast as hf

MODULES = [
    module.name
    for module in pkgutil.walk_packages(hf.__path__, "holdfast.")
    if module.name not in ("holdfast.__main__", "holdfast.interop.quantus", "holdfast.kernels")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"hf": hf, "torch": torch}, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
