"""Explanations of networks with re-initialised layers."""

from __future__ import annotations

import pytest
import torch
from matplotlib.figure import Figure
from scipy import stats
from torch import Tensor, nn

import holdfast as hf
from analyses.small import ranked, small_cases
from holdfast import analyses
from holdfast.analyses.sanity import reinitialised, sanity, spearman, trainable_layers
from toys import small_net


def test_spearman_is_scipys_with_ties_and_padding() -> None:
    generator = torch.Generator().manual_seed(0)
    one, other = (torch.randint(0, 5, (4, 12), generator=generator) for _ in range(2))
    found = spearman(ranked(one), ranked(other))
    for case in range(4):
        assert float(found[case]) == pytest.approx(stats.spearmanr(one[case], other[case]).statistic)
    ids = torch.tensor([[0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5], [0, 1, 2, 3, 3, 3, 3, 3, 3, 3, -1, -1]])
    cases = hf.TorchModel(small_net()).ask(torch.rand(2, 12), features=hf.Features.of(ids))
    scores = [torch.randint(0, 4, (2, 6), generator=generator).double() for _ in range(2)]
    padded = spearman(*(hf.Ranking.by_score(cases, score) for score in scores))
    assert float(padded[1]) == pytest.approx(stats.spearmanr(scores[0][1, :4], scores[1][1, :4]).statistic)


def test_an_order_without_order_is_excluded_and_counted() -> None:
    flat, steep = ranked(torch.zeros(4, 12)), ranked(torch.arange(48.0).reshape(4, 12))
    assert bool(spearman(flat, steep).isnan().all())
    result = analyses.Sanity(("flat",), ("last",), spearman(flat, steep)[None, None])
    assert result.table()[0]["rank correlation"] is None
    assert result.table()[0]["excluded"] == 4


def test_layers_start_anew_from_the_last_back_and_the_network_stays() -> None:
    net = small_net()
    assert trainable_layers(_asked(net)) == ["4", "2", "0"]
    before = [weight.clone() for weight in net.parameters()]
    fresh = reinitialised(net, ["4"], seed=3)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    changed = [not torch.equal(a, b) for a, b in zip(before, fresh.parameters(), strict=True)]
    assert changed == [False, False, False, False, True, True]
    again = reinitialised(net, ["4"], seed=3)
    assert all(torch.equal(a, b) for a, b in zip(fresh.parameters(), again.parameters(), strict=True))
    assert trainable_layers(_asked(nn.Linear(12, 2).double())) == [""]
    with pytest.raises(hf.HoldfastError, match="no layer that can be re-initialised"):
        trainable_layers(_asked(nn.Sequential(nn.ReLU())))


def _asked(net: nn.Module) -> hf.Cases:
    return hf.TorchModel(net.eval().requires_grad_(False)).ask(torch.rand(2, 12).double())


def test_the_last_layer_is_the_one_an_input_passes_last_whatever_it_is_called() -> None:
    class HeadFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classify, self.unused, self.body = nn.Linear(5, 3), nn.Linear(2, 2), nn.Linear(12, 5)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.classify(self.body(x).relu())
            return out

    cases = _asked(HeadFirst().double())
    assert trainable_layers(cases) == ["classify", "body"], "what is never used is left out"
    assert sanity(cases, {"Grad": hf.Grad()}).stages == ("classify",)


def test_sanity_sees_who_looks_at_the_network() -> None:
    class Brightest(hf.Explainer):
        def rank(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            return hf.Ranking.by_score(cases, cases.features.pool(cases.x), "brightest")

    cases = small_cases(8)
    explainers = {"brightest": Brightest(), "Grad": hf.Grad(), "Greedy-AS": hf.GreedyAS(step=0.2)}
    result = sanity(cases, explainers, cascade=True)
    assert result.stages == ("4", "2", "0")
    mean = result.correlation.nanmean(2)
    torch.testing.assert_close(mean[0], torch.ones(3).double())
    assert float(mean[1].abs().max()) < 0.7
    lost = mean[2].isnan()  # a network with fresh weights may never turn
    assert float(mean[2].nan_to_num(0).abs().max()) < 0.7
    assert len([note for note in result.notes if note.startswith("Greedy-AS")]) == int(lost.sum())
    assert len(result.table()) == 9
    result.draw(Figure().add_subplot())
    assert len(sanity(cases, {"Grad": hf.Grad()}).stages) == 1


def test_what_stays_as_trained_and_what_is_dropped_is_said() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.scale = small_net(), nn.Parameter(torch.ones(12).double())

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.net(x * self.scale)
            return out

    model = hf.TorchModel(Scaled().eval().requires_grad_(False))
    x = torch.rand(3, 12).double()
    label = model(x).argmax(1)
    fresh = model.with_module(reinitialised(model.module, trainable_layers(model.ask(x))[:1]))(x).argmax(1)
    target = torch.where(fresh != label, fresh, (label + 1) % 4)
    result = sanity(model.ask(x, target=target), {"Grad": hf.Grad()}, cascade=True)
    assert any(note.startswith("scale stayed as trained") for note in result.notes)
    assert any("targets were dropped" in note for note in result.notes) == bool((fresh != label).any())
    with pytest.raises(hf.HoldfastError, match="at least one explainer"):
        sanity(small_cases(), {})
