"""Explanations of neighbouring inputs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from matplotlib.figure import Figure

import holdfast as hf
from analyses.small import small_cases
from holdfast.analyses.sanity import sanity
from holdfast.analyses.sensitivity import neighbours, sensitivity
from toys import small_net


def test_neighbours_fill_the_ball_of_what_may_move() -> None:
    """Uniform in a disc: the mean distance is two thirds of the radius."""
    ids = torch.tensor([0, 1] + [-1] * 10)
    cases = hf.TorchModel(small_net()).ask(torch.rand(1, 12), features=hf.Features.of(ids))
    moved = neighbours(cases, 0.3, 2000).x - cases.x
    assert float(moved.norm(dim=1).mean()) == pytest.approx(0.2, rel=0.05)


def test_neighbours_are_in_the_ball_and_in_the_box() -> None:
    ids = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, -1, -1, -1, -1])
    cases = hf.TorchModel(small_net(), (0, 1)).ask(torch.rand(3, 12), features=hf.Features.of(ids))
    near = neighbours(cases, 0.1, 50)
    assert len(near) == 150
    moved = near.x.view(3, 50, 12) - cases.x[:, None]
    assert float(moved.norm(dim=2).max()) <= 0.1 + 1e-9
    assert float(moved.norm(dim=2).median()) > 0.05
    assert not bool(moved[:, :, 8:].any())
    assert 0 <= float(near.x.min()) <= float(near.x.max()) <= 1
    assert torch.equal(near.label.view(3, 50), cases.label[:, None].expand(-1, 50))


def test_sensitivity_is_the_worst_overlap() -> None:
    class Fickle(hf.Explainer):
        """Drops none, one or two of its three features, depending on the neighbour."""

        def rank(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            scores = torch.zeros(len(cases), 12).double()
            scores[:, :3] = 1
            moved = ~(cases.x[:, None] == base.x).all(2).any(1)
            third = (cases.x.sum(1) * 1e6).long() % 3
            scores[moved & (third >= 1), 2] = -1
            scores[moved & (third >= 2), 1] = -1
            return hf.Ranking.by_score(cases, scores)

    base = small_cases()
    explainer = Fickle()
    found = sensitivity(base, {"fickle": explainer}, top=3, samples=4).values[0]
    near = neighbours(base, 0.1, 4)
    overlaps = []
    for case in range(4):
        own = set(explainer(base).order[case, :3].tolist())
        every = [set(explainer(near).order[4 * case + k, :3].tolist()) for k in range(4)]
        overlaps.append([len(own & other) / 3 for other in every])
    torch.testing.assert_close(found, torch.tensor([1 - min(overlap) for overlap in overlaps]).double())
    assert any(max(overlap) > min(overlap) for overlap in overlaps)  # or mean and worst would be the same


def test_orders_that_mean_nothing_are_left_out() -> None:
    class Empty(hf.Explainer):
        def rank(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            ranking = hf.Grad()(cases)
            return replace(ranking, uninformative=torch.arange(len(cases)) == 0)

    result = sensitivity(small_cases(), {"empty": Empty()}, samples=3)
    assert bool(result.values[0, 0].isnan())
    assert not bool(result.values[0, 1:].isnan().any())
    assert (result.table()[0]["cases"], result.table()[0]["excluded"]) == (3, 1)
    assert sanity(small_cases(), {"empty": Empty()}).table()[0]["excluded"] == 1


def test_an_explanation_that_never_changes_is_not_sensitive() -> None:
    class Constant(hf.Explainer):
        def rank(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            return hf.Ranking.by_score(cases, torch.arange(12.0).double().expand(len(cases), -1))

    result = sensitivity(small_cases(), {"constant": Constant()}, samples=3)
    assert not bool(result.values.any())
    assert result.table()[0]["sensitivity"] == 0
    result.draw(Figure().add_subplot())
    with pytest.raises(hf.HoldfastError, match="radius > 0"):
        sensitivity(small_cases(), {"constant": Constant()}, radius=0)
