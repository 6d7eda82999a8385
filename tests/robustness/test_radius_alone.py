from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.robustness import Moves
from holdfast.robustness.norms import L2
from holdfast.robustness.projection import successive_projection
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Search
from toys import small_net


def _cases(bounds: tuple[float, float] | None = (-4, 4)) -> tuple[hf.Cases, Tensor]:
    cases = hf.TorchModel(small_net(), bounds=bounds).ask(
        torch.randn(6, 12, generator=torch.Generator().manual_seed(3))
    )
    subsets = torch.rand(6, 5, 12, generator=torch.Generator().manual_seed(4)) < 0.6
    subsets[:, 4] = subsets[:, 0] | subsets[:, 1]
    return cases, subsets


@pytest.mark.parametrize("method", [hf.MinNorm(steps=20), hf.Judge(steps=10, classes=2, starts=1), hf.PGD(steps=10)])
def test_radii_alone_are_the_same_radii(method: hf.Robustness) -> None:
    cases, subsets = _cases()
    done: list[tuple[int, int]] = []
    alone = method.radius(cases, subsets, progress=lambda *seen: done.append(seen))
    assert torch.equal(alone, method(cases, subsets).radius), "witnesses of smaller sets are shared either way"
    assert done[-1] == (30, 30)
    assert torch.equal(alone, hf.RobustnessRelevant(method)(cases, subsets))


@dataclass(frozen=True)
class Short(hf.Attack):
    """The moves of another method, scaled: a search that stops a little or far before the boundary."""

    share: float
    p: float = 2

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        moves = hf.MinNorm(self.p, steps=60).search(rows, start)
        return moves._replace(delta=self.share * moves.delta)


def test_a_point_just_short_of_the_boundary_goes_a_little_farther() -> None:
    cases, subsets = _cases()
    best = hf.MinNorm(steps=60)(cases, subsets)
    short = Short(0.998)(cases, subsets)
    assert torch.equal(short.censored, best.censored)
    reached = ~best.censored
    ratio = (short.radius / best.radius)[reached]
    assert float(ratio.median()) < 1.002
    assert float(ratio.max()) < 1.1
    moved = cases.model(short.witness.flatten(0, 1)).argmax(1).view_as(short.new_class)
    assert torch.equal(moved[reached], short.new_class[reached]), "and is measured there"
    length = (short.witness - cases.x[:, None]).flatten(2).norm(dim=2)
    torch.testing.assert_close(length[reached], short.radius[reached])
    assert bool(Short(0.5)(cases, subsets).censored.all()), "what is far from it is no radius"


class Bending(nn.Module):
    """Two classes whose boundary bends: each coordinate reduces the margin only up to 0.3."""

    def forward(self, x: Tensor) -> Tensor:
        gain = (x.clamp_max(0.3) * torch.arange(20, 0, -1).to(x)).sum(1) - 40
        return torch.stack([-gain, gain], 1)


def test_a_boundary_that_no_linearisation_names_is_reached_by_going_on() -> None:
    cases = hf.TorchModel(Bending().eval()).ask(torch.zeros(1, 20).double())
    rows = Rows.of(cases, torch.ones(1, 1, 20, dtype=torch.bool), slice(0, 1))
    search = Search(rows, L2())
    successive_projection(search, 12)
    assert bool(torch.isfinite(search.best_radius()).all())
    judged = hf.Judge.quick()(cases, torch.ones(1, 1, 20, dtype=torch.bool))
    assert float(search.best_radius()) < 1.2 * float(judged.radius)


def test_the_exact_method_is_never_above_the_judge() -> None:
    refused = 0
    for seed in range(30):
        torch.manual_seed(seed)
        net = nn.Linear(6, 4).double().eval()
        model = hf.TorchModel(net)
        x = torch.randn(1, 6).double()
        target = int(model(x)[0].argsort()[1])
        cases = model.ask(x, target=target)
        every = torch.ones(1, 1, 6, dtype=torch.bool)
        try:
            exact = hf.ExactLinear()(cases, every).radius
        except hf.HoldfastError:
            refused += 1  # several boundaries meet
            continue
        assert float(exact) <= float(hf.Judge.quick()(cases, every).radius) * (1 + 1e-6)
    assert refused > 5
