"""Every attack is checked: its moves are cut to mask and box and measured again."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.robustness import Moves, Rows
from holdfast.robustness.norms import L2
from holdfast.robustness.search import Search
from toys import small_net


@dataclass(frozen=True)
class SameMove(hf.Attack):
    """Proposes the same move for every coordinate, whatever the mask and the box."""

    claim: float = 0.0
    p: float = 2

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        return Moves(torch.full_like(rows.x, self.claim))


def axis_cases() -> hf.Cases:
    """Class 0 while x0 + x1 < 1, in the box [0, 1]^3."""
    net = nn.Linear(3, 2).eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[0.0, 0, 0], [1, 1, 0]]))
    net.bias.copy_(torch.tensor([1.0, 0]))
    return hf.TorchModel(net, bounds=(0, 1)).ask(torch.full((1, 3), 0.25))


def test_a_claim_that_flips_nothing_is_no_radius() -> None:
    radii = SameMove(0.1)(axis_cases(), torch.ones(1, 1, 3, dtype=torch.bool))
    assert radii.radius.item() == math.inf
    assert radii.new_class.item() == -1


def test_a_claim_off_the_mask_is_cut_to_the_mask() -> None:
    radii = SameMove(5.0)(axis_cases(), torch.tensor([[[False, False, True], [True, True, False]]]))
    assert bool(radii.censored[0, 0])
    assert radii.radius[0, 1].item() == pytest.approx(0.75 * math.sqrt(2))
    assert torch.equal(radii.witness[0, 1], torch.tensor([1.0, 1.0, 0.25]))


def test_a_nan_claim_is_no_radius() -> None:
    assert bool(SameMove(math.nan)(axis_cases(), torch.ones(1, 1, 3, dtype=torch.bool)).censored.all())


def test_a_witness_serves_every_superset() -> None:
    subsets = torch.tensor([[[True, True, True], [True, False, False], [False, True, True], [False, False, True]]])
    radii = SameMove(5.0)(axis_cases(), subsets)
    assert radii.radius[0, 0].item() == pytest.approx(0.75)  # the witness of the second subset
    assert torch.equal(radii.witness[0, 0], radii.witness[0, 1])
    assert not bool(radii.censored[0, 2])
    assert bool(radii.censored[0, 3])


def test_a_flat_model_is_searched_and_noted() -> None:
    class Steps(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([torch.full_like(x[:, 0], 0.5), (x.sum(1) > 2).to(x)], 1)

    cases = hf.TorchModel(Steps().eval(), bounds=(0, 1)).ask(torch.zeros(1, 3))
    radii = hf.MinNorm(steps=60)(cases, torch.ones(1, 1, 3, dtype=torch.bool))
    assert math.sqrt(4 / 3) <= radii.radius.item() <= math.sqrt(3)
    assert "gradient is zero" in radii.notes[0]


@pytest.mark.parametrize("method", [hf.MinNorm(steps=20), hf.PGD(), hf.Judge(steps=10, classes=1, starts=1)])
def test_a_constant_model_is_censored_and_noted(method: hf.Robustness) -> None:
    class Constant(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.tensor([[2.0, 1.0]]).expand(len(x), 2)

    for bounds in ((0, 1), None):
        cases = hf.TorchModel(Constant().eval(), bounds=bounds).ask(torch.zeros(2, 3))
        radii = method(cases, torch.ones(2, 2, 3, dtype=torch.bool))
        assert bool(radii.censored.all())
        assert "says nothing about their robustness" in radii.notes[0]


def test_cost_and_settings_are_recorded() -> None:
    cases = hf.TorchModel(small_net()).ask(torch.randn(3, 12).double())
    seen: list[tuple[int, int]] = []
    method = hf.MinNorm(steps=20)
    radii = method(cases, torch.ones(3, 1, 12, dtype=torch.bool), progress=lambda *done: seen.append(done))
    assert 0 < radii.queries.gradient <= 3 * 20
    assert radii.method == repr(method) == "MinNorm(p=2.0, steps=20, restarts=1, seed=0)"
    assert radii.bound == "upper"
    assert seen[-1] == (3, 3)


def test_a_warm_start_helps_and_is_checked() -> None:
    cases = hf.TorchModel(small_net(), bounds=(-2, 2)).ask(torch.zeros(1, 12).double())
    whole = torch.ones(1, 1, 12, dtype=torch.bool)
    witness = hf.Judge()(cases, whole).witness
    cold, warm = hf.MinNorm(steps=2)(cases, whole), hf.MinNorm(steps=2)(cases, whole, start=witness)
    assert warm.radius.item() <= cold.radius.item()
    assert math.isfinite(warm.radius.item())
    with pytest.raises(hf.HoldfastError, match="start must be finite points"):
        hf.MinNorm()(cases, whole, start=witness[..., :5])


@pytest.mark.parametrize("method", [hf.MinNorm(steps=20), hf.PGD(starts=50, steps=5, rounds=6)])
def test_running_out_of_memory_does_not_end_a_run(method: hf.Robustness) -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.refused = small_net(), 0

        def forward(self, x: Tensor) -> Tensor:
            if len(x) > 7:
                self.refused += 1
                raise torch.OutOfMemoryError("CUDA out of memory")
            out: Tensor = self.net(x)
            return out

    net = Small().eval()
    cases = hf.TorchModel(net, chunk=64).ask(torch.randn(5, 12).double())
    radii = method(cases, torch.rand(5, 6, 12) < 0.8)
    assert net.refused > 0
    assert radii.radius.shape == (5, 6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: hf.MinNorm(steps=1),
        lambda: hf.MinNorm(restarts=0),
        lambda: hf.Judge(steps=2),
        lambda: hf.PGD(step=0),
        lambda: hf.PGD(starts=0),
    ],
)
def test_bad_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(hf.HoldfastError):
        make()


def test_linear_refuses_what_it_cannot_do() -> None:
    cases = hf.TorchModel(small_net()).ask(torch.randn(3, 12).double())
    with pytest.raises(hf.HoldfastError, match="not affine"):
        hf.ExactLinear()(cases, torch.ones(3, 1, 12, dtype=torch.bool))


@pytest.mark.parametrize("probe", ["kink below", "kink above"])
def test_linear_refuses_a_kink_on_either_side(probe: str) -> None:
    class Kinked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            z = x[:, 0] if probe == "kink above" else -x[:, 0]
            return torch.stack([torch.full_like(z, 5.0), z + 3 * (z - 1).clamp_min(0)], 1)

    cases = hf.TorchModel(Kinked().eval()).ask(torch.zeros(1, 3))
    with pytest.raises(hf.HoldfastError, match="not affine"):
        hf.ExactLinear()(cases, torch.ones(1, 1, 3, dtype=torch.bool))


def test_linear_survives_large_logits() -> None:
    net = nn.Linear(50, 3).eval().requires_grad_(False)
    net.bias.add_(1e4)
    cases = hf.TorchModel(net).ask(torch.randn(30, 50, generator=torch.Generator().manual_seed(0)))
    assert not bool(hf.ExactLinear()(cases, torch.ones(30, 1, 50, dtype=torch.bool)).censored.any())


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("kind", [hf.MinNorm, hf.PGD, hf.Judge])
def test_a_dead_feature_without_bounds_does_no_harm(kind: type[hf.MinNorm], p: float) -> None:
    net = nn.Linear(6, 3).double().eval().requires_grad_(False)
    net.weight[:, 2] = 0
    cases = hf.TorchModel(net).ask(torch.randn(3, 6, generator=torch.Generator().manual_seed(0)).double())
    whole = torch.ones(3, 1, 6, dtype=torch.bool)
    ratio = kind(p)(cases, whole).radius / hf.ExactLinear(p)(cases, whole).radius
    assert float(ratio.max()) < 1.01


def test_a_start_outside_the_box_is_brought_inside() -> None:
    net = nn.Linear(3, 2).eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[0.0, 0, 0], [10, 1, 0]]))
    net.bias.copy_(torch.tensor([10.9, 0]))
    cases = hf.TorchModel(net, bounds=(0, 1)).ask(torch.full((1, 3), 0.25))
    whole = torch.ones(1, 1, 3, dtype=torch.bool)
    radii = hf.MinNorm()(cases, whole, start=torch.tensor([[[1.1, 0.25, 0.25]]]))
    assert math.isfinite(radii.radius.item())


def test_flat_weights_are_flat_too() -> None:
    class Thresholds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.last((x > 0.5).to(x))
            return out

    cases = hf.TorchModel(Thresholds().eval(), bounds=(0, 1)).ask(torch.zeros(2, 3))
    for method in (hf.MinNorm(steps=30), hf.PGD()):
        assert "gradient is zero" in method(cases, torch.ones(2, 1, 3, dtype=torch.bool)).notes[0]


def test_per_case_features_and_bounds_a_coordinate() -> None:
    low, high = torch.full((12,), -1.0), torch.linspace(1, 2, 12)
    ids = torch.stack([torch.arange(12) // 2, torch.arange(12) % 6, torch.full((12,), -1)])
    ids[2, 3] = 5
    x = torch.zeros(3, 12).double()
    cases = hf.TorchModel(small_net(), bounds=(low, high)).ask(x, features=ids)
    subsets = torch.rand(3, 5, 6, generator=torch.Generator().manual_seed(1)) < 0.7
    radii = hf.MinNorm()(cases, subsets)
    for b in range(3):
        for k in range(5):
            moved = radii.witness[b, k] != x[b]
            allowed = torch.tensor([int(i) >= 0 and bool(subsets[b, k, int(i)]) for i in ids[b]])
            assert not bool((moved & ~allowed).any())
    assert bool((radii.witness <= high).all())
    assert bool((radii.witness >= low).all())
    one = hf.MinNorm()(cases[1], subsets[1:2])
    torch.testing.assert_close(one.radius[0], radii.radius[1], rtol=1e-6, atol=0)


def test_two_classes_leave_no_gradient_unused() -> None:
    cases = hf.TorchModel(small_net(classes=2)).ask(
        torch.randn(8, 12, generator=torch.Generator().manual_seed(3)).double()
    )
    radii = hf.MinNorm(steps=100)(cases, torch.ones(8, 1, 12, dtype=torch.bool))
    judged = hf.Judge()(cases, torch.ones(8, 1, 12, dtype=torch.bool))
    assert float((radii.radius / judged.radius).max()) < 1.05


def test_many_classes_work() -> None:
    net = nn.Linear(12, 1000).double().eval().requires_grad_(False)
    cases = hf.TorchModel(net).ask(torch.randn(4, 12, generator=torch.Generator().manual_seed(0)).double())
    whole = torch.ones(4, 1, 12, dtype=torch.bool)
    assert float((hf.Judge()(cases, whole).radius / hf.ExactLinear()(cases, whole).radius).max()) < 1.05


def test_a_finished_search_frees_its_memory_at_once() -> None:
    cases = hf.TorchModel(small_net()).ask(torch.zeros(2, 12).double())
    rows = Rows.of(cases, torch.ones(2, 1, 12, dtype=torch.bool), slice(0, 2))
    gc.disable()
    try:
        search = Search(rows, L2())
        search.evaluate(torch.zeros_like(rows.x))
        delta = weakref.ref(search.delta)
        del search
        assert delta() is None
    finally:
        gc.enable()


def test_the_judge_reports_the_gap_of_its_first_search() -> None:
    cases = hf.TorchModel(small_net()).ask(torch.rand(6, 12, generator=torch.Generator().manual_seed(3)))
    subsets = torch.rand(6, 1, 12, generator=torch.Generator().manual_seed(4)) < 0.6
    first, judged = hf.MinNorm(steps=20)(cases, subsets), hf.Judge(steps=10)(cases, subsets)
    assert first.gap is None
    assert judged.gap is not None
    assert torch.allclose(judged.gap, first.radius / judged.radius)
    assert bool((judged.gap >= 1).all())
    assert float(judged.gap.max()) > 1.0001
    assert "a single search gave radii up to" in judged.notes[0]


def test_the_gap_of_a_decision_that_has_changed_already_is_one() -> None:
    cases = hf.TorchModel(small_net()).ask(torch.rand(2, 12))
    other = cases.model.ask(cases.x, label=(cases.label + 1) % 4)
    judged = hf.Judge(steps=10)(other, torch.ones(2, 1, 12, dtype=torch.bool))
    assert judged.gap is not None
    assert judged.gap.tolist() == [[1], [1]]
