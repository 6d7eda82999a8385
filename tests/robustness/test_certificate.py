"""A certificate is never above a radius that is known, and bounds subsets by their supersets."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import holdfast as hf
from robustness.lipschitz import Lipschitz
from toys import small_net

NORMS = (1.0, 2.0, math.inf)


def linear_model(seed: int, classes: int, bounds: tuple[float, float] | None = None) -> hf.TorchModel:
    torch.manual_seed(seed)
    return hf.TorchModel(nn.Linear(8, classes).double().eval().requires_grad_(False), bounds)


@pytest.mark.parametrize("p", NORMS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5))
def test_a_certificate_of_a_linear_model_is_its_radius(p: float, seed: int, classes: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(3, 8, generator=generator).double()
    subsets = torch.rand(3, 5, 8, generator=generator) < 0.6
    certified = Lipschitz(p=p)(linear_model(seed, classes).ask(x), subsets).radius
    exact = hf.ExactLinear(p)(linear_model(seed, classes).ask(x), subsets).radius
    torch.testing.assert_close(certified, exact)
    assert bool((certified <= exact).all())
    boxed = linear_model(seed, classes, (0, 1)).ask(x)
    assert bool((certified <= hf.ExactLinear(p)(boxed, subsets).radius).all())


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("targeted", [False, True])
def test_a_certificate_and_an_attack_bracket_the_radius(p: float, targeted: bool) -> None:
    model = hf.TorchModel(small_net(), bounds=(-2, 2))
    x = torch.randn(5, 12, generator=torch.Generator().manual_seed(2)).double().clamp(-2, 2)
    cases = model.ask(x, target=(model.ask(x).label + 1) % 4 if targeted else None)
    subsets = torch.rand(5, 6, 12, generator=torch.Generator().manual_seed(4)) < 0.7
    lower, upper = Lipschitz(p=p)(cases, subsets), hf.Judge.quick(p)(cases, subsets)
    assert bool((lower.radius <= upper.radius).all())
    assert bool((lower.radius > 0).all())
    assert not bool(lower.witnessed.any())
    assert bool(lower.proven.all())


def test_a_certificate_sees_free_coordinates_alone() -> None:
    net = small_net()
    x = torch.randn(2, 12, generator=torch.Generator().manual_seed(2)).double()
    subsets = torch.arange(12).expand(2, 1, 12) < 5
    certified = Lipschitz()(hf.TorchModel(net).ask(x), subsets).radius
    whole = Lipschitz()(hf.TorchModel(net).ask(x), torch.ones_like(subsets)).radius
    assert bool((certified > whole).all())


def test_a_bound_out_of_reach_is_a_proof() -> None:
    net = nn.Linear(4, 2).double().eval().requires_grad_(False)
    net.weight[:, 2:] = 0
    cases = hf.TorchModel(net).ask(torch.rand(1, 4).double())
    radii = Lipschitz()(cases, torch.tensor([[[False, False, True, True], [True, True, True, True]]]))
    assert radii.unreachable.tolist() == [[True, False]]
