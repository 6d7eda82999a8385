from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy import stats

import holdfast as hf
from holdfast.analyses import bootstrap, holm, significance
from holdfast.palette import OTHER, RELEVANT


def _values(cases: int = 30) -> dict[str, dict[str, torch.Tensor]]:
    drawn = torch.randn(4, cases, generator=torch.Generator().manual_seed(0))
    base = drawn[3] * 5 + 100
    return {
        "S̄r": {"ours": base + 2 + drawn[0], "weak": base, "same": base + 2 + drawn[0]},
        "Sr": {"ours": base, "weak": base + 3 + drawn[1], "strong": base - 3 + drawn[2]},
    }


HIGHER = {"S̄r": True, "Sr": False}


def test_p_values_are_scipys_paired_tests() -> None:
    values = _values()
    first = significance(values, "ours", HIGHER).comparisons[0]
    ours, weak = (values["S̄r"][name].double().numpy() for name in ("ours", "weak"))
    assert first.p_t == pytest.approx(stats.ttest_rel(ours, weak).pvalue)
    assert first.t == pytest.approx(stats.ttest_rel(ours, weak).statistic)
    assert first.p_wilcoxon == pytest.approx(stats.wilcoxon(ours, weak).pvalue)
    assert first.gain == pytest.approx(float(np.mean(ours - weak)))
    assert first.ratio == pytest.approx(ours.mean() / weak.mean())
    assert first.interval == pytest.approx(bootstrap(torch.as_tensor(ours - weak)))
    assert first.interval[0] < first.gain < first.interval[1]
    assert first.ratio_interval[0] < first.ratio < first.ratio_interval[1]


def test_corrected_values_are_holms_over_all_comparisons() -> None:
    every = significance(_values(), "ours", HIGHER).comparisons
    assert [c.holm_t for c in every] == pytest.approx(holm([c.p_t for c in every]))
    assert [c.holm_wilcoxon for c in every] == pytest.approx(holm([c.p_wilcoxon for c in every]))
    nearly = {"S̄r": {"ours": torch.tensor([0.2, 1.0, 1.4, 0.1, 0.9, -0.3, 0.5, 0.6])}}
    nearly["S̄r"] |= {f"other {k}": torch.zeros(8) + 0.01 * k for k in range(6)}
    told = significance(nearly, "ours", HIGHER)
    assert told.counts()["win"] == 6
    assert told.counts(corrected=True)["draw"] == 6


def test_a_ratio_of_means_that_are_not_positive_is_undefined() -> None:
    only = significance({"S̄r": {"ours": torch.tensor([1.0, 2.0]), "weak": torch.tensor([-3.0, 1.0])}}, "ours", HIGHER)
    assert only.table()[0]["ratio of means"] is None
    for wrong in ({"level": 5.0}, {"resamples": 0}):
        with pytest.raises(hf.HoldfastError, match="level must be between 0 and 1"):
            significance(_values(), "ours", HIGHER, **wrong)


def test_wins_draws_and_losses_follow_the_direction_of_the_criterion() -> None:
    result = significance(_values(), "ours", HIGHER)
    told = {(c.criterion, c.other): c.verdict for c in result.comparisons}
    assert told == {("S̄r", "weak"): "win", ("S̄r", "same"): "draw", ("Sr", "weak"): "win", ("Sr", "strong"): "loss"}
    assert result.counts() == {"win": 2, "draw": 1, "loss": 1, "undefined": 0}
    assert len(result.table()) == 4
    result.draw(Figure().add_subplot())


def test_an_interval_holds_the_mean_and_shrinks_with_cases() -> None:
    few, many = (bootstrap(torch.randn(n, generator=torch.Generator().manual_seed(1)) + 1) for n in (20, 2000))
    assert few[0] < 1 < few[1]
    assert many[0] < 1.05
    assert many[1] > 0.95
    assert many[1] - many[0] < (few[1] - few[0]) / 3


def test_bootstrap_covers_as_often_as_it_says() -> None:
    """95 % intervals of the mean of 40 normal numbers; the percentile bootstrap is a little short of that."""
    generator = torch.Generator().manual_seed(2)
    inside = 0
    for trial in range(200):
        low, high = bootstrap(torch.randn(40, generator=generator), 1000, seed=trial)
        inside += low <= 0 <= high
    assert 0.88 <= inside / 200 <= 0.99


def test_one_case_is_undefined_and_not_a_draw() -> None:
    result = significance({"S̄r": {"ours": torch.ones(1), "weak": torch.zeros(1)}}, "ours", HIGHER)
    only = result.comparisons[0]
    assert only.verdict == only.corrected == "undefined"
    row = result.table()[0]
    assert row["p"] is None
    assert row["low"] is None
    assert row["gain"] == 1
    result.draw(Figure().add_subplot())


def test_values_that_are_not_finite_are_left_out_and_counted() -> None:
    values = _values()
    values["S̄r"]["weak"][:4] = math.inf
    first = significance(values, "ours", HIGHER).comparisons[0]
    assert (first.cases, first.excluded) == (26, 4)
    assert math.isfinite(first.gain)


def test_the_same_gain_everywhere_is_as_sure_as_can_be() -> None:
    base = torch.arange(8.0)
    only = significance({"S̄r": {"ours": base + 1, "weak": base}}, "ours", HIGHER).comparisons[0]
    assert only.verdict == "win"
    assert only.p_t == 0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    corrected = holm([0.01, math.nan, 0.5])
    assert corrected[0] == pytest.approx(0.02)
    assert math.isnan(corrected[1])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_ordered_and_between_raw_and_bonferroni(p: list[float]) -> None:
    corrected = holm(p)
    for raw, new in zip(p, corrected, strict=True):
        assert raw <= new <= min(1.0, raw * len(p)) + 1e-12
    assert [x for _, x in sorted(zip(p, corrected, strict=True))] == sorted(corrected)


def test_what_does_not_pair_is_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="paired tests need one value for each of the same cases"):
        significance({"S̄r": {"ours": torch.ones(3), "weak": torch.ones(4)}}, "ours", HIGHER)
    with pytest.raises(hf.HoldfastError, match="nothing to compare"):
        significance({"S̄r": {"ours": torch.ones(3)}}, "ours", HIGHER)
    with pytest.raises(hf.HoldfastError, match="needs values of 'mine'"):
        significance({"S̄r": {"ours": torch.ones(3)}}, "mine", HIGHER)


def test_every_pair_is_tested_and_corrected_together() -> None:
    drawn = torch.rand(3, 20, generator=torch.Generator().manual_seed(0))
    values = {"A": {name: drawn[place] + place for place, name in enumerate("xyz")}}
    tests = significance(values, None, {"A": True})
    assert [(c.method, c.other) for c in tests.comparisons] == [("x", "y"), ("x", "z"), ("y", "z")]
    alone = significance(values, "x", {"A": True}).comparisons
    assert [c.p_t for c in tests.comparisons[:2]] == [c.p_t for c in alone]
    assert [c.holm_t for c in tests.comparisons] == holm([c.p_t for c in tests.comparisons])


def test_its_figure_shows_which_differences_hold() -> None:
    noise = torch.rand(20, generator=torch.Generator().manual_seed(0))
    values = {name: {"$a$": noise, "b": noise + 1 + 0.1 * noise.flip(0), "c": noise.flip(0)} for name in ("A", "B")}
    tests = significance(values, "$a$", {"A": True, "B": False})
    plot = tests.plot()
    assert [ax.get_title(loc="left") for ax in plot.axes] == ["A", "B"]
    for ax in plot.axes:
        assert [patch.get_facecolor() for patch in ax.patches] == [to_rgba(RELEVANT), to_rgba(OTHER)]
        assert ax.get_xlabel() == r"gain of \$a\$"
    assert plot._repr_png_()
