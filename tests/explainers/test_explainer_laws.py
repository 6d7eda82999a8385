"""Laws that every explainer keeps, over one list that fails when an explainer is missing from it."""

from __future__ import annotations

import pytest
import torch

import holdfast as hf
from holdfast.explainers import EXPLAINERS
from toys import small_net

CHEAP = hf.PerturbRest(hf.MinNorm(steps=10))
SETTINGS: dict[type[hf.Explainer], hf.Explainer] = {
    hf.GreedyAS: hf.GreedyAS(step=0.2),
    hf.Greedy: hf.Greedy(CHEAP, step=0.2),
    hf.OneStepBanzhaf: hf.OneStepBanzhaf(),
    hf.Grad: hf.Grad(),
    hf.Random: hf.Random(),
}


def _cases(bounds: tuple[float, float] | None = (0, 1)) -> hf.Cases:
    return hf.Classifier(small_net(), bounds).ask(torch.rand(5, 12, generator=torch.Generator().manual_seed(0)))


def test_every_explainer_is_listed_and_tried() -> None:
    found = {kind for kind in vars(hf).values() if isinstance(kind, type) and issubclass(kind, hf.Explainer)}
    assert found - {hf.Explainer} == set(EXPLAINERS) == set(SETTINGS)


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
    cases = hf.Classifier(small_net()).ask(torch.rand(2, 12), features=hf.Features.of(ids))
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
