"""Masks, counterfactuals and anchors: the explainers that search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.explainers.anchor import _divergence, _edge
from holdfast.models.torch import layers_of
from holdfast.reference import reference_points
from toys import small_net

# ---------------------------------------------------------------------- meaningful perturbations


def _images() -> hf.Cases:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)).double().eval()
    return hf.TorchModel(net.requires_grad_(False), (0, 1)).ask(torch.rand(3, 1, 8, 8).double())


def _objective(cases: hf.Cases, masked: Tensor, explainer: hf.Bbmp) -> Tensor:
    """Fong & Vedaldi's loss, written again: L1 + TV + probability."""
    kept = (1 - masked).reshape(len(cases), 1, 8, 8)
    points = reference_points(cases, "blur")
    share: Tensor = layers_of(cases.model).module(kept * cases.x + (1 - kept) * points).softmax(1)
    own = share.gather(1, cases.label[:, None])[:, 0]
    rough = torch.stack([kept.diff(dim=side).abs().pow(3).mean((1, 2, 3)) for side in (2, 3)]).sum(0)
    return own + explainer.l1 * masked.mean(1) + explainer.tv * rough


def test_bbmp_descends_its_objective() -> None:
    cases = _images()
    weighed = hf.Bbmp(l1=0.5, tv=1.0, steps=300)
    result = _objective(cases, weighed.attribute(cases), weighed)
    for simple in (torch.zeros(3, 64), torch.ones(3, 64), torch.full((3, 64), 0.5)):
        assert bool((result <= _objective(cases, simple.double(), weighed) + 1e-6).all())


def test_bbmps_first_step_follows_the_gradient_of_its_objective() -> None:
    """Adam's first step is the sign of the gradient, which autograd tells independently."""
    cases = _images()
    explainer = hf.Bbmp(l1=0.5, tv=1.0, steps=1, rate=0.1)
    masked = torch.ones(3, 64, dtype=torch.double, requires_grad=True)
    (slope,) = torch.autograd.grad(_objective(cases, masked, explainer).sum(), masked)
    expected = (1 - 0.1 * slope.sign()).clamp(0, 1)
    torch.testing.assert_close(explainer.attribute(cases), expected, atol=1e-5, rtol=0)


def test_bbmp_roughness_slope_is_that_of_autograd() -> None:
    cases = _images()
    explainer = hf.Bbmp(tv=2.0)
    kept = torch.rand(3, 64, generator=torch.Generator().manual_seed(1)).double().requires_grad_()
    picture = kept.reshape(3, 1, 8, 8)
    rough = torch.stack([picture.diff(dim=side).abs().pow(3).mean((1, 2, 3)).sum() for side in (2, 3)]).sum()
    (slope,) = torch.autograd.grad(2.0 * rough, kept)
    torch.testing.assert_close(explainer._roughness_slope(cases, kept.detach()), slope)


def test_bbmp_blends_towards_its_reference() -> None:
    short: dict[str, Any] = {"steps": 40, "l1": 0.2}
    masks = [hf.Bbmp(reference, **short).attribute(_images()) for reference in ("blur", "uniform", 0.5)]
    assert not any(torch.allclose(masks[i], masks[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    torch.testing.assert_close(hf.Bbmp(**short).attribute(_images()), masks[0])


def test_bbmp_roughness_ignores_what_never_moves_and_how_ids_broadcast() -> None:
    cases = _images()
    columns = cases.model.ask(cases.x, features=hf.Features.of(torch.arange(8).reshape(1, 1, 1, 8)))
    whole = cases.model.ask(cases.x, features=hf.Features.of(torch.arange(8).expand(1, 8, 8)))
    kept = torch.rand(3, 8, generator=torch.Generator().manual_seed(1)).double()
    explainer = hf.Bbmp(tv=2.0)
    torch.testing.assert_close(explainer._roughness_slope(columns, kept), explainer._roughness_slope(whole, kept))
    ids = torch.arange(64).reshape(1, 8, 8).clone()
    ids[0, :, 4] = -1
    fixed = cases.model.ask(cases.x, features=hf.Features.of(ids))
    still = torch.zeros(3, 64).double()
    still[:, 0] = 1  # the value that spreads to what never moves
    slope = explainer._roughness_slope(fixed, still)
    assert slope.nonzero()[:, 1].unique().tolist() == [0, 1, 8]


# ---------------------------------------------------------------------- counterfactuals


def test_the_top_k_hold_a_counterfactual_as_long_as_one_was_found() -> None:
    x = torch.rand(4, 12, generator=torch.Generator().manual_seed(0)).double()
    cases = hf.TorchModel(small_net()).ask(x)
    ranking = hf.Counterfactual(step=2)(cases)
    top = ranking.top([4, 6, 8, 10, 12])
    radius = hf.MinNorm(steps=60)(cases, top).radius
    assert bool(torch.isfinite(radius).all())
    assert bool((radius[:, :-1] >= radius[:, 1:]).all())


def test_counterfactuals_of_a_linear_model_need_its_steepest_features_longest() -> None:
    net = nn.Linear(12, 2).double().eval().requires_grad_(False)
    cases = hf.TorchModel(net).ask(torch.rand(3, 12).double())
    steepest = (net.weight[0] - net.weight[1]).abs().argsort(descending=True)
    assert torch.equal(hf.Counterfactual(step=1)(cases).order, steepest.expand(3, -1))


def test_a_decision_that_never_changes_has_no_counterfactual() -> None:
    net = nn.Linear(12, 2).double().eval().requires_grad_(False)
    net.weight.zero_()
    with pytest.raises(hf.HoldfastError, match="no change of the decision was found for any of the 2 cases"):
        hf.Counterfactual()(hf.TorchModel(net, (0, 1)).ask(torch.rand(2, 12)))


def test_a_case_without_a_counterfactual_is_named() -> None:
    net = nn.Linear(2, 2).double().eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    net.bias.copy_(torch.tensor([0.0, 0.5]))
    model = hf.TorchModel(net, (torch.tensor([0.0, 0.0]), torch.tensor([1.0, 1.0])))
    x = torch.tensor([[0.9, 0.5], [0.1, 0.5]]).double()
    ids = torch.tensor([[0, 1], [-1, 0]])  # the second case may not move what matters
    ranking = hf.Counterfactual(step=1)(model.ask(x, features=hf.Features.of(ids)))
    assert ranking.notes == ("no change of the decision was ever found for case 1: its order means nothing.",)
    assert ranking.uninformative.tolist() == [False, True]


def test_a_decision_that_is_another_already_is_said() -> None:
    model = hf.TorchModel(small_net())
    x = torch.rand(2, 12).double()
    ranking = hf.Counterfactual()(model.ask(x, label=(model(x).argmax(1) + 1) % 4))
    assert "is the decision another one already?) for case 0, 1" in ranking.notes[0]
    assert ranking.uninformative.tolist() == [True, True]


# ---------------------------------------------------------------------- anchors


def _both_high(rows: Tensor) -> Tensor:
    return ((rows[:, 1] > 0.5) & (rows[:, 3] > 0.5)).astype(int)  # type: ignore[attr-defined, no-any-return]  # numpy rows


def _table() -> tuple[hf.Cases, Tensor]:
    rows = torch.rand(400, 6, generator=torch.Generator().manual_seed(0))
    x = torch.tensor([[0.5, 0.9, 0.5, 0.9, 0.5, 0.5], [0.5, 0.1, 0.5, 0.9, 0.5, 0.5]])
    return hf.FunctionModel(_both_high, (0, 1), classes=2).ask(x), rows


def test_an_anchor_names_the_columns_a_rule_reads() -> None:
    cases, rows = _table()
    both, one = hf.Anchor(references=rows).find(cases)
    assert set(both.features) == {1, 3}
    assert one.features == (1,)
    assert both.is_anchor
    assert one.is_anchor
    assert both.precision == 1
    agree = (rows[:, 1] > rows[:, 1].quantile(0.75)) & (rows[:, 3] > rows[:, 3].quantile(0.75))
    assert both.coverage == pytest.approx(float(agree.float().mean()))


def test_the_rule_comes_first_in_the_ranking_and_is_told() -> None:
    cases, rows = _table()
    ranking = hf.Anchor(references=rows)(cases)
    assert set(ranking.order[0, :2].tolist()) == {1, 3}
    assert int(ranking.order[1, 0]) == 1
    assert ranking.notes[0].startswith("case 0: an anchor of 2 features has precision 1.000")


def test_without_data_features_fall_back_to_the_reference() -> None:
    cases, _ = _table()
    both = hf.Anchor(swap=0.25).find(cases)[0]
    assert set(both.features) == {1, 3}
    assert both.coverage == pytest.approx(0.75**2)


def test_a_precise_enough_rule_is_not_lost_to_an_unlucky_draw() -> None:
    """Of the neighbours that keep column 0, 97 % keep the decision."""
    rows = torch.rand(2000, 5, generator=torch.Generator().manual_seed(0))

    def decide(inputs: np.ndarray) -> np.ndarray:
        return ((inputs[:, 0] > 0.5) & (inputs[:, 1] > 0.03)).astype(int)

    cases = hf.FunctionModel(decide, (0, 1), classes=2).ask(torch.full((1, 5), 0.9))
    result = [hf.Anchor(references=rows, seed=seed).find(cases)[0].features for seed in range(12)]
    assert result == [(0,)] * 12


def test_where_nothing_matters_the_empty_rule_holds() -> None:
    model = hf.FunctionModel(lambda rows: np.zeros(len(rows), int), (0, 1), classes=2)
    rule = hf.Anchor().find(model.ask(torch.rand(1, 6)))[0]
    assert (rule.features, rule.precision, rule.coverage, rule.is_anchor) == ((), 1.0, 1.0, True)


def test_too_many_features_for_a_round_are_refused() -> None:
    cases, _ = _table()
    with pytest.raises(hf.HoldfastError, match="6 features x 32 rows are over most_rows = 100"):
        hf.Anchor(most_rows=100)(cases)


def test_an_anchor_that_is_never_precise_enough_is_not_called_one() -> None:
    generator = torch.Generator().manual_seed(0)
    model = hf.FunctionModel(
        lambda rows: torch.randint(2, (len(rows),), generator=generator).numpy(), (0, 1), classes=2
    )
    ranking = hf.Anchor(most_features=2, most_rows=500)(model.ask(torch.rand(1, 4) + 0.0))
    assert "no anchor; the best rule of" in ranking.notes[0]


def test_a_targeted_anchor_keeps_the_target_away() -> None:
    cases, rows = _table()
    targeted = cases.model.ask(cases.x[:1], target=0)
    assert set(hf.Anchor(references=rows).find(targeted)[0].features) == {1, 3}


def test_an_input_that_is_its_reference_is_anchored_by_nothing() -> None:
    model = hf.FunctionModel(_both_high, (0, 1), classes=2)
    rule = hf.Anchor().find(model.ask(torch.zeros(1, 6)))[0]
    assert (rule.features, rule.coverage, rule.is_anchor) == ((), 1.0, True)


def test_the_bounds_of_a_precision_are_where_the_divergence_says() -> None:
    mean = torch.tensor([0.0, 0.3, 0.9, 1.0]).double()
    level = torch.tensor([0.05, 0.1, 0.2, 0.4]).double()
    low, high = _edge(mean, level, torch.zeros(4).double()), _edge(mean, level, torch.ones(4).double())
    assert float(low[0]) == 0
    assert float(high[3]) == 1
    for i in range(4):
        for edge in (float(low[i]), float(high[i])):
            if 0 < edge < 1 and edge != float(mean[i]):
                p = float(mean[i])
                kl = sum(a * math.log(a / b) for a, b in ((p, edge), (1 - p, 1 - edge)) if a > 0)
                assert kl == pytest.approx(float(level[i]), abs=1e-5)
    torch.testing.assert_close(_divergence(mean, mean), torch.zeros(4).double())


# ---------------------------------------------------------------------- black boxes


def test_decisions_must_be_decisions() -> None:
    x = torch.rand(2, 3)
    with pytest.raises(hf.HoldfastError, match=r"must return whole decisions \[R\]: .*float32 of shape"):
        hf.FunctionModel(lambda rows: rows[:, 0], classes=2).ask(x)
    with pytest.raises(hf.HoldfastError, match=r"must return whole decisions \[R\]: .* of shape \(7,\)"):
        hf.FunctionModel(lambda rows: rows[0, :1].repeat(7).astype(int), classes=2).ask(x)
    with pytest.raises(hf.HoldfastError, match="decisions from 0 to 1, it returned 5 to"):
        hf.FunctionModel(lambda rows: rows[:, 0].astype(int) + 5, classes=2).ask(x)
    with pytest.raises(hf.HoldfastError, match="the function returns texts: give the names of all classes"):
        hf.FunctionModel(lambda rows: np.array(["cat"] * len(rows)), classes=2).ask(x)
    with pytest.raises(hf.HoldfastError, match="classes must be a whole number >= 2"):
        hf.FunctionModel(lambda rows: rows, classes=1)
    with pytest.raises(hf.HoldfastError, match="expected a function"):
        hf.FunctionModel(3)  # type: ignore[arg-type]  # wrong on purpose


def test_probabilities_of_a_black_box_stay_probabilities() -> None:
    model = hf.FunctionModel(lambda rows: np.stack([rows[:, 0] > 0.5, rows[:, 0] <= 0.5], 1).astype(float), (0, 1))
    cases = model.ask(torch.tensor([[0.9, 0.3]]))
    assert hf.LeaveOneOut().attribute(cases).tolist() == [[1, 0]]


def test_a_black_box_of_scores_is_asked_in_numpy() -> None:
    model = hf.FunctionModel(lambda rows: rows[:, :3] * 2, (0, 1))
    x = torch.rand(4, 5)
    torch.testing.assert_close(model(x), 2 * x[:, :3])
    assert repr(model) == "FunctionModel(scores, bounds=(0, 1))"
    assert model.queries.gradient == 0


def test_radii_need_gradients() -> None:
    model = hf.FunctionModel(lambda rows: rows[:, :3] * 2, (0, 1))
    with pytest.raises(hf.HoldfastError, match="MinNorm needs gradients, and the FunctionModel gives only scores"):
        hf.MinNorm()(model.ask(torch.rand(1, 5)), torch.ones(1, 1, 5, dtype=torch.bool))
