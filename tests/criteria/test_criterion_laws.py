"""Laws that every criterion keeps, over one table that fails when a criterion is missing from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import holdfast as hf
from holdfast.criteria.criterion import Criterion
from holdfast.testing import check_criterion
from holdfast.testing.criteria import LAWS
from toys import small_net

CRITERIA = tuple(Criterion.registry.classes().values())
SEARCHES = (hf.RobustnessRest, hf.RobustnessRelevant)

SETTINGS: dict[type[Criterion], Criterion] = {
    hf.RobustnessRest: hf.RobustnessRest(hf.MinNorm()),
    hf.RobustnessRelevant: hf.RobustnessRelevant(hf.MinNorm()),
    hf.Insertion: hf.Insertion(0.25),
    hf.Deletion: hf.Deletion(0.25),
}


def _rtol(kind: type[Criterion]) -> float:
    """How much values may differ by rounding; a search may end elsewhere, a closed form may not."""
    return 5e-3 if kind in SEARCHES else 1e-9


def _x() -> Tensor:
    return torch.rand(4, 12, generator=torch.Generator().manual_seed(0)).double()


def _relevant() -> Tensor:
    return torch.rand(4, 5, 12, generator=torch.Generator().manual_seed(1)) < 0.4


def test_every_criterion_is_checked() -> None:
    assert set(SETTINGS) == set(CRITERIA)


@pytest.mark.parametrize("kind", CRITERIA)
@pytest.mark.parametrize("law", LAWS)
def test_every_criterion_keeps_every_law(kind: type[Criterion], law: Callable[[Criterion, float], None]) -> None:
    law(SETTINGS[kind], _rtol(kind))


def test_one_call_checks_all_laws() -> None:
    check_criterion(hf.Insertion(0.25), rtol=1e-9)


@pytest.mark.parametrize("kind", CRITERIA)
def test_models_without_bounds_are_measured(kind: type[Criterion]) -> None:
    values = SETTINGS[kind](hf.TorchModel(small_net()).ask(_x()), _relevant())
    assert values.shape == (4, 5)
    assert bool(torch.isfinite(values).all())


@pytest.mark.parametrize("kind", CRITERIA)
def test_scores_scaled_alike_keep_radii_and_scale_scores(kind: type[Criterion]) -> None:
    """Scaling all logits keeps every decision."""
    net, louder = small_net(), small_net()
    for weight in louder[-1].parameters():
        weight.mul_(3)
    values = [SETTINGS[kind](hf.TorchModel(each).ask(_x()), _relevant()) for each in (net, louder)]
    times = 1 if kind in SEARCHES else 3
    torch.testing.assert_close(values[1], times * values[0], rtol=_rtol(kind), atol=1e-6)


@pytest.mark.parametrize("kind", CRITERIA)
def test_malformed_subsets_and_rankings_of_other_cases_are_refused(kind: type[Criterion]) -> None:
    cases = hf.TorchModel(small_net()).ask(_x())
    for wrong in (_relevant()[:, :, :5], _relevant()[:2], _relevant().float()):
        with pytest.raises(hf.HoldfastError, match="subsets must be"):
            SETTINGS[kind](cases, wrong)
    with pytest.raises(hf.HoldfastError, match="the ranking orders"):
        hf.trace(cases[:2], hf.Grad()(cases), SETTINGS[kind])


@pytest.mark.parametrize("kind", CRITERIA)
def test_progress_ends_at_the_end(kind: type[Criterion]) -> None:
    """A law allows a criterion to report none; all of these do."""
    reports: list[tuple[int, int]] = []
    cases = hf.TorchModel(small_net(), (0, 1), chunk=4).ask(_x())
    criterion = hf.Insertion("uniform", draws=3) if kind is hf.Insertion else SETTINGS[kind]
    criterion(cases, _relevant(), progress=lambda done, total: reports.append((done, total)))
    assert reports[-1][0] == reports[-1][1]
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
