"""Laws of the robustness criteria."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import holdfast as hf
from holdfast.criteria.criterion import Criterion
from toys import small_net


def _cases_and_subsets(bounds: tuple[float, float] | None = (0, 1)) -> tuple[hf.Cases, Tensor]:
    cases = hf.TorchModel(small_net(), bounds).ask(torch.rand(4, 12, generator=torch.Generator().manual_seed(0)))
    return cases, torch.rand(4, 5, 12, generator=torch.Generator().manual_seed(1)) < 0.4


def test_every_criterion_is_listed() -> None:
    public = (getattr(hf, name) for name in dir(hf))
    criteria = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Criterion)}
    assert criteria - {Criterion} == set(Criterion.registry.classes().values())


def test_they_ask_about_the_rest_and_about_the_relevant() -> None:
    cases, relevant = _cases_and_subsets()
    method = hf.MinNorm(steps=20)
    assert torch.equal(hf.RobustnessRest(method)(cases, relevant), method(cases, ~relevant).radius)
    assert torch.equal(hf.RobustnessRelevant(method)(cases, relevant), method(cases, relevant).radius)
    assert hf.RobustnessRest.higher_is_better
    assert not hf.RobustnessRelevant.higher_is_better


@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant])
def test_nothing_exceeds_the_ceiling(kind: type[hf.RobustnessRest] | type[hf.RobustnessRelevant]) -> None:
    cases, relevant = _cases_and_subsets()
    for p in (1, 2, math.inf):
        criterion = kind(hf.MinNorm(p, steps=20))
        values, ceiling = criterion(cases, relevant), criterion.ceiling(cases, relevant)
        assert bool((values <= ceiling)[torch.isfinite(values)].all())
    assert bool(torch.isinf(hf.RobustnessRest().ceiling(*_cases_and_subsets(None))).all())


@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant])
def test_marginals_have_the_sign_of_joining(kind: type[hf.RobustnessRest] | type[hf.RobustnessRelevant]) -> None:
    cases, relevant = _cases_and_subsets(None)
    criterion = kind(hf.MinNorm(steps=60))
    estimate = criterion.marginals(cases, relevant, steps=8, classes=3, soft=0.0, state=None)
    assert bool(((estimate.effects >= 0) if kind.higher_is_better else (estimate.effects <= 0)).all())
    measured = criterion(cases, relevant)
    both = torch.isfinite(measured)
    assert float((estimate.values[both] / measured[both] - 1).abs().median()) < 0.05


@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant])
def test_bad_subsets_are_refused(kind: type[hf.RobustnessRest] | type[hf.RobustnessRelevant]) -> None:
    cases, relevant = _cases_and_subsets()
    for bad in (relevant[:, :, :5], relevant.float(), relevant[0]):
        with pytest.raises(hf.HoldfastError, match="subsets must be"):
            kind()(cases, bad)


@pytest.mark.parametrize("method", [hf.MinNorm, "min-norm"])
@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant, hf.Counterfactual])
def test_a_method_may_be_given_by_class_or_name(kind: Any, method: Any) -> None:
    assert kind(method).robustness == hf.MinNorm()


@pytest.mark.parametrize("kind", [hf.RobustnessRest, hf.RobustnessRelevant, hf.Counterfactual])
def test_what_is_no_robustness_method_is_refused(kind: Any) -> None:
    with pytest.raises(hf.HoldfastError, match="expected a holdfast robustness method, got Insertion"):
        kind(hf.Insertion())
    with pytest.raises(hf.HoldfastError, match="there is no robustness method 'minnorm'"):
        kind("minnorm")


def test_subsets_may_be_arrays_and_one_a_case() -> None:
    cases, relevant = _cases_and_subsets()
    criterion = hf.RobustnessRest(hf.MinNorm(steps=10))
    assert torch.equal(criterion(cases, relevant.numpy()), criterion(cases, relevant))
    assert torch.equal(criterion(cases, relevant[:, 0].numpy()), criterion(cases, relevant[:, :1]))


def test_a_radius_that_is_proven_to_be_infinite_counts_the_same_for_every_subset() -> None:
    model = hf.neighbours([[0.0, 0.0], [1.0, 0.0]], ["low", "high"], bounds=([0, 0], [1, 9]))
    cases = model.ask(torch.tensor([[0.25, 4.0]]))
    relevant = torch.tensor([[[True, False], [False, True], [True, True], [False, False]]])
    for criterion in (hf.RobustnessRest(), hf.RobustnessRelevant()):
        ceiling = criterion.ceiling(cases, relevant)[0]
        assert torch.allclose(ceiling[:2], torch.tensor(0.75**2 + 5**2).sqrt().to(ceiling))
        assert sorted(ceiling[2:].tolist()) == [0.0, float(ceiling[0])], "nothing is left to move in one of them"
