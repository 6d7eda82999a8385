"""The Greedy family against brute force, and what it does with impossible questions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.criteria.criterion import Criterion
from holdfast.explainers.estimators import Draw, Estimate, Estimator
from holdfast.models.model import Access
from holdfast.robustness import Attack, Moves, Rows
from toys import small_net

D = 8


def _cases(n: int = 2) -> hf.Cases:
    return hf.TorchModel(small_net(inputs=D), (0, 1)).ask(torch.rand(n, D, generator=torch.Generator().manual_seed(2)))


@dataclass(frozen=True)
class Game(Criterion):
    """A pseudo-Boolean game in a criterion's clothes: linear, or with pairs that matter together."""

    linear: bool = True
    higher_is_better: ClassVar[bool] = True

    def measure(self, cases: hf.Cases, relevant: Tensor, progress: object) -> Tensor:
        joined = relevant.double()
        weight = torch.linspace(-1, 2, joined.shape[2]).double()
        value: Tensor = 3 + joined @ weight
        pairs = joined[..., :-1] * joined[..., 1:]
        return value if self.linear else value + pairs @ torch.linspace(1, -2, pairs.shape[2]).double()


def banzhaf(game: Callable[[Tensor], Tensor], d: int) -> Tensor:
    """The mean of ``v(S + i) - v(S)`` over every S without i, by summing them all."""
    every = torch.tensor(list(product([False, True], repeat=d)))
    values = game(every)
    return torch.stack([values[every[:, i]].mean() - values[~every[:, i]].mean() for i in range(d)])


def _estimate(estimator: Estimator, objective: Criterion, samples: int, cases: hf.Cases, unchosen: Tensor) -> Estimate:
    return estimator(Draw(objective, cases, torch.zeros_like(unchosen), unchosen, samples, 0.5, seed=0))


@pytest.mark.parametrize("intercept", [True, False])
def test_regression_is_exact_on_a_linear_game(intercept: bool) -> None:
    cases, unchosen = _cases(), torch.ones(2, D, dtype=torch.bool)
    game = Game()
    estimate = _estimate(hf.Regression(intercept=intercept), game, 40, cases, unchosen)
    exact = banzhaf(lambda every: game(cases[0], every[None])[0], D)
    assert torch.allclose(exact, torch.linspace(-1, 2, D).double())
    close = torch.allclose(estimate.values, exact.expand(2, -1))
    assert close == intercept, "without an intercept the constant of the game leaks into every value"


@pytest.mark.parametrize("paired", [True, False])
def test_regression_tends_to_the_banzhaf_value_of_any_game(paired: bool) -> None:
    cases, unchosen = _cases(1), torch.ones(1, D, dtype=torch.bool)
    game = Game(linear=False)
    exact = banzhaf(lambda every: game(cases, every[None])[0], D)
    estimate = _estimate(hf.Regression(paired=paired), game, 4096, cases, unchosen)
    assert estimate.error is not None
    assert torch.allclose(estimate.values[0], exact, atol=0.1)
    within = (estimate.values[0] - exact).abs() <= 4 * estimate.error[0]
    assert bool(within.all()), "the standard error is honest"


def test_brute_force_agrees_with_shapiq() -> None:
    import shapiq  # not there on Python 3.10

    cases, game = _cases(1), Game(linear=False)

    def value(coalitions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return game(cases, torch.as_tensor(coalitions)[None])[0].numpy()

    oracle = shapiq.ExactComputer(n_players=D, game=value)(index="BV", order=1)
    exact = banzhaf(lambda every: game(cases, every[None])[0], D)
    assert [oracle[(i,)] for i in range(D)] == pytest.approx(exact.tolist())


@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("relative", [True, False])
def test_boundary_normals_give_the_banzhaf_value_of_a_linear_model(
    kind: type[hf.RobustnessRest] | type[hf.RobustnessRelevant], p: float, relative: bool
) -> None:
    """Two coordinates beside the players keep every coalition able to change the decision."""
    torch.manual_seed(0)
    net = nn.Linear(D + 2, 2).double().eval().requires_grad_(False)
    cases = hf.TorchModel(net).ask(torch.rand(1, D + 2).double())
    objective = kind(hf.ExactLinear(p))
    unchosen = torch.tensor([[True] * D + [False] * 2])
    chosen = ~unchosen if kind is hf.RobustnessRelevant else torch.zeros_like(unchosen)

    def game(every: Tensor) -> Tensor:
        relevant = torch.cat([every, chosen[:, D:].expand(len(every), -1)], 1)
        values = objective(cases, relevant[None])[0]
        return values.log() if relative else values

    exact = banzhaf(game, D)
    estimate = hf.BoundaryNormals(steps=2, classes=1, relative=relative)(
        Draw(objective, cases, chosen, unchosen, 2000, 0.5, seed=0)
    )
    assert estimate.error is not None
    error = (estimate.values[0, :D] - exact).abs()
    assert bool((error <= 0.02 * exact.abs().max() + 4 * estimate.error[0, :D]).all())


@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant])
def test_greedy_as_finds_the_features_that_matter(kind: type[hf.RobustnessRest] | type[hf.RobustnessRelevant]) -> None:
    net = nn.Linear(D, 2, bias=False).double().eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[0.0, 3, 0.1, 0, -2, 0.2, 0, 1], [0.0] * D]))
    x = torch.rand(1, D, generator=torch.Generator().manual_seed(0)).double()
    cases = hf.TorchModel(net, (-9, 9)).ask(x)
    for explainer in (
        hf.GreedyAS(kind(), budget=3, step=1),
        hf.OneStepBanzhaf(kind(), samples=64),
        hf.OneStepBanzhaf(kind(hf.MinNorm(steps=10)), samples=400, inclusion=0.5, estimator=hf.Regression()),
    ):
        assert set(explainer(cases).order[0, :3].tolist()) == {1, 4, 7}, explainer


def test_a_target_changes_what_matters() -> None:
    """Class 1 is reached through the first half of the inputs, class 2 through the second."""
    net = nn.Linear(D, 3).double().eval().requires_grad_(False)
    net.weight.zero_()
    net.weight[1, : D // 2], net.weight[2, D // 2 :] = 1.0, 0.9
    net.bias.copy_(torch.tensor([4.0, 0.0, 0.0]))
    model = hf.TorchModel(net, (0, 3))
    x = torch.full((2, D), 0.3).double()
    ranking = hf.GreedyAS(budget=0.5, step=1)(model.ask(x, target=[1, 2]))
    assert set(ranking.order[0, : D // 2].tolist()) == set(range(D // 2))
    assert set(ranking.order[1, : D // 2].tolist()) == set(range(D // 2, D))


def test_subsets_that_do_not_tell_features_apart_leave_them_in_doubt() -> None:
    cases, unchosen = _cases(1), torch.ones(1, D, dtype=torch.bool)
    draw = Draw(Game(), cases, torch.zeros_like(unchosen), unchosen, 12, 0.02, seed=1)
    estimate = hf.Regression(paired=False)(draw)
    assert estimate.error is not None
    assert bool(torch.isinf(estimate.error).all())
    assert bool(torch.isfinite(estimate.values).all())


def test_doubt_is_told_only_where_errors_are_known() -> None:
    cases = _cases()
    for explainer in (hf.OneStepBanzhaf(), hf.GreedyAS(samples=1), hf.Greedy(hf.RobustnessRest(hf.MinNorm(steps=10)))):
        assert explainer(cases).uncertain is None, explainer


def test_a_decision_that_is_another_one_already_is_said_so() -> None:
    cases = _cases(1)
    other = cases.model.ask(cases.x, label=(cases.label + 1) % 4)
    ranking = hf.GreedyAS(samples=3)(other)
    assert ranking.uncertain is not None
    assert ranking.uncertain.tolist() == [1]
    assert "all features have the same value" in ranking.notes[0]


def test_greedy_takes_the_best_single_feature_each_time() -> None:
    cases = _cases(3)
    objective = hf.RobustnessRest(hf.MinNorm(steps=60))
    order = hf.Greedy(objective, budget=3, step=1)(cases).order
    for case in range(3):
        chosen = torch.zeros(D, dtype=torch.bool)
        for turn in range(3):
            tried = chosen | torch.eye(D, dtype=torch.bool)
            values = objective(cases[case], tried[None])[0]
            values = torch.where(chosen, -math.inf, torch.where(torch.isinf(values), 1e9, values))
            assert float(values[order[case, turn]]) >= 0.999 * float(values.max())
            chosen[order[case, turn]] = True


@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant])
def test_a_shortlist_of_everything_is_greedy(kind: type[hf.RobustnessRest] | type[hf.RobustnessRelevant]) -> None:
    cases = _cases(3)
    objective = kind(hf.MinNorm(steps=40))
    tried = hf.GreedyAS(objective, budget=3, step=1, shortlist=D, samples=2)(cases).order[:, :3]
    relevant = torch.zeros(3, 3, D, dtype=torch.bool)
    for turn in range(3):
        relevant[:, turn:] |= torch.nn.functional.one_hot(tried[:, turn], D).bool()[:, None]
    best = hf.Greedy(objective, budget=3, step=1)(cases).top([1, 2, 3])
    ours, theirs = objective(cases, relevant), objective(cases, best)
    # Equal choices, but for features between which the search cannot tell.
    assert torch.allclose(ours, theirs, rtol=1e-2)


def test_a_shortlist_changes_only_the_order_of_its_own() -> None:
    cases = _cases(2)
    game = Game()
    plain = hf.GreedyAS(game, budget=2, step=1, samples=200, inclusion=0.5, estimator=hf.Regression())
    listed = hf.GreedyAS(game, budget=2, step=1, samples=200, inclusion=0.5, estimator=hf.Regression(), shortlist=3)
    assert torch.equal(plain(cases).order, listed(cases).order), "in a linear game a value is what a trial says"


def test_small_steps_and_budgets_rank_what_they_say() -> None:
    seen: list[tuple[int, int]] = []
    ranking = hf.GreedyAS(budget=5, step=2, samples=4)(
        _cases(1), progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(2, 5), (4, 5), (5, 5)]
    assert ranking.uncertain is not None
    assert bool(((ranking.uncertain >= 0) & (ranking.uncertain <= 1)).all())


def test_paper_settings_run() -> None:
    paper = hf.GreedyAS.paper()
    assert paper.samples == 5000
    assert paper.step == 0.05
    assert "PGD" in repr(paper.objective)
    small = hf.GreedyAS(hf.RobustnessRest(hf.PGD.paper()), 0.25, 0.25, 20, 0.2, paper.estimator)
    assert small(_cases(1)).order.shape == (1, D)


@pytest.mark.parametrize("preset", ["quick", "default", "thorough"])
def test_presets_can_be_chosen_by_name(preset: str) -> None:
    explainer = getattr(hf.GreedyAS, preset)(hf.RobustnessRelevant())
    assert isinstance(explainer.objective, hf.RobustnessRelevant)
    assert explainer(_cases(1)).order.shape == (1, D)
    assert hf.GreedyAS.default() == hf.GreedyAS()


# ---------------------------------------------------------------------- models without gradients


@dataclass(frozen=True)
class Corners(Attack):
    """A decision-based search: the smallest of eight steps towards the box's lower corner that changes the decision."""

    p: float = 2
    requires: ClassVar[Access] = Access.DECISIONS

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        delta = torch.zeros_like(rows.x)
        for share in (1, 0.9, 0.75, 0.6, 0.45, 0.3, 0.2, 0.1):
            step = share * rows.low
            changed = rows.changed(rows.model(rows.points(step), exact=True))
            delta = torch.where(changed[:, None], step, delta)
        return Moves(delta)


@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant])
def test_greedy_explains_a_model_that_only_decides(kind: type[hf.RobustnessRest] | type[hf.RobustnessRelevant]) -> None:
    """The decision needs features 2 and 5; other features alone change nothing, so many subsets are censored."""
    model = hf.FunctionModel(lambda rows: (rows[:, 2] + rows[:, 5] > 1.2).astype(int), (0, 1), classes=2)
    cases = model.ask(torch.full((2, D), 0.8))
    explainer = hf.Greedy(kind(Corners()), budget=2, step=1)
    assert explainer.needs is Access.DECISIONS
    ranking = explainer(cases)
    assert {*ranking.order[0, :2].tolist()} == {2, 5}
    assert torch.equal(ranking.order[0], ranking.order[1])
    assert not bool(ranking.uninformative.any())
    assert model.queries.gradient == 0


def test_greedy_as_explains_a_model_that_only_decides_by_regression() -> None:
    model = hf.FunctionModel(lambda rows: (rows[:, 2] + rows[:, 5] > 1.2).astype(int), (0, 1), classes=2)
    explainer = hf.GreedyAS(
        hf.RobustnessRest(Corners()), budget=2, step=1, samples=64, inclusion=0.5, estimator=hf.Regression()
    )
    assert explainer.needs is Access.DECISIONS
    assert {*explainer(model.ask(torch.full((1, D), 0.8))).order[0, :2].tolist()} == {2, 5}


# ---------------------------------------------------------------------- bad input


def _stubborn(steep: float) -> hf.TorchModel:
    """A model that turns only past 0.9 in its first input, by ``steep``."""
    net = nn.Linear(D, 2).double().eval().requires_grad_(False)
    net.weight.zero_()
    net.weight[1, 0] = steep
    net.bias.copy_(torch.tensor([0.9, 0.0]))
    return hf.TorchModel(net, (0, 1))


@pytest.mark.parametrize("explainer", [hf.GreedyAS(samples=3), hf.Greedy(hf.RobustnessRest(hf.MinNorm(steps=10)))])
def test_a_model_that_never_changes_its_mind_is_said_so(explainer: hf.Explainer) -> None:
    with pytest.raises(hf.HoldfastError, match="no change of the decision was found for any of the 2 cases"):
        explainer(_stubborn(0.5).ask(torch.rand(2, D).double()))


def test_a_case_that_never_changes_is_noted_beside_others_that_do() -> None:
    class Mixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([0.9 * torch.ones_like(x[:, 0]), x[:, 0] * (x[:, 1] > 0.5)], 1)

    x = torch.full((2, D), 0.2)
    x[1, 1] = 0.9
    net = Mixed().eval()
    cases = hf.TorchModel(net, (0, 1)).ask(x)
    cases = cases.model.ask(x, features=hf.Features.columns([0, 2, 3, 4, 5, 6, 7], n=D))  # the switch never moves
    ranking = hf.GreedyAS(samples=3)(cases)
    assert ranking.uncertain is not None
    assert ranking.uncertain.tolist()[0] == 1
    assert "case 0:" in ranking.notes[0]
    assert int(ranking.order[1, 0]) == 0
    assert bool(torch.isfinite(ranking.scores).all())


def test_a_target_that_cannot_be_reached_is_an_error_and_not_an_order() -> None:
    net = nn.Linear(D, 3).double().eval().requires_grad_(False)
    net.weight.zero_()
    net.weight[1, 0], net.weight[2, 0] = 2.0, 0.1
    net.bias.copy_(torch.tensor([0.9, 0.0, 0.0]))
    cases = hf.TorchModel(net, (0, 1)).ask(torch.full((1, D), 0.2).double(), target=2)
    with pytest.raises(hf.HoldfastError, match="no change of the decision was found for this case"):
        hf.GreedyAS(samples=3)(cases)


def test_an_interrupt_ends_the_search_at_once() -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hf.GreedyAS(samples=3)(_cases(), progress=stop)
