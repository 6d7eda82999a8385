"""Boundary normals against what they approximate: on a linear model without a box they are exact."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.robustness.boundary import normals
from toys import small_net

NORMS = [1.0, 2.0, math.inf]


def _linear(inputs: int, classes: int, seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    net = nn.Linear(inputs, classes).double()
    return net.eval().requires_grad_(False)


def _brute(cases: hf.Cases, moving: Tensor, p: float) -> Tensor:
    """How much the exact radius changes when each feature is held (if it moves) or freed (if not)."""
    b, k, d = moving.shape
    flipped = (moving[:, :, None] ^ torch.eye(d, dtype=torch.bool)).reshape(b, k * d, d)
    changed = hf.ExactLinear(p)(cases, flipped).radius.view(b, k, d)
    return (changed - hf.ExactLinear(p)(cases, moving).radius[..., None]).abs()


def _question(
    p: float, classes: int, bounds: tuple[float, float] | None = None, d: int = 10
) -> tuple[hf.Cases, Tensor]:
    generator = torch.Generator().manual_seed(5)
    cases = hf.TorchModel(_linear(d, classes), bounds).ask(torch.rand(4, d, generator=generator).double())
    return cases, torch.rand(4, 6, d, generator=generator) < 0.7


@pytest.mark.parametrize("p", NORMS)
def test_two_classes_without_a_box_are_exact(p: float) -> None:
    cases, moving = _question(p, 2)
    result = normals(cases, moving, p, steps=2, classes=1)
    assert torch.allclose(result.radius, hf.ExactLinear(p)(cases, moving).radius)
    exact = _brute(cases, moving, p)
    plain = exact < result.radius[..., None]  # past a doubled radius the effect goes on along a tangent
    assert plain.float().mean() > 0.9
    assert torch.allclose(result.worth[plain], exact[plain])


@pytest.mark.parametrize("p", NORMS)
def test_the_nearest_of_several_classes_gives_the_radius(p: float) -> None:
    cases, moving = _question(p, 6)
    result = normals(cases, moving, p, steps=2, classes=5)
    assert torch.allclose(result.radius, hf.ExactLinear(p)(cases, moving).radius)


@pytest.mark.parametrize("p", NORMS)
def test_groups_are_worth_their_coordinates_together(p: float) -> None:
    cases, _ = _question(p, 2)
    cases = cases.model.ask(cases.x, features=hf.Features.columns([[0, 1], [2, 3, 4], 5, 6, [7, 8], 9]))
    moving = torch.ones(4, 1, 6, dtype=torch.bool)
    moving[:, :, 2] = False
    result = normals(cases, moving, p, steps=2, classes=1)
    exact = _brute(cases, moving, p)
    plain = exact < result.radius[..., None]
    assert torch.allclose(result.worth[plain], exact[plain])


@pytest.mark.parametrize("p", NORMS)
def test_in_a_box_effects_are_right_to_first_order(p: float) -> None:
    cases, moving = _question(p, 2, bounds=(0, 1), d=60)
    result = normals(cases, moving, p, steps=3, classes=1)
    assert torch.allclose(result.radius, hf.ExactLinear(p)(cases, moving).radius)
    exact = _brute(cases, moving, p)
    for case in range(4):
        pair = torch.stack([result.worth[case].flatten(), exact[case].flatten()])
        assert float(torch.corrcoef(pair)[0, 1]) > 0.98


@pytest.mark.parametrize("p", NORMS)
def test_a_coordinate_that_cannot_go_down_its_slope_is_worth_nothing(p: float) -> None:
    net = nn.Linear(3, 2, bias=False).double().eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    cases = hf.TorchModel(net, bounds=(0, 1)).ask(torch.tensor([[0.0, 0.3, 0.6]]).double(), label=0)
    result = normals(cases, torch.ones(1, 1, 3, dtype=torch.bool), p, steps=2, classes=1)
    assert float(result.worth[0, 0, 0]) == 0
    assert bool((result.worth[0, 0, 1:] > 0).all())


def test_a_flat_model_gives_numbers_and_no_change() -> None:
    net = nn.Linear(4, 3).double().eval().requires_grad_(False)
    net.weight.zero_()
    net.bias.copy_(torch.tensor([2.0, 0.5, 0.0]))
    cases = hf.TorchModel(net).ask(torch.rand(2, 4).double())
    for p in NORMS:
        result = normals(cases, torch.ones(2, 3, 4, dtype=torch.bool), p, steps=2, classes=2)
        assert bool(torch.isfinite(result.worth).all())
        assert not bool(result.changed.any())


def test_chunks_do_not_matter() -> None:
    x = torch.rand(3, 12, generator=torch.Generator().manual_seed(0))
    moving = torch.rand(3, 4, 12, generator=torch.Generator().manual_seed(1)) < 0.6
    whole, parts = (hf.TorchModel(small_net(), chunk=chunk).ask(x) for chunk in (None, 5))
    for first in (True, False):
        states = [None if first else normals(c, moving, 2, steps=3, classes=2).nearest for c in (whole, parts)]
        a, b = (
            normals(c, moving, 2, steps=3, classes=2, near_classes=state)
            for c, state in zip((whole, parts), states, strict=True)
        )
        assert torch.allclose(a.worth, b.worth)


def test_a_targeted_question_heads_for_its_target() -> None:
    cases, moving = _question(2, 2)
    aimed = cases.model.ask(cases.x, target=1 - cases.label)
    a, b = (normals(c, moving, 2, steps=2, classes=3) for c in (cases, aimed))
    assert torch.allclose(a.worth, b.worth)


def test_a_class_out_of_reach_never_hides_one_within() -> None:
    """Class 1 needs the first input, class 2 the others; where the first is held only class 2 is left."""
    net = nn.Linear(4, 3, bias=False).double().eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[1.0, 0.2, 0.1, 0.05], [-9.0, 0.2, 0.1, 0.05], [1.0, -0.2, -0.1, -0.05]]))
    cases = hf.TorchModel(net).ask(torch.full((1, 4), 0.5).double(), label=0)
    moving = torch.tensor([[[False, True, True, True], [True, True, True, True], [False, False, True, True]]])
    for soft in (0.0, 0.05):
        result = normals(cases, moving, 2, steps=2, classes=2, soft=soft)
        assert torch.allclose(result.radius, hf.ExactLinear()(cases, moving).radius)
        assert float(result.worth[0, 0, 1]) > 0
