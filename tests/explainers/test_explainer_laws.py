"""Laws that every explainer keeps, over one list that fails when an explainer is missing from it."""

from __future__ import annotations

import pytest
import torch

import holdfast as hf
from toys import small_net

EXPLAINERS = tuple(hf.Explainer.registry.classes().values())

CHEAP = hf.RobustnessRest(hf.MinNorm(steps=10))
SETTINGS: dict[type[hf.Explainer], hf.Explainer] = {
    hf.GreedyAS: hf.GreedyAS(step=0.2),
    hf.Greedy: hf.Greedy(CHEAP, step=0.2),
    hf.OneStepBanzhaf: hf.OneStepBanzhaf(),
    hf.Grad: hf.Grad(),
    hf.IntegratedGradients: hf.IntegratedGradients(),
    hf.ExpectedGradients: hf.ExpectedGradients(torch.rand(7, 12, generator=torch.Generator().manual_seed(1)), 20),
    hf.KernelShap: hf.KernelShap(samples=200),
    hf.LeaveOneOut: hf.LeaveOneOut(),
    hf.DeepLift: hf.DeepLift(),
    hf.Lrp: hf.Lrp(),
    hf.Bbmp: hf.Bbmp(steps=50),
    hf.Counterfactual: hf.Counterfactual(step=0.2),
    hf.Anchor: hf.Anchor(batch=16),
    hf.Random: hf.Random(),
}


def _cases(bounds: tuple[float, float] | None = (0, 1), classes: int = 4) -> hf.Cases:
    return hf.TorchModel(small_net(classes=classes), bounds).ask(
        torch.rand(5, 12, generator=torch.Generator().manual_seed(0))
    )


def test_every_explainer_is_listed_and_tried() -> None:
    public = (getattr(hf, name) for name in dir(hf))
    explainers = {kind for kind in public if isinstance(kind, type) and issubclass(kind, hf.Explainer)}
    assert explainers - {hf.Explainer, hf.Attribution} == set(EXPLAINERS) == set(SETTINGS)


@pytest.mark.parametrize("kind", EXPLAINERS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), None])
def test_a_ranking_orders_every_feature_once(kind: type[hf.Explainer], bounds: tuple[float, float] | None) -> None:
    ranking = SETTINGS[kind](_cases(bounds))
    assert torch.equal(ranking.order.sort(1).values, torch.arange(12).expand(5, -1))
    along = ranking.scores.gather(1, ranking.order)
    assert bool((along[:, :-1] >= along[:, 1:]).all())
    assert bool(torch.isfinite(ranking.scores).all())
    assert ranking.method == repr(SETTINGS[kind])


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_the_same_seed_gives_the_same_order(kind: type[hf.Explainer]) -> None:
    assert torch.equal(SETTINGS[kind](_cases()).order, SETTINGS[kind](_cases()).order)


@pytest.mark.parametrize("kind", [kind for kind in EXPLAINERS if kind is not hf.Random])
def test_a_case_is_explained_alike_alone_and_in_a_batch(kind: type[hf.Explainer]) -> None:
    cases = _cases()
    whole = SETTINGS[kind](cases).order
    alone = torch.cat([SETTINGS[kind](cases[case]).order for case in range(5)])
    assert torch.equal(whole, alone)


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_padding_comes_last(kind: type[hf.Explainer]) -> None:
    ids = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, -1, -1]])
    cases = hf.TorchModel(small_net()).ask(torch.rand(2, 12), features=hf.Features.of(ids))
    ranking = SETTINGS[kind](cases)
    assert ranking.order[1, :5].sort().values.tolist() == [0, 1, 2, 3, 4]
    assert ranking.count.tolist() == [12, 5]


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_targeted_questions_work_unchanged(kind: type[hf.Explainer]) -> None:
    cases = _cases()
    aimed = cases.model.ask(cases.x, target=(cases.label + 1) % 4)
    assert SETTINGS[kind](aimed).order.shape == (5, 12)


@pytest.mark.parametrize("kind", [kind for kind in EXPLAINERS if kind is not hf.Random])  # that one asks nothing
def test_training_mode_is_refused(kind: type[hf.Explainer]) -> None:
    cases = _cases()
    cases.model.module.train()
    with pytest.raises(hf.HoldfastError, match="training mode"):
        SETTINGS[kind](cases)


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_a_listing_tells_source_and_cost(kind: type[hf.Explainer]) -> None:
    cases = _cases(classes=10)
    before = cases.model.queries
    SETTINGS[kind](cases)
    asked = (cases.model.queries - before).forward / len(cases)
    expected = SETTINGS[kind].rows(12)
    assert kind.source
    if kind is hf.Anchor:  # a bandit: as many as it takes
        assert expected is None
    else:
        assert expected is not None
        assert asked / 2.5 <= expected <= 2.5 * asked


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_a_black_box_is_explained_or_refused_as_listed(kind: type[hf.Explainer]) -> None:
    net = small_net()
    model = hf.FunctionModel(lambda rows: net(torch.as_tensor(rows).double()).numpy(), (0, 1))
    cases = model.ask(torch.rand(2, 12, generator=torch.Generator().manual_seed(0)))
    if SETTINGS[kind].needs > model.access:
        with pytest.raises(
            hf.HoldfastError, match=f"{kind.__name__} needs .*, and the FunctionModel gives only scores"
        ):
            SETTINGS[kind](cases)
    else:
        assert SETTINGS[kind](cases).order.shape == (2, 12)


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_colour_images_have_one_place_a_pixel(kind: type[hf.Explainer]) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 3)
    )
    cases = hf.TorchModel(net.double().eval().requires_grad_(False), (0, 1)).ask(torch.rand(2, 3, 4, 4))
    explainer = hf.ExpectedGradients() if kind is hf.ExpectedGradients else SETTINGS[kind]
    assert explainer(cases).order.shape == (2, 16)
