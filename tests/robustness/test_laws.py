"""The laws that every robustness method obeys, in every norm, and how close each method comes to known radii."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import holdfast as hf
from holdfast.testing import check_robustness
from robustness.lipschitz import Lipschitz
from toys import small_net
from tree_models import tree_cases

METHODS = tuple(hf.Robustness.registry.classes().values())

NORMS = (1.0, 2.0, math.inf)


def quick(kind: type[hf.Robustness], p: float) -> hf.Robustness:
    """Each method with settings that keep the tests short."""
    short: dict[type[hf.Robustness], Callable[[], hf.Robustness]] = {
        hf.MinNorm: lambda: hf.MinNorm(p, steps=60),
        hf.Judge: lambda: hf.Judge(p, steps=25, classes=3, starts=2),
        hf.PGD: lambda: hf.PGD(p, steps=60),
        hf.ExactLinear: lambda: hf.ExactLinear(p),
        hf.ExactNeighbours: lambda: hf.ExactNeighbours(p),
        hf.ExactTrees: lambda: hf.ExactTrees(p),
        hf.DecisionBased: lambda: hf.DecisionBased(p, queries=800, starts=3),
    }
    return short[kind]()


# Methods that are made for one kind of model, with cases of it.
SPECIAL: dict[type[hf.Robustness], Callable[[], hf.Cases]] = {hf.ExactTrees: tree_cases}
GENERAL = [kind for kind in METHODS if kind not in SPECIAL]
ALL = [pytest.param(kind, p, id=f"{kind.__name__}-{p:g}") for kind in GENERAL for p in NORMS]
ATTACKS = [param for param in ALL if param.values[0] is not hf.ExactLinear]


def linear(
    seed: int,
    inputs: int,
    classes: int,
    bounds: tuple[float, float] | None = None,
    kind: type[hf.Robustness] = hf.ExactLinear,
) -> hf.Cases:
    """A linear model. With one training point a class, the nearest neighbour decides linearly, too."""
    generator = torch.Generator().manual_seed(seed)
    net = nn.Linear(inputs, classes).double().eval().requires_grad_(False)
    net.weight.copy_(torch.randn(classes, inputs, generator=generator))
    net.bias.copy_(torch.randn(classes, generator=generator))
    x = torch.rand(4, inputs, generator=generator).double()
    if kind is hf.ExactNeighbours:
        return hf.neighbours(net.weight / 2, range(classes), bounds=bounds).ask(x)
    return hf.TorchModel(net, bounds=bounds).ask(x)


def as_linear(cases: hf.Cases) -> nn.Linear:
    """The linear scores of a model that ``linear`` has made."""
    if isinstance(cases.model, hf.TorchModel):
        assert isinstance(cases.model.module, nn.Linear)
        return cases.model.module
    assert isinstance(cases.model, hf.NeighboursModel)
    points = cases.model.points
    net = nn.Linear(points.shape[1], len(points)).double().eval().requires_grad_(False)
    net.weight.copy_(2 * points)
    net.bias.copy_(-points.square().sum(1))
    return net


def neighbour_cases() -> hf.Cases:
    """Thirty training points of three classes, in a box."""
    generator = torch.Generator().manual_seed(3)
    points, x = (torch.rand(count, 12, generator=generator).double() for count in (30, 5))
    return hf.neighbours(points, torch.arange(30) % 3, bounds=(0, 1)).ask(x)


def nested(cases: hf.Cases, seed: int = 0, k: int = 4) -> Tensor:
    """Random subsets, each inside the next."""
    d = cases.features.count
    order = torch.rand(len(cases), d, generator=torch.Generator().manual_seed(seed)).argsort(1).argsort(1)
    return torch.stack([order < round(d * (i + 1) / k) for i in range(k)], 1)


def brute_linear(cases: hf.Cases, subsets: Tensor, p: float) -> Tensor:
    """min_j m_j / ||w_j on S||_q, written again from the formula."""
    net = as_linear(cases)
    q = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[p]
    radius = torch.full(subsets.shape[:2], math.inf, dtype=torch.float64)
    for b in range(len(cases)):
        y = int(cases.label[b])
        z = net(cases.x[b])
        for k in range(subsets.shape[1]):
            for j in range(len(z)):
                if j != y:
                    w = (net.weight[y] - net.weight[j])[subsets[b, k]]
                    length = float((z[y] - z[j]) / torch.linalg.vector_norm(w, q))
                    radius[b, k] = min(float(radius[b, k]), length)
    return radius


@pytest.mark.parametrize(("kind", "p"), ALL)
def test_every_method_obeys_the_laws(kind: type[hf.Robustness], p: float) -> None:
    check_robustness(quick(kind, p), [neighbour_cases()] if kind is hf.ExactNeighbours else [])


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", SPECIAL)
def test_methods_for_one_kind_of_model_obey_the_laws(kind: type[hf.Robustness], p: float) -> None:
    check_robustness(quick(kind, p), [SPECIAL[kind]()])


@pytest.mark.parametrize("p", NORMS)
def test_a_certificate_obeys_the_laws(p: float) -> None:
    check_robustness(Lipschitz(p=p))


@pytest.mark.parametrize(("kind", "p"), ALL)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), inputs=st.integers(3, 30), classes=st.integers(2, 5))
def test_linear_closed_form(kind: type[hf.Robustness], p: float, seed: int, inputs: int, classes: int) -> None:
    cases = linear(seed, inputs, classes, kind=kind)
    subsets = nested(cases, seed)
    ratio = quick(kind, p)(cases, subsets).radius / brute_linear(cases, subsets, p)
    assert float(ratio.min()) > 1 - 1e-9
    assert float(ratio.max()) < 1.01


@pytest.mark.parametrize(("kind", "p"), ATTACKS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), inputs=st.integers(3, 30), classes=st.integers(2, 5))
def test_linear_closed_form_in_a_box(kind: type[hf.Robustness], p: float, seed: int, inputs: int, classes: int) -> None:
    cases = linear(seed, inputs, classes, (0.0, 1.0), kind)
    subsets = nested(cases, seed)
    exact = hf.ExactLinear(p)(hf.TorchModel(as_linear(cases), bounds=(0.0, 1.0)).ask(cases.x), subsets)
    radii = quick(kind, p)(cases, subsets)
    assert torch.equal(radii.unreachable if kind is hf.ExactNeighbours else radii.censored, exact.unreachable)
    ratio = (radii.radius / exact.radius)[~exact.unreachable]
    assert ratio.numel() == 0 or (float(ratio.min()) > 1 - 1e-9 and float(ratio.max()) < 1.01)


@pytest.mark.parametrize(("kind", "p"), ALL)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_targeted_is_never_easier(kind: type[hf.Robustness], p: float, seed: int) -> None:
    cases = linear(seed, 12, 2 if kind is hf.ExactLinear else 4, kind=kind)
    subsets = nested(cases, seed)
    exact = brute_linear(cases, subsets, p)
    for step in range(1, 2 if kind is hf.ExactLinear else 4):
        target = (cases.label + step) % (2 if kind is hf.ExactLinear else 4)
        aimed = quick(kind, p)(cases.model.ask(cases.x, target=target), subsets)
        assert bool((aimed.radius >= exact * (1 - 1e-9)).all())
        reached = aimed.new_class == target[:, None]
        assert bool((reached | aimed.censored).all())
        assert bool(reached[:, -1].any())


@pytest.mark.parametrize(("kind", "p"), ALL)
def test_batch_size_does_not_matter(kind: type[hf.Robustness], p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    net = small_net() if kind is not hf.ExactLinear else nn.Linear(12, 4).double().eval()
    x = torch.randn(5, 12, generator=torch.Generator().manual_seed(2)).double().clamp(-2, 2)
    few = 8 if kind is hf.Judge else 3  # its hundreds of starts would take long in batches of three
    chunks = [hf.TorchModel(net, bounds=(-2, 2), chunk=chunk).ask(x) for chunk in (few, 64)]
    if kind is hf.ExactNeighbours:
        chunks = [neighbour_cases(), neighbour_cases()]
        monkeypatch.setattr(chunks[0].model, "chunk", lambda rows, gradient=True: 3)
    small, large = (quick(kind, p)(cases, nested(cases)).radius for cases in chunks)
    torch.testing.assert_close(small, large, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("kind", "p"), ALL)
def test_an_empty_subset_needs_no_note(kind: type[hf.Robustness], p: float) -> None:
    assert quick(kind, p)(linear(0, 6, 3, kind=kind), torch.zeros(4, 2, 6, dtype=torch.bool)).notes == ()


@pytest.mark.parametrize(("kind", "p"), ALL)
def test_a_label_the_model_does_not_give_is_changed_already(kind: type[hf.Robustness], p: float) -> None:
    cases = linear(0, 6, 3, kind=kind)
    wrong = cases.model.ask(cases.x, label=(cases.label + 1) % 3)
    radii = quick(kind, p)(wrong, torch.ones(4, 1, 6, dtype=torch.bool))
    assert torch.equal(radii.new_class[:, 0], cases.label)


@pytest.mark.parametrize("p", [0, 3, 1.5, -1, float("nan")])
@pytest.mark.parametrize("kind", METHODS)
def test_other_norms_are_refused(kind: type[hf.Robustness], p: float) -> None:
    with pytest.raises(hf.HoldfastError, match="p must be 1, 2 or inf"):
        kind(p=p)  # type: ignore[call-arg]  # every method takes p
