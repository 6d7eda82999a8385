"""Seconds and rows of explainers."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import holdfast as hf
from analyses.small import small_cases
from holdfast.analyses.runtime import runtime


def test_runtime_counts_rows_and_seconds() -> None:
    result = runtime(small_cases(), {"Grad": hf.Grad(), "IG": hf.IntegratedGradients(steps=7)}, repeats=2)
    rows = {row["explainer"]: row for row in result.table()}
    assert rows["Grad"]["rows a case"] == 1
    assert rows["IG"]["rows a case"] == rows["IG"]["of them with gradient"] == 7
    assert 0 < rows["IG"]["fastest"] <= rows["IG"]["s a case"] <= rows["IG"]["slowest"]
    assert rows["IG"]["repetitions"] == 2
    result.draw(Figure().add_subplot())
    with pytest.raises(hf.HoldfastError, match="at least one explainer"):
        runtime(small_cases(), {})
