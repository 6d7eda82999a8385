"""The rule by which each explainer orders features: sign, channels, ties. docs/explainers.md states them."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf

EXPLAINERS = tuple(hf.Explainer.registry.classes().values())
ONLY_TREES = (hf.TreeShap,)  # has tests of its own

DOCUMENT = Path(__file__).parents[2] / "docs" / "explainers.md"
SIGNED: dict[type[hf.Explainer], Any] = {
    hf.IntegratedGradients: hf.IntegratedGradients(),
    hf.ExpectedGradients: hf.ExpectedGradients(torch.zeros(1, 2, 2, 2), samples=5),
    hf.KernelShap: hf.KernelShap(samples=100),
    hf.LeaveOneOut: hf.LeaveOneOut(),
    hf.DeepLift: hf.DeepLift(),
    hf.Lrp: hf.Lrp(),
}


def _linear(weights: Tensor) -> hf.TorchModel:
    """Two classes; the first's logit is ``weights`` times the image ``[2, 2, 2]``, the other's 0."""
    last = nn.Linear(8, 2, bias=False).double().requires_grad_(False)
    last.weight.zero_()
    last.weight[0] = weights.flatten()
    return hf.TorchModel(nn.Sequential(nn.Flatten(), last).eval(), (0, 1))


def _image() -> tuple[hf.TorchModel, Tensor]:
    """Pixel by pixel: +1 + 2, +4 - 3.5, -2 + 0.5, -4 + 4."""
    weights = torch.tensor([[[1.0, 4.0], [-2.0, -4.0]], [[2.0, -3.5], [0.5, 4.0]]])
    return _linear(weights), torch.ones(1, 2, 2, 2)


def test_every_explainer_has_its_rule_in_the_document() -> None:
    section = DOCUMENT.read_text().partition("## How each explainer orders features")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert {line.split("`")[1] for line in rows} == {kind.__name__ for kind in EXPLAINERS}


@pytest.mark.parametrize("kind", SIGNED)
def test_signed_sums_over_channels_speak_for_the_label(kind: type[hf.Explainer]) -> None:
    model, x = _image()
    ranking = SIGNED[kind](model.ask(x, label=0))
    torch.testing.assert_close(ranking.scores, torch.tensor([[3.0, 0.5, -1.5, 0.0]]).double())
    assert ranking.order.tolist() == [[0, 1, 3, 2]]
    absolute = replace(SIGNED[kind], absolute=True)(model.ask(x, label=0))
    assert absolute.order.tolist() == [[0, 2, 1, 3]]


def test_grad_adds_sizes_over_channels() -> None:
    model, x = _image()
    ranking = hf.Grad()(model.ask(x, label=0))
    torch.testing.assert_close(ranking.scores, torch.tensor([[3.0, 7.5, 2.5, 8.0]]).double())
    assert ranking.order.tolist() == [[3, 1, 0, 2]]


def test_bbmp_counts_what_is_masked() -> None:
    model, x = _image()
    explainer = hf.Bbmp(reference=0.0, l1=0.2, tv=0.0, steps=300)
    ranking = explainer(model.ask(x, label=0))
    assert int(ranking.order[0, 0]) == 0  # the pixel that speaks most for the label
    assert 0 <= float(ranking.scores.min()) <= float(ranking.scores.max()) <= 1


def test_a_counterfactual_counts_how_far_channels_move_together() -> None:
    model, x = _image()
    ranking = hf.Counterfactual(step=1)(model.ask(0.5 * x))
    assert ranking.order.tolist() == [[3, 1, 0, 2]]


TIED = [kind for kind in EXPLAINERS if issubclass(kind, hf.Attribution) and kind not in ONLY_TREES]


@pytest.mark.parametrize("kind", TIED)
def test_ties_follow_a_draw_of_the_seed_alike_for_every_case(kind: type[hf.Explainer]) -> None:
    """A model that sees nothing: all features are equal."""
    cases = _linear(torch.zeros(8)).ask(torch.rand(3, 2, 2, 2), features=hf.Features.pixels((2, 2, 2), "separate"))
    short: dict[str, int] = {field.name: 5 for field in fields(kind) if field.name == "steps"}  # type: ignore[arg-type]  # a dataclass
    orders = [kind(seed=seed, **short)(cases).order for seed in (0, 0, 1)]  # type: ignore[call-arg]  # settings differ by kind
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])
    drawn = torch.rand(8, generator=torch.Generator().manual_seed(1)).argsort()
    if kind is not hf.Bbmp:  # its masks all end alike, up to rounding
        assert torch.equal(orders[2], drawn.expand(3, -1))


def test_a_counterfactual_draws_what_never_had_to_move() -> None:
    model = hf.TorchModel(_linear(torch.tensor([2.0, 0, 0, 0, 0, 0, 0, 0])).module)
    cases = model.ask(torch.ones(1, 2, 2, 2), features=hf.Features.pixels((2, 2, 2), "separate"))
    orders = [hf.Counterfactual(step=1, seed=seed)(cases).order for seed in (0, 1)]
    assert [int(order[0, 0]) for order in orders] == [0, 0]
    assert not torch.equal(*orders)


def test_an_anchor_draws_among_what_is_equally_precise() -> None:
    model = hf.FunctionModel(lambda rows: (rows[:, 0] > 0.5).astype(int), (0, 1), classes=2)
    orders = [hf.Anchor(seed=seed)(model.ask(torch.ones(1, 6))).order for seed in (0, 1)]
    assert [int(order[0, 0]) for order in orders] == [0, 0]
    assert not torch.equal(*orders)


def test_without_a_seed_the_first_of_equals_comes_first() -> None:
    cases = _linear(torch.zeros(8)).ask(torch.rand(2, 2, 2, 2))
    assert hf.Ranking.by_score(cases, torch.zeros(2, 4)).order.tolist() == [[0, 1, 2, 3]] * 2
