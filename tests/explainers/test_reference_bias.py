"""The paper's appendix on bias: what equals its reference cannot matter to methods that take features away."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import holdfast as hf
from holdfast.reference import kept_scores, reference_points
from toys import small_net

BIASED = [hf.IntegratedGradients, hf.DeepLift, hf.LeaveOneOut, hf.KernelShap]


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1000), value=st.floats(0, 1), feature=st.integers(0, 11))
@pytest.mark.parametrize("kind", BIASED)
def test_a_feature_at_its_reference_is_worth_exactly_nothing(
    kind: type[hf.Attribution], seed: int, value: float, feature: int
) -> None:
    x = torch.rand(2, 12, generator=torch.Generator().manual_seed(seed)).double()
    x[:, feature] = value
    cases = hf.TorchModel(small_net(seed), (0, 1)).ask(x)
    settings_of = {"samples": 100} if kind is hf.KernelShap else {}
    attributed = kind(reference=value, **settings_of).attribute(cases)  # type: ignore[call-arg]  # settings differ by kind
    assert attributed[:, feature].tolist() == [0.0, 0.0]


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1000), feature=st.integers(0, 11))
def test_lrp_gives_nothing_to_a_zero(seed: int, feature: int) -> None:
    x = torch.rand(2, 12, generator=torch.Generator().manual_seed(seed)).double()
    x[:, feature] = 0
    assert hf.Lrp().attribute(hf.TorchModel(small_net(seed)).ask(x))[:, feature].tolist() == [0.0, 0.0]


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1000), value=st.floats(0, 1), feature=st.integers(0, 11))
def test_insertion_and_deletion_do_not_see_it_join(seed: int, value: float, feature: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(1, 12, generator=generator).double()
    x[:, feature] = value
    cases = hf.TorchModel(small_net(seed), (0, 1)).ask(x)
    points = reference_points(cases, value)
    subset = torch.rand(1, 12, generator=generator) < 0.5
    joined = subset.clone()
    joined[:, feature] = True
    subset[:, feature] = False

    def score(kept: torch.Tensor) -> float:
        return float(kept_scores(cases, points, torch.tensor([0]), lambda piece: kept[piece]))

    assert score(subset) == score(joined)  # insertion: the subset is kept
    assert score(~subset) == score(~joined)  # deletion: it is taken away


@pytest.mark.parametrize("objective", [hf.RobustnessRest, hf.RobustnessRelevant])
def test_greedy_as_ranks_first_what_they_cannot_see(objective: type[hf.RobustnessRest | hf.RobustnessRelevant]) -> None:
    """A dark pixel that would turn the decision if it were lit: a pertinent negative."""
    net = nn.Linear(12, 2).double().eval()
    with torch.no_grad():
        net.weight.zero_()
        net.weight[0] = 0.1
        net.weight[0, 4] = -3.0
        net.bias.copy_(torch.tensor([1.0, 0.5]))
    x = torch.full((1, 12), 0.2).double()
    x[0, 4] = 0
    cases = hf.TorchModel(net.requires_grad_(False), (0, 1)).ask(x)
    assert int(cases.label) == 0
    ranking = hf.GreedyAS(objective(hf.MinNorm(steps=20)), step=1)(cases)
    assert int(ranking.order[0, 0]) == 4
    for kind in BIASED:
        assert float(kind().attribute(cases)[0, 4]) == 0
