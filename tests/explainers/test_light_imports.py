"""Explainers import heavy libraries only when they use them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("captum", "scipy", "transformers", "matplotlib", "pandas", "sklearn", "skimage", "quantus")


@pytest.mark.parametrize(
    "use",
    [
        "hf.GreedyAS, hf.Grad, hf.TorchModel, hf.DeepLift, hf.Lrp, hf.IntegratedGradients",
        "hf.Explainer.registry.classes(), hf.Criterion.registry.classes(), hf.Estimator.registry.classes()",
    ],
)
def test_naming_explainers_imports_nothing_heavy(use: str) -> None:
    code = f"import sys, holdfast as hf; {use}; print(*(set({HEAVY!r}) & sys.modules.keys()))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []
