"""The base around every search: what is claimed is masked, clipped and measured again."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.robustness import Found, Rows
from toys import small_net


@dataclass(frozen=True)
class Liar(hf.Robustness):
    """Proposes whatever it is told, whatever the mask and the box."""

    claim: float = 0.0
    p: float = 2

    def search(self, rows: Rows, start: Tensor | None) -> Found:
        return Found(torch.full_like(rows.x, self.claim), torch.zeros(len(rows), dtype=torch.bool))


def axis_cases() -> hf.Cases:
    """Class 0 while x0 + x1 < 1, in the box [0, 1]^3."""
    net = nn.Linear(3, 2).eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[0.0, 0, 0], [1, 1, 0]]))
    net.bias.copy_(torch.tensor([1.0, 0]))
    return hf.Classifier(net, bounds=(0, 1)).ask(torch.full((1, 3), 0.25))


def test_a_claim_that_flips_nothing_is_no_radius() -> None:
    radii = Liar(0.1)(axis_cases(), torch.ones(1, 1, 3, dtype=torch.bool))
    assert radii.radius.item() == math.inf
    assert radii.turned.item() == -1


def test_a_claim_off_the_mask_is_cut_to_the_mask() -> None:
    radii = Liar(5.0)(axis_cases(), torch.tensor([[[False, False, True], [True, True, False]]]))
    assert bool(radii.censored[0, 0])
    assert radii.radius[0, 1].item() == pytest.approx(0.75 * math.sqrt(2))
    assert torch.equal(radii.witness[0, 1], torch.tensor([1.0, 1.0, 0.25]))


def test_a_nan_claim_is_no_radius() -> None:
    assert bool(Liar(math.nan)(axis_cases(), torch.ones(1, 1, 3, dtype=torch.bool)).censored.all())


def test_a_witness_serves_every_superset() -> None:
    subsets = torch.tensor([[[True, True, True], [True, False, False], [False, True, True], [False, False, True]]])
    radii = Liar(5.0)(axis_cases(), subsets)
    assert radii.radius[0, 0].item() == pytest.approx(0.75)  # borrowed from the second subset
    assert torch.equal(radii.witness[0, 0], radii.witness[0, 1])
    assert not bool(radii.censored[0, 2])
    assert bool(radii.censored[0, 3])


def test_a_flat_model_is_searched_and_said() -> None:
    class Steps(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([torch.full_like(x[:, 0], 0.5), (x.sum(1) > 2).to(x)], 1)

    cases = hf.Classifier(Steps().eval(), bounds=(0, 1)).ask(torch.zeros(1, 3))
    radii = hf.MinNorm(steps=60)(cases, torch.ones(1, 1, 3, dtype=torch.bool))
    assert math.sqrt(4 / 3) <= radii.radius.item() <= math.sqrt(3)
    assert "gradient is zero" in radii.notes[0]


@pytest.mark.parametrize("method", [hf.MinNorm(steps=20), hf.PGD(), hf.Judge(steps=10, classes=1, starts=1)])
def test_a_constant_model_is_censored_and_said(method: hf.Robustness) -> None:
    class Constant(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.tensor([[2.0, 1.0]]).expand(len(x), 2)

    for bounds in ((0, 1), None):
        cases = hf.Classifier(Constant().eval(), bounds=bounds).ask(torch.zeros(2, 3))
        radii = method(cases, torch.ones(2, 2, 3, dtype=torch.bool))
        assert bool(radii.censored.all())
        assert "says nothing about their robustness" in radii.notes[0]


def test_cost_and_provenance_are_told() -> None:
    cases = hf.Classifier(small_net()).ask(torch.randn(3, 12).double())
    seen: list[tuple[int, int]] = []
    method = hf.MinNorm(steps=20)
    radii = method(cases, torch.ones(3, 1, 12, dtype=torch.bool), progress=lambda *done: seen.append(done))
    assert 0 < radii.queries.gradient <= 3 * 20
    assert radii.method == repr(method) == "MinNorm(p=2.0, steps=20, restarts=1, seed=0)"
    assert radii.bound == "upper"
    assert seen[-1] == (3, 3)


def test_a_warm_start_helps_and_is_checked() -> None:
    cases = hf.Classifier(small_net(), bounds=(-2, 2)).ask(torch.zeros(1, 12).double())
    whole = torch.ones(1, 1, 12, dtype=torch.bool)
    witness = hf.Judge()(cases, whole).witness
    cold, warm = hf.MinNorm(steps=2)(cases, whole), hf.MinNorm(steps=2)(cases, whole, start=witness)
    assert warm.radius.item() <= cold.radius.item()
    assert math.isfinite(warm.radius.item())
    with pytest.raises(hf.HoldfastError, match="start must be finite points"):
        hf.MinNorm()(cases, whole, start=witness[..., :5])


def test_running_out_of_memory_does_not_end_a_run() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.refused = small_net(), 0

        def forward(self, x: Tensor) -> Tensor:
            if len(x) > 20:
                self.refused += 1
                raise torch.OutOfMemoryError("CUDA out of memory")
            out: Tensor = self.net(x)
            return out

    net = Small().eval()
    cases = hf.Classifier(net, chunk=64).ask(torch.randn(5, 12).double())
    radii = hf.MinNorm(steps=20)(cases, torch.rand(5, 40, 12) < 0.8)
    assert net.refused > 0
    assert radii.radius.shape == (5, 40)


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
def test_bad_settings_are_refused(make: object) -> None:
    with pytest.raises(hf.HoldfastError):
        make()  # type: ignore[operator]


def test_linear_refuses_what_it_cannot_do() -> None:
    cases = hf.Classifier(small_net()).ask(torch.randn(3, 12).double())
    with pytest.raises(hf.HoldfastError, match="not affine"):
        hf.Linear()(cases, torch.ones(3, 1, 12, dtype=torch.bool))
