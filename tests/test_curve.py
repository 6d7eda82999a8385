from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.criteria.criterion import Criterion
from toys import small_net


def _cases_and_ranking(bounds: tuple[float, float] | None = (0, 1)) -> tuple[hf.Cases, hf.Ranking]:
    cases = hf.TorchModel(small_net(), bounds).ask(torch.rand(4, 12, generator=torch.Generator().manual_seed(0)))
    return cases, hf.Grad()(cases)


def test_a_curve_is_the_criterion_along_the_sizes() -> None:
    cases, ranking = _cases_and_ranking()
    criterion = hf.RobustnessRest(hf.MinNorm())
    curve = hf.trace(cases, ranking, criterion, (0.25, 0.5))
    assert torch.equal(curve.values, criterion(cases, ranking.top((0.25, 0.5))))
    assert curve.explainer == "Grad(seed=0)"
    assert "MinNorm" in curve.criterion


def test_area_is_the_trapezoid_in_percent() -> None:
    values = torch.tensor([[1.0, 2.0, 4.0]])
    curve = hf.Curve(torch.tensor([0.05, 0.10, 0.20]), values, torch.full_like(values, 9), "", "")
    assert float(curve.auc()) == pytest.approx(5 * 1.5 + 10 * 3)


def test_censored_points_are_counted_and_capped_by_the_box() -> None:
    net = nn.Linear(4, 2, bias=False).eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[1.0, 1, 1, 1], [-1.0, -1, -1, -1]]))
    cases = hf.TorchModel(net, bounds=(0.1, 1)).ask(torch.full((1, 4), 0.5))
    ranking = hf.Ranking.by_score(cases, torch.arange(4.0)[None])
    curve = hf.trace(cases, ranking, hf.RobustnessRest(hf.MinNorm(steps=20)), (0.25, 0.75))
    assert bool(curve.censored.all())
    assert torch.allclose(curve.capped(), torch.tensor([[0.5 * math.sqrt(3), 0.5]]))
    assert bool(torch.isinf(curve.values).all()), "what was not found stays censored"


def test_without_bounds_a_censored_curve_has_no_area() -> None:
    values = torch.tensor([[1.0, math.inf]])
    with pytest.raises(hf.HoldfastError, match="1 of 2 points are censored"):
        hf.Curve(torch.tensor([0.1, 0.2]), values, torch.full_like(values, math.inf), "", "").auc()


def test_bad_input_is_refused() -> None:
    cases, ranking = _cases_and_ranking()
    for sizes in ((), (0.5, 0.25), (0.5, 0.5), (2, 1), (0, 1), (1, 0.5), (1, 13), (0.5, 1.5)):
        with pytest.raises(hf.HoldfastError):
            hf.trace(cases, ranking, hf.RobustnessRest(), sizes)
    with pytest.raises(hf.HoldfastError, match="the cases have"):
        hf.trace(cases[:2], ranking, hf.RobustnessRest())
    with pytest.raises(hf.HoldfastError, match="at least two sizes"):
        hf.trace(cases, ranking, hf.RobustnessRest(hf.MinNorm(steps=10)), (0.5,)).auc()


@dataclass(frozen=True)
class Size(Criterion):
    """A criterion that is never censored and has no ceiling."""

    higher_is_better: ClassVar[bool] = False

    def measure(self, cases: hf.Cases, relevant: Tensor, progress: object) -> Tensor:
        return relevant.sum(2).to(cases.x)


def test_any_criterion_can_be_traced() -> None:
    cases, ranking = _cases_and_ranking()
    assert hf.trace(cases, ranking, Size(), (0.25, 0.75)).auc().tolist() == [50 * 6] * 4


def test_a_point_at_which_nothing_can_move_has_no_value() -> None:
    cases, ranking = _cases_and_ranking()
    curve = hf.trace(cases, ranking, hf.RobustnessRest(hf.MinNorm(steps=10)), (0.25, 1.0))
    with pytest.raises(hf.HoldfastError, match="no feature is left to move"):
        curve.auc()


def test_a_ranking_of_other_features_is_refused() -> None:
    cases, ranking = _cases_and_ranking()
    with pytest.raises(hf.HoldfastError, match="cases with another number of features"):
        hf.trace(cases, replace(ranking, count=ranking.count - 1), hf.Insertion(0.0))


def test_one_size_arrays_classes_and_names_are_taken() -> None:
    cases, ranking = _cases_and_ranking()
    expected = hf.trace(cases, ranking, hf.Insertion(), (0.2,))
    for criterion in (hf.Insertion, "insertion"):
        curve = hf.trace(cases, ranking, criterion, 0.2)
        assert curve.criterion == expected.criterion
        assert torch.equal(curve.values, expected.values)
    assert hf.trace(cases, ranking, hf.Insertion, 3).sizes.tolist() == [3]
    assert hf.trace(cases, ranking, hf.Insertion, np.arange(1, 4)).sizes.tolist() == [1, 2, 3]
    assert hf.trace(cases, ranking, hf.Insertion, np.array([0.25, 0.5])).sizes.tolist() == [0.25, 0.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cases": torch.rand(4, 12)}, r"expected cases, made by model\.ask\(x\), got Tensor"),
        ({"ranking": hf.Grad()}, r"expected a ranking, made by explainer\(cases\) or Ranking\.by_score, got Grad"),
        ({"ranking": torch.rand(4, 12)}, "expected a ranking"),
        ({"criterion": hf.MinNorm()}, "expected a holdfast criterion, got MinNorm"),
        ({"criterion": "insertoin"}, "there is no criterion 'insertoin': did you mean insertion"),
        ({"sizes": "20%"}, "sizes must be"),
        ({"sizes": True}, "sizes must be"),
        ({"sizes": [0.5, 5]}, "sizes must be rising"),
    ],
)
def test_what_is_mixed_up_is_refused_in_one_sentence(arguments: dict[str, Any], message: str) -> None:
    cases, ranking = _cases_and_ranking()
    with pytest.raises(hf.HoldfastError, match=message) as caught:
        hf.trace(**{"cases": cases, "ranking": ranking, "criterion": hf.Insertion(), **arguments})
    assert "\n" not in str(caught.value)


def test_its_text_is_short_and_its_plot_has_the_mean() -> None:
    cases, ranking = _cases_and_ranking()
    curve = hf.trace(cases, ranking, hf.Insertion(0.0), (0.25, 0.5))
    first, last = curve.values.mean(0).tolist()
    expected = f"Curve(Insertion, 4 cases, 2 sizes from 25% to 50%, mean {first:.4g} to {last:.4g}, by Grad(seed=0))"
    assert repr(curve) == expected
    [ax] = curve.plot().axes
    assert [np.asarray(line.get_ydata()).tolist() for line in ax.lines[:4]] == curve.values.tolist()
    assert np.asarray(ax.lines[4].get_ydata()).tolist() == pytest.approx([first, last])
    assert ax.get_ylabel() == "Insertion"


def test_a_plot_marks_sizes_with_censored_cases() -> None:
    values = torch.tensor([[1.0, math.inf, 2.0], [1.0, 2.0, 2.0]])
    curve = hf.Curve(torch.tensor([1, 2, 3]), values, torch.full_like(values, 4), "A\x1b(b)", "<script>$x$")
    assert repr(curve) == r"Curve(A\x1b, 2 cases, 3 sizes from 1 to 3, mean 1 to 2, 1 censored, by <script>$x$)"
    plot = curve.plot()
    [ax] = plot.axes
    rings = ax.lines[-1]
    assert (np.asarray(rings.get_xdata()).tolist(), np.asarray(rings.get_ydata()).tolist()) == ([2], [3])
    assert "ring: no change found in some cases" in ax.get_title(loc="left")
    assert plot._repr_png_()
    assert hf.Curve(torch.tensor([0.5]), values[:1, :1], values[:1, :1], "", "").plot()._repr_png_()
