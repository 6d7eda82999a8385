"""Radii as text and as a figure: what is known, what is censored, what is proven."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import holdfast as hf
from toys import small_net


def _radii(radius: list[list[float]], bound: Any = "upper", proven: Tensor | None = None, lower: Any = 0.0) -> hf.Radii:
    values = torch.tensor(radius)
    proven = torch.zeros_like(values, dtype=torch.bool) if proven is None else proven
    witness = torch.zeros(*values.shape, 2)
    classes = torch.where(values.isinf(), -1, 1)
    lowest = torch.as_tensor(lower).expand_as(values)
    return hf.Radii(values, witness, classes, proven, bound, hf.Queries(), "Method(\x1b)", lowest)


def _labels(plot: Any) -> set[str]:
    return {text.get_text() for legend in plot.legends for text in legend.get_texts()}


def test_the_text_counts_what_has_no_radius() -> None:
    radii = _radii([[1.0, math.inf], [2.5, math.inf]], proven=torch.tensor([[False, False], [False, True]]))
    expected = r"Radii(2 cases x 2 subsets, upper bounds from 1 to 2.5, 1 censored, 1 unreachable, by Method(\x1b))"
    assert repr(radii) == expected
    assert repr(_radii([[math.inf]])) == r"Radii(1 case x 1 subset, upper bounds, 1 censored, by Method(\x1b))"
    assert repr(_radii([[1.0]], "exact")).startswith("Radii(1 case x 1 subset, exact from 1 to 1, by")


def test_measured_radii_are_drawn_one_by_one() -> None:
    x = torch.rand(3, 12, generator=torch.Generator().manual_seed(0))
    cases = hf.TorchModel(small_net(), (0, 1)).ask(x)
    radii = hf.MinNorm(steps=10)(cases, hf.Grad()(cases).top([3, 6, 9, 12]))
    plot = radii.plot()
    drawn = [value for line in plot.axes[0].lines for value in np.asarray(line.get_ydata()).tolist()]
    finite = radii.radius[~radii.radius.isinf()].tolist()
    assert set(finite) <= set(drawn)
    assert len(drawn) == radii.radius.numel()
    assert "upper bound" in _labels(plot)


def test_each_kind_has_its_own_mark() -> None:
    proven = torch.tensor([[True, False, False, True]])
    radii = _radii([[1.0, 2.0, math.inf, math.inf]], "exact", proven, torch.tensor([[1.0, 1.5, 0.5, math.inf]]))
    plot = radii.plot(["a", "<b>", "$c$", "d\x1b"])
    kinds = {"exact radius", "upper bound", "proven lower bound", "no change found", "proven: no change exists"}
    assert _labels(plot) == kinds
    [ax] = plot.axes
    marks = {str(line.get_label()): line for line in ax.lines}
    assert np.asarray(marks["proven lower bound"].get_ydata()).tolist() == [1.5, 0.5], (
        "not where the radius itself is proven"
    )
    assert len({str(line.get_marker()) + str(line.get_markerfacecolor()) for line in ax.lines}) == 5
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "<b>", r"\$c\$", r"d\x1b"]
    assert plot._repr_png_()


def test_lower_bounds_are_called_so() -> None:
    radii = replace(_radii([[0.5]], "lower", torch.tensor([[True]])), lower=torch.tensor([[0.5]]))
    assert _labels(radii.plot()) == {"proven lower bound"}


@pytest.mark.parametrize("radius", [[[math.inf]], [[0.0]], [[1.0] * 60]])
def test_unusual_radii_are_drawn(radius: list[list[float]]) -> None:
    assert _radii(radius).plot()._repr_png_()


@pytest.mark.parametrize("names", [["one"], "ab", 3, ["a", "b", "c"]])
def test_names_must_fit(names: Any) -> None:
    with pytest.raises(hf.HoldfastError, match="names must be one text for each of 2 subsets"):
        _radii([[1.0, 2.0]]).plot(names)
