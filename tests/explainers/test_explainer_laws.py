"""Laws that every explainer keeps, over one table that fails when an explainer is missing from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import holdfast as hf
from holdfast.testing import check_explainer
from holdfast.testing.explainers import LAWS
from holdfast.testing.subjects import image_network, inputs, network

EVERY = tuple(hf.Explainer.registry.classes().values())
OTHER_SUBJECTS = {hf.TreeShap}
"""Explainers that refuse networks: their own tests check the laws on the models that they explain."""
EXPLAINERS = tuple(kind for kind in EVERY if kind not in OTHER_SUBJECTS)

SETTINGS: dict[type[hf.Explainer], hf.Explainer] = {
    hf.GreedyAS: hf.GreedyAS(step=0.2),
    hf.Greedy: hf.Greedy(hf.RobustnessRest(hf.MinNorm(steps=10)), step=0.2),
    hf.BruteForce: hf.BruteForce(hf.RobustnessRest(hf.MinNorm(steps=10)), budget=2),
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
    hf.Anchor: hf.Anchor(batch=16, most_rows=1000),
    hf.Random: hf.Random(),
}


def test_every_explainer_is_public_and_checked() -> None:
    public = (getattr(hf, name) for name in dir(hf))
    explainers = {kind for kind in public if isinstance(kind, type) and issubclass(kind, hf.Explainer)}
    assert explainers - {hf.Explainer, hf.Attribution} == set(EVERY) == set(SETTINGS) | OTHER_SUBJECTS


@pytest.mark.parametrize("kind", EXPLAINERS)
@pytest.mark.parametrize("law", LAWS)
def test_every_explainer_keeps_every_law(kind: type[hf.Explainer], law: Callable[[hf.Explainer], None]) -> None:
    law(SETTINGS[kind])


def test_one_call_checks_all_laws() -> None:
    check_explainer(hf.Grad())


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_models_without_bounds_are_explained(kind: type[hf.Explainer]) -> None:
    """A law allows an explainer to refuse them; none of these does."""
    assert SETTINGS[kind](hf.TorchModel(network()).ask(inputs())).order.shape == (5, 12)


NAMES = [name for name in hf.Explainer.registry.makers() if "paper" not in name and name != "tree-shap"]


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_explains_an_input_of_one_feature(name: str) -> None:
    features = hf.Features.of(torch.zeros(1, 12, dtype=torch.long))
    cases = hf.TorchModel(network(), (0, 1)).ask(inputs()[:1], features=features)
    made = hf.Explainer.registry.make(name)
    made = replace(made, most_rows=1000) if isinstance(made, hf.Anchor) else made
    assert made(cases).order.tolist() == [[0]]


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_colour_images_have_one_place_a_pixel(kind: type[hf.Explainer]) -> None:
    """A law allows an explainer to refuse them; none of these does."""
    cases = hf.TorchModel(image_network(), (0, 1)).ask(torch.rand(2, 3, 4, 4))
    explainer = hf.ExpectedGradients() if kind is hf.ExpectedGradients else SETTINGS[kind]
    assert explainer(cases).order.shape == (2, 16)


@pytest.mark.parametrize("kind", EVERY)
def test_a_listing_has_source_and_cost(kind: type[hf.Explainer]) -> None:
    assert kind.source
    assert (SETTINGS.get(kind, hf.TreeShap()).rows(12) is None) == (kind is hf.Anchor), (
        "the cost of a bandit is not known before"
    )
