"""What explanations hold in memory is bounded, and bounding it changes nothing."""

from __future__ import annotations

import pytest
import torch

import holdfast as hf
from holdfast.explainers import selection
from holdfast.explainers.leastsquares import least_norm
from holdfast.explainers.removal import _coalitions
from holdfast.robustness.boundary import bytes_held, normals
from toys import small_net, tiny_photo_net


@pytest.fixture
def cases() -> hf.Cases:
    x = torch.randn(7, 12, generator=torch.Generator().manual_seed(0)).double()
    return hf.TorchModel(small_net(), bounds=(-4, 4)).ask(x)


@pytest.mark.parametrize("explainer", [hf.GreedyAS(), hf.OneStepBanzhaf(), hf.Greedy(step=0.2)])
def test_cases_in_blocks_are_ranked_as_all_together(
    cases: hf.Cases, explainer: hf.Explainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = explainer(cases)
    sizes: list[int] = []
    select = selection._select

    def noted(part: hf.Cases, *arguments: object) -> object:
        sizes.append(len(part))
        return select(part, *arguments)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(selection, "memory_budget", lambda device: 1)
    monkeypatch.setattr(selection, "_select", noted)
    done: list[tuple[int, int]] = []
    alone = explainer(cases, lambda *seen: done.append(seen))
    assert sizes == [1] * 7
    assert torch.equal(alone.order, whole.order)
    assert torch.equal(alone.uninformative, whole.uninformative)
    assert done == sorted(done)
    assert done[-1][0] == done[-1][1]


def test_cases_whose_decision_never_changes_are_named_by_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            score = torch.where(x[:, :1] > 100, 50.0, x.sum(1, keepdim=True) - 2)  # nothing else moves the first
            return torch.cat([score, -score], 1)

    x = torch.rand(4, 6, generator=torch.Generator().manual_seed(0)).double()
    x[2, 0] = 1000.0
    cases = hf.TorchModel(Stubborn().eval(), bounds=(0, 1000)).ask(
        x, features=hf.Features.columns([[1], [2], [3], [4], [5]], n=6)
    )
    monkeypatch.setattr(selection, "memory_budget", lambda device: 1)
    ranking = hf.GreedyAS.quick()(cases)
    assert ranking.uninformative.tolist() == [False, False, True, False]
    assert ranking.uncertain is not None
    assert ranking.uncertain.shape == (4,)
    assert float(ranking.uncertain[2]) == 1
    assert any("for case 2" in note for note in ranking.notes)
    with pytest.raises(hf.HoldfastError, match="no change of the decision was found for this case"):
        hf.GreedyAS.quick()(cases[2:3])


def test_the_estimate_of_what_normals_hold_is_not_too_small() -> None:
    x = torch.rand(2, 3, 64, 64)
    cases = hf.TorchModel(tiny_photo_net(), bounds=(0, 1)).ask(x)
    result = normals(cases, torch.ones(2, 4, 4096, dtype=torch.bool), 2.0, steps=2, classes=3)
    kept = result.worth.nbytes + 2 * result.nearest.move.nbytes
    assert 2 * bytes_held(cases, 4, 3) >= kept


def test_least_norm_is_the_pseudo_inverse_with_the_sum_given() -> None:
    design = torch.rand(9, 50, generator=torch.Generator().manual_seed(0)) < 0.5
    values = torch.rand(9, generator=torch.Generator().manual_seed(1)).double()
    every = torch.cat([design.double(), torch.ones(1, 50).double()])
    expected = torch.linalg.pinv(every) @ torch.cat([values, torch.tensor([3.0]).double()])
    result = least_norm(design, values, 3.0, width=7)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(design.double() @ result, values)
    assert float(result.sum()) == pytest.approx(3)


def test_subsets_drawn_in_blocks_are_those_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = _coalitions(40, 60, seed=3)
    monkeypatch.setattr("holdfast.explainers.removal._DRAWN", 100)
    parts, _ = _coalitions(40, 60, seed=3)
    assert torch.equal(whole, parts)


def test_shap_of_a_photographs_pixels_says_what_it_cannot_know() -> None:
    model = hf.TorchModel(tiny_photo_net(), bounds=(0, 1))
    x = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    cases = model.ask(x, features=hf.Features.pixels((3, 64, 64), channels="separate"))
    with pytest.warns(hf.HoldfastWarning, match="12288 features .* more unknowns than its 200 samples determine"):
        values = hf.KernelShap(samples=200).attribute(cases)
    score = [float(model(one)[0, cases.label[0]]) for one in (x, torch.zeros_like(x))]
    assert float(values.sum()) == pytest.approx(score[0] - score[1], rel=1e-3), "they still add up"


@pytest.mark.parametrize("features", ["pixels", "patches", "superpixels"])
@pytest.mark.parametrize(
    "explainer",
    [
        hf.GreedyAS.quick(),
        hf.OneStepBanzhaf(),
        hf.Grad(),
        hf.IntegratedGradients(),
        hf.ExpectedGradients(samples=10),
        hf.LeaveOneOut(),
        hf.Bbmp(steps=5),
        hf.Counterfactual(step=0.3),
        hf.DeepLift(),
        hf.Random(),
    ],
    ids=lambda explainer: type(explainer).__name__,
)
def test_every_kind_of_feature_of_a_photograph(explainer: hf.Explainer, features: str) -> None:
    x = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)).repeat_interleave(16, 2)
    x = x.repeat_interleave(16, 3)  # coloured squares: noise has no segments
    made = {
        "pixels": lambda: hf.Features.pixels((3, 64, 64)),
        "patches": lambda: hf.Features.patches((3, 64, 64), 16),
        "superpixels": lambda: hf.Features.superpixels(x, 20),
    }[features]()
    cases = hf.TorchModel(tiny_photo_net(), bounds=(0, 1)).ask(x, features=made)
    ranking = explainer(cases)
    for criterion in (hf.RobustnessRest(hf.MinNorm(steps=10)), hf.Insertion(draws=1)):
        assert bool(torch.isfinite(hf.trace(cases, ranking, criterion, (0.1, 0.3)).values).all())
