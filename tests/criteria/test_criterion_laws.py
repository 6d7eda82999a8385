"""Metamorphic laws that every criterion keeps, over one list that fails when a criterion is missing from it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.criteria.criterion import Criterion
from toys import small_net

CRITERIA = tuple(Criterion.registry.classes().values())

SETTINGS: dict[type[Criterion], Criterion] = {
    hf.RobustnessRest: hf.RobustnessRest(hf.MinNorm()),
    hf.RobustnessRelevant: hf.RobustnessRelevant(hf.MinNorm()),
    hf.Insertion: hf.Insertion(0.25),
    hf.Deletion: hf.Deletion(0.25),
}


def test_every_criterion_is_tried() -> None:
    assert set(SETTINGS) == set(CRITERIA)


def _search_error(kind: type[Criterion]) -> float:
    """What two searches that differ in rounding alone may differ by; nothing is searched for elsewhere."""
    return 5e-3 if kind in (hf.RobustnessRest, hf.RobustnessRelevant) else 1e-9


def _x(width: int = 12) -> Tensor:
    return torch.rand(4, width, generator=torch.Generator().manual_seed(0)).double()


def _relevant() -> Tensor:
    return torch.rand(4, 5, 12, generator=torch.Generator().manual_seed(1)) < 0.4


class Rewired(nn.Module):
    """A network that reads some columns of its input, in some order."""

    def __init__(self, net: nn.Module, columns: Tensor):
        super().__init__()
        self.net, self.columns = net, columns

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(x[:, self.columns])
        return out


@pytest.mark.parametrize("kind", CRITERIA)
def test_features_in_another_order_have_the_same_values(kind: type[Criterion]) -> None:
    order = torch.randperm(12, generator=torch.Generator().manual_seed(2))
    plain = hf.TorchModel(small_net()).ask(_x())
    moved = hf.TorchModel(Rewired(small_net(), order.argsort()).eval()).ask(_x()[:, order])
    expected = SETTINGS[kind](plain, _relevant())
    found = SETTINGS[kind](moved, _relevant()[:, :, order])
    torch.testing.assert_close(found, expected, rtol=_search_error(kind), atol=1e-6)


@pytest.mark.parametrize("kind", CRITERIA)
def test_a_feature_that_nothing_reads_changes_nothing(kind: type[Criterion]) -> None:
    plain = hf.TorchModel(small_net()).ask(_x())
    wider = torch.cat([_x(), torch.full((4, 1), 0.7).double()], 1)
    dead = hf.TorchModel(Rewired(small_net(), torch.arange(12)).eval()).ask(wider)
    expected = SETTINGS[kind](plain, _relevant())
    for joins in (False, True):
        relevant = torch.cat([_relevant(), torch.full((4, 5, 1), joins)], 2)
        torch.testing.assert_close(SETTINGS[kind](dead, relevant), expected, rtol=_search_error(kind), atol=1e-6)


@pytest.mark.parametrize("kind", CRITERIA)
def test_scores_scaled_alike_keep_radii_and_scale_scores(kind: type[Criterion]) -> None:
    """Scaling all logits keeps every decision."""
    net, louder = small_net(), small_net()
    for weight in louder[-1].parameters():
        weight.mul_(3)
    values = [SETTINGS[kind](hf.TorchModel(each).ask(_x()), _relevant()) for each in (net, louder)]
    times = 1 if kind in (hf.RobustnessRest, hf.RobustnessRelevant) else 3
    torch.testing.assert_close(values[1], times * values[0], rtol=_search_error(kind), atol=1e-6)


@pytest.mark.parametrize("kind", CRITERIA)
def test_batches_and_chunks_do_not_matter(kind: type[Criterion]) -> None:
    cases = hf.TorchModel(small_net()).ask(_x())
    whole = SETTINGS[kind](cases, _relevant())
    alone = torch.cat([SETTINGS[kind](cases[case], _relevant()[case : case + 1]) for case in range(4)])
    torch.testing.assert_close(alone, whole, rtol=1e-6, atol=1e-9)
    small = hf.TorchModel(small_net(), chunk=3).ask(_x())
    torch.testing.assert_close(SETTINGS[kind](small, _relevant()), whole, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", CRITERIA)
def test_subsets_that_do_not_match_are_refused(kind: type[Criterion]) -> None:
    cases = hf.TorchModel(small_net()).ask(_x())
    for wrong in (_relevant()[:, :, :5], _relevant()[:2], _relevant().float()):
        with pytest.raises(hf.HoldfastError, match="subsets must be"):
            SETTINGS[kind](cases, wrong)
    with pytest.raises(hf.HoldfastError, match="the ranking orders"):
        hf.trace(cases[:2], hf.Grad()(cases), SETTINGS[kind])


@pytest.mark.parametrize("kind", CRITERIA)
def test_progress_ends_at_the_end(kind: type[Criterion]) -> None:
    told: list[tuple[int, int]] = []
    cases = hf.TorchModel(small_net(), (0, 1), chunk=4).ask(_x())
    criterion = hf.Insertion("uniform", draws=3) if kind is hf.Insertion else SETTINGS[kind]
    criterion(cases, _relevant(), progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)
