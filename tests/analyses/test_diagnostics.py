"""Radii of one search against those of the judge."""

from __future__ import annotations

import math

import pytest
import torch
from matplotlib.figure import Figure

import holdfast as hf
from analyses.small import small_cases
from holdfast import analyses
from holdfast.analyses.diagnostics import Diagnostics, diagnostics


def test_diagnostics_hold_one_search_against_the_judge() -> None:
    cases = small_cases()
    sizes = (0.1, 0.3, 0.5, 0.9)
    result = diagnostics(
        cases, hf.Grad()(cases), sizes=sizes, judge=hf.Judge.quick(), search=hf.MinNorm(steps=10), seeds=2
    )
    assert result.judged.shape == (4, 4)
    assert result.searched.shape == (2, 4, 4)
    both = torch.isfinite(result.gap())
    assert float(result.gap()[both].min()) > 0.99  # the judge is hardly ever looser
    violations = result.violations()
    assert bool(violations[0].isnan())
    assert bool(((violations[1:] >= 0) & (violations[1:] <= 1)).all())
    with pytest.raises(hf.HoldfastError, match="sizes must rise"):
        diagnostics(cases, hf.Grad()(cases), sizes=(0.5, 0.1))
    assert [row["held"] for row in result.table()] == list(sizes)
    result.draw(Figure().add_subplot())
    with pytest.raises(hf.HoldfastError, match="at least two seeds"):
        diagnostics(cases, hf.Grad()(cases), seeds=1)


def test_diagnostics_of_nothing_found_are_none_and_not_zero() -> None:
    inf = torch.full((2, 3), math.inf)
    result = analyses.Diagnostics((0.1, 0.2, 0.3), inf, inf.expand(2, 2, 3), inf, torch.ones(2, 3), "judge", "search")
    row = result.table()[0]
    assert row["censored by the judge"] == 1
    assert row["one search / judge, mean"] is None
    assert row["largest / smallest of seeds, mean"] is None
    result.draw(Figure().add_subplot())


def test_a_judge_that_found_nothing_is_no_ratio() -> None:
    judged, searched = torch.tensor([[math.inf], [2.0]]), torch.tensor([[[1.0], [3.0]]] * 2)
    result = analyses.Diagnostics((0.1,), judged, searched, judged, torch.ones(2, 1), "judge", "search")
    assert result.table()[0]["one search / judge, mean"] == 1.5
    assert result.table()[0]["of ratios"] == 2


def test_violations_are_counted_where_sizes_really_differ() -> None:
    radius = torch.tensor([[1.0, 0.5, 0.5], [1.0, 2.0, 1.0]])
    moving = torch.tensor([[9, 8, 8], [9, 8, 7]])
    found = Diagnostics((0.1, 0.2, 0.3), radius, radius[None], radius, moving, "", "").violations()
    assert bool(found[0].isnan())
    assert found[1:].tolist() == [0.5, 1.0]
