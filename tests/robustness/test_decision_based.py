"""The search from decisions alone: its limit of queries, and how near it comes to known radii."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.robustness import Rows
from toys import small_net

NORMS = (1.0, 2.0, math.inf)


def linear(bounds: tuple[float, float] | None = (0.0, 1.0), inputs: int = 8, classes: int = 3) -> hf.Cases:
    generator = torch.Generator().manual_seed(3)
    net = nn.Linear(inputs, classes).double().eval().requires_grad_(False)
    net.weight.copy_(torch.randn(classes, inputs, generator=generator))
    net.bias.copy_(torch.randn(classes, generator=generator) / 2)
    return hf.TorchModel(net, bounds=bounds).ask(torch.rand(4, inputs, generator=generator).double())


def masks(cases: hf.Cases) -> Tensor:
    """All features, and all but every third one."""
    every = torch.ones(len(cases), 2, cases.features.count, dtype=torch.bool)
    every[:, 1, ::3] = False
    return every


def decisions(cases: hf.Cases, bounds: tuple[float, float] | None = (0.0, 1.0)) -> hf.FunctionModel:
    """The decisions of the cases' model, and nothing else."""

    def decide(rows: Any) -> Any:
        return cases.model(torch.from_numpy(rows).double(), exact=True).argmax(1).numpy()

    return hf.FunctionModel(decide, bounds=bounds, classes=len(cases.model.classes))


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), None])
def test_near_the_closed_form_from_decisions(p: float, bounds: tuple[float, float] | None) -> None:
    cases = linear(bounds, classes=2)
    exact = hf.ExactLinear(p)(cases, masks(cases))
    asked = decisions(cases, bounds).ask(cases.x.float())
    radii = hf.DecisionBased(p, queries=1500, starts=3)(asked, masks(cases))
    assert torch.equal(radii.censored, exact.unreachable)
    ratio = (radii.radius.double() / exact.radius)[~exact.unreachable]
    assert float(ratio.min()) > 1 - 1e-4
    assert float(ratio.max()) < 1.12
    assert float(ratio.mean()) < 1.05


@pytest.mark.parametrize("p", NORMS)
def test_scores_come_nearer_than_decisions(p: float) -> None:
    cases = linear()
    exact = hf.ExactLinear(p)(cases, masks(cases)).radius
    method = hf.DecisionBased(p, queries=300, starts=2)
    from_scores = (method(cases, masks(cases)).radius / exact).nan_to_num(1)
    from_decisions = (method(decisions(cases).ask(cases.x.float()), masks(cases)).radius / exact).nan_to_num(1)
    assert float(from_scores.max()) < 1.001
    assert float(from_scores.mean()) < float(from_decisions.mean())


@pytest.mark.parametrize("p", NORMS)
def test_targeted(p: float) -> None:
    cases = linear(None)
    target = (cases.label + 1) % 3
    radii = hf.DecisionBased(p, queries=1500, starts=3)(
        decisions(cases, None).ask(cases.x.float(), target=target), masks(cases)
    )
    best = hf.Judge.quick(p)(cases.model.ask(cases.x, target=target), masks(cases))
    assert bool((radii.new_class[radii.witnessed] == target[:, None].expand(-1, 2)[radii.witnessed]).all())
    assert not bool(radii.censored.any())
    assert float((radii.radius / best.radius).max()) < 1.15


@pytest.mark.parametrize("queries", [20, 21, 50, 137, 400, 1111])
@pytest.mark.parametrize("starts", [1, 3, 8])
@pytest.mark.parametrize("access", ["decisions", "scores"])
def test_the_limit_of_queries_holds(queries: int, starts: int, access: str) -> None:
    cases = linear(inputs=12)
    cases = decisions(cases).ask(cases.x.float()) if access == "decisions" else cases
    rows = Rows.of(cases, masks(cases), slice(0, 8))
    before = cases.model.queries.forward
    delta = hf.DecisionBased(queries=queries, starts=starts).search(rows, None).delta
    asked = cases.model.queries.forward - before
    assert asked <= queries * len(rows)
    assert bool(((delta >= rows.low) & (delta <= rows.high)).all())


def test_nothing_is_asked_about_rows_that_cannot_move() -> None:
    cases = linear()
    rows = Rows.of(cases, torch.zeros(4, 1, 8, dtype=torch.bool), slice(0, 4))
    before = cases.model.queries
    hf.DecisionBased(queries=100).search(rows, None)
    assert cases.model.queries == before


def test_a_row_alone_and_in_a_batch() -> None:
    cases = decisions(linear()).ask(linear().x.float())
    method = hf.DecisionBased(queries=300, starts=2)
    together = method(cases, masks(cases))
    for case in range(len(cases)):
        alone = method(cases[case], masks(cases)[case : case + 1])
        torch.testing.assert_close(alone.radius[0], together.radius[case], rtol=1e-4, atol=0)


def test_a_warm_start_helps() -> None:
    net = hf.TorchModel(small_net(), bounds=(-2, 2))
    cases = net.ask(torch.rand(4, 12, generator=torch.Generator().manual_seed(5)).double() - 0.5)
    subsets = torch.ones(4, 1, 12, dtype=torch.bool)
    near = hf.Judge.quick()(cases, subsets)
    asked = decisions(cases, (-2, 2)).ask(cases.x.float())
    method = hf.DecisionBased(queries=60, starts=1)
    cold, warm = method(asked, subsets), method(asked, subsets, start=near.witness.float())
    assert bool((warm.radius <= cold.radius * (1 + 1e-4)).all())
    assert float((warm.radius / near.radius).max()) < 1.01


def test_a_useless_start_does_not_harm() -> None:
    cases = decisions(linear()).ask(linear().x.float())
    subsets = masks(cases)
    method = hf.DecisionBased(queries=600, starts=2)
    radii = method(cases, subsets, start=cases.x[:, None])
    assert torch.equal(radii.censored, method(cases, subsets).censored)


@pytest.mark.parametrize("p", NORMS)
def test_unreachable_rows_are_censored(p: float) -> None:
    model = hf.FunctionModel(lambda rows: np.zeros(len(rows), dtype=int), bounds=(0, 1), classes=2)
    radii = hf.DecisionBased(p, queries=100)(model.ask(torch.rand(3, 4)), torch.ones(3, 1, 4, dtype=torch.bool))
    assert bool(radii.censored.all())
    assert radii.queries.forward <= 3 * 101


@pytest.mark.parametrize("p", NORMS)
def test_steps_of_a_tree(p: float) -> None:
    """Class 1 needs one coordinate above 0.7, or two above 0.4: the nearest change depends on the norm."""

    def decide(rows: Any) -> Any:
        return ((rows > 0.7).any(1) | ((rows > 0.4).sum(1) >= 2)).astype(int)

    model = hf.FunctionModel(decide, bounds=(0, 1), classes=2)
    x = torch.tensor([[0.1, 0.2, 0.3, 0.1, 0.0, 0.35]])
    radii = hf.DecisionBased(p, queries=1000, starts=4)(model.ask(x), torch.ones(1, 1, 6, dtype=torch.bool))
    move = torch.tensor([0.1, 0.05]).double()
    assert float(radii.radius) == pytest.approx(float(torch.linalg.vector_norm(move, p)), rel=0.02)


def test_several_short_moves_replace_a_long_one() -> None:
    """One of three columns above 0.5 changes the decision; so do four of the others above 0.15, at a length of 0.3."""

    def decide(rows: Any) -> Any:
        return ((rows[:, :3] > 0.5).any(1) | ((rows[:, 3:] > 0.15).sum(1) >= 4)).astype(int)

    model = hf.FunctionModel(decide, bounds=(0, 1), classes=2)
    radii = hf.DecisionBased(queries=2000)(model.ask(torch.zeros(1, 12)), torch.ones(1, 1, 12, dtype=torch.bool))
    assert float(radii.radius) == pytest.approx(0.3, rel=0.02)


@pytest.mark.parametrize("queries", [0, 19, -3])
def test_too_few_queries_are_refused(queries: int) -> None:
    with pytest.raises(hf.HoldfastError, match="queries"):
        hf.DecisionBased(queries=queries)


def test_presets() -> None:
    assert hf.DecisionBased.quick(1).p == 1
    assert hf.DecisionBased.quick().queries < hf.DecisionBased().queries < hf.DecisionBased.thorough().queries
