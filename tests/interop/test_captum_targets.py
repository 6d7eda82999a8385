"""Every explainer as a Captum attribution, over forms of targets and arguments: 14 explainers x 22 arrangements.

An arrangement is a shape of the outputs with a form of the target and further arguments, and each must give an input
the same attribution alone and in its batch. Of the 308 combinations, 248 pass and 60 are refused in one sentence,
because the argument has no meaning for the explainer, such as ``baselines`` for ``Grad``; ``test_the_count`` counts
them. They are arrangements of this test: Captum's own tests are not part of its package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from captum import attr as captum
from torch import Tensor, nn

import holdfast as hf
from holdfast.interop.captum import AsCaptum
from toys import small_net

B = 4


def _draw(seed: int, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)).double()


class Wide(nn.Module):
    """Two inputs, an argument for each input, a factor; outputs ``[R, 4]``, ``[R, 2, 2]`` or one score."""

    def __init__(self, out: str = "classes"):
        super().__init__()
        self.net, self.out = small_net(), out

    def forward(self, left: Tensor, right: Tensor | None = None, shift: Any = None, factor: float = 1.0) -> Tensor:
        rows = left if right is None else torch.cat([left, right], 1)
        scores: Tensor = self.net(rows if shift is None else rows + factor * shift)
        shaped = {"classes": scores, "grid": scores.reshape(-1, 2, 2), "column": scores[:, :1], "flat": scores[:, 0]}
        return shaped[self.out]


X, SHIFT, NEAR = _draw(0, B, 12), 0.3 * _draw(1, B, 12), 0.5 * _draw(2, B, 12)
TWO = (X[:, :8], X[:, 8:])
MIXED = [0, 1, 3, 0]
TUPLES = [(0, 1), (1, 0), (1, 1), (0, 1)]
SHORT = hf.RobustnessRest(hf.MinNorm(steps=5))
EXPLAINERS: dict[str, hf.Explainer] = {
    "GreedyAS": hf.GreedyAS(SHORT, step=0.5, samples=2),
    "Greedy": hf.Greedy(SHORT, step=0.5),
    "BruteForce": hf.BruteForce(SHORT, budget=1),
    "OneStepBanzhaf": hf.OneStepBanzhaf(SHORT, samples=2),
    "Grad": hf.Grad(),
    "IntegratedGradients": hf.IntegratedGradients(),
    "ExpectedGradients": hf.ExpectedGradients(_draw(3, 5, 12), 10),
    "KernelShap": hf.KernelShap(samples=60),
    "LeaveOneOut": hf.LeaveOneOut(),
    "DeepLift": hf.DeepLift(),
    "Lrp": hf.Lrp(),
    "Bbmp": hf.Bbmp(steps=5),
    "Counterfactual": hf.Counterfactual(hf.MinNorm(steps=5), step=0.5),
    "Anchor": hf.Anchor(batch=8, most_rows=100, most_features=2),
    "Random": hf.Random(),
}
WITH_BASELINES = {"IntegratedGradients", "ExpectedGradients", "KernelShap", "LeaveOneOut", "DeepLift", "Bbmp", "Anchor"}
ALL = set(EXPLAINERS)

# name: (output of the module, arguments, the explainers that take them)
ARRANGEMENTS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "number": ("classes", {"target": 1}, ALL),
    "list": ("classes", {"target": MIXED}, ALL),
    "tensor": ("classes", {"target": torch.tensor(MIXED)}, ALL),
    "tensor of one": ("classes", {"target": torch.tensor([1])}, ALL),
    "tuple": ("grid", {"target": (1, 0)}, ALL),
    "tuples": ("grid", {"target": TUPLES}, ALL),
    "one score, column": ("column", {}, ALL),
    "one score, flat": ("flat", {}, ALL),
    "two inputs": ("classes", {"inputs": TWO, "target": MIXED}, ALL),
    "further": ("classes", {"target": MIXED, "additional_forward_args": (None, SHIFT, 2.0)}, ALL),
    "further, constant": ("classes", {"target": MIXED, "additional_forward_args": (None, SHIFT[0], 2.0)}, ALL),
    "further, two inputs": ("classes", {"inputs": TWO, "target": MIXED, "additional_forward_args": (SHIFT, 2.0)}, ALL),
    "further, tuples": ("grid", {"target": TUPLES, "additional_forward_args": (None, SHIFT)}, ALL),
    "baseline number": ("classes", {"target": MIXED, "baselines": 0.25}, WITH_BASELINES),
    "baseline row": ("classes", {"target": torch.tensor([1]), "baselines": NEAR[:1]}, WITH_BASELINES),
    "baselines": ("classes", {"target": MIXED, "baselines": NEAR}, WITH_BASELINES),
    "baselines, tuples": ("grid", {"target": TUPLES, "baselines": NEAR}, WITH_BASELINES),
    "baselines, two": ("classes", {"inputs": TWO, "target": 1, "baselines": (NEAR[:, :8], 0.5)}, WITH_BASELINES),
    "batch size": ("grid", {"target": TUPLES, "internal_batch_size": 2}, ALL),
    "steps": ("classes", {"target": MIXED, "n_steps": 7}, {"IntegratedGradients"}),
    "samples": ("classes", {"target": MIXED, "n_samples": 40}, {"KernelShap", "ExpectedGradients"}),
    "mask": ("classes", {"target": MIXED, "feature_mask": torch.arange(12)[None] // 3}, ALL),
}


def _of(case: int, name: str, value: Any, distribution: bool) -> Any:
    """Return what one input of the batch is given alone."""
    if isinstance(value, tuple) and name != "target":
        return tuple(_of(case, name, one, distribution) for one in value)
    if isinstance(value, list) or (isinstance(value, Tensor) and len(value) == B):
        return value if name == "baselines" and distribution else value[case : case + 1]
    return value


def _attributed(explainer: str, out: str, arguments: dict[str, Any]) -> tuple[Tensor, ...]:
    method = AsCaptum(EXPLAINERS[explainer], Wide(out).eval())
    result = method.attribute(**{"inputs": X, **arguments})
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.filterwarnings("ignore::holdfast.HoldfastWarning")  # orders of what is not decided say so
def test_an_input_alone_is_attributed_as_in_its_batch(explainer: str, arrangement: str) -> None:
    out, arguments, taking = ARRANGEMENTS[arrangement]
    if explainer not in taking:
        with pytest.raises(hf.HoldfastError, match=rf"^{explainer} (compares with no baseline|has no argument)"):
            _attributed(explainer, out, arguments)
        return
    inputs = arguments.get("inputs", X)
    together = _attributed(explainer, out, arguments)
    assert [part.shape for part in together] == [part.shape for part in (inputs if isinstance(inputs, tuple) else (X,))]
    assert all(bool(torch.isfinite(part).all()) for part in together)
    for case in (0, 2):
        given = {"inputs": X, **arguments}
        alone = {name: _of(case, name, value, explainer == "ExpectedGradients") for name, value in given.items()}
        for one, whole in zip(_attributed(explainer, out, alone), together, strict=True):
            torch.testing.assert_close(one, whole[case : case + 1], rtol=1e-4, atol=1e-5)


def test_the_count() -> None:
    every = set(hf.Explainer.registry.classes().values())
    assert {type(one) for one in EXPLAINERS.values()} == every - {hf.TreeShap}  # which explains no module
    passing = sum(len(taking) for _, _, taking in ARRANGEMENTS.values())
    assert (passing, len(EXPLAINERS) * len(ARRANGEMENTS) - passing) == (263, 67)


PAIRS: dict[str, tuple[Callable[[nn.Module], Any], dict[str, Any]]] = {
    "IntegratedGradients": (captum.IntegratedGradients, {"n_steps": 10}),
    "DeepLift": (captum.DeepLift, {}),
    "LeaveOneOut": (captum.FeatureAblation, {}),
    "Grad": (captum.Saliency, {}),
}


@pytest.mark.parametrize("arrangement", [name for name in ARRANGEMENTS if name not in ("steps", "samples", "mask")])
@pytest.mark.parametrize("explainer", PAIRS)
@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks")
@pytest.mark.filterwarnings("ignore:Input Tensor .* did not already require gradients")
def test_values_are_those_of_captum(explainer: str, arrangement: str) -> None:
    out, arguments, taking = ARRANGEMENTS[arrangement]
    if explainer not in taking:
        pytest.skip("refused")
    make, settings = PAIRS[explainer]
    theirs = {name: value for name, value in arguments.items() if name != "internal_batch_size"}
    if arrangement == "further, constant":  # Captum repeats every tensor
        theirs["additional_forward_args"] = (None, SHIFT[:1].expand(B, -1), 2.0)
    inputs = arguments.get("inputs", X)
    copies = tuple(one.clone() for one in inputs) if isinstance(inputs, tuple) else inputs.clone()
    expected = make(Wide(out).eval()).attribute(**{**theirs, "inputs": copies, **settings})
    for one, other in zip(
        _attributed(explainer, out, arguments), expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        torch.testing.assert_close(one, other.detach().reshape(one.shape).to(one), rtol=1e-5, atol=1e-8)


def test_clipping_gives_one_warning() -> None:
    method = AsCaptum(hf.Grad(), small_net(), bounds=(0, 1))
    method.attribute(X.clamp_max(1) + 1e-9)  # rounding
    with pytest.warns(hf.HoldfastWarning, match=r"of 48 input values leave the bounds \(0, 1\), by up to"):
        method.attribute(X + 0.5)
    method.attribute(X + 0.5)  # a second warning would be an error


def test_a_noise_tunnel_repeats_arguments_with_their_inputs() -> None:
    method = AsCaptum(hf.IntegratedGradients(), Wide("grid").eval())
    arguments: dict[str, Any] = {"target": TUPLES, "additional_forward_args": (None, SHIFT), "baselines": NEAR}
    still = captum.NoiseTunnel(method).attribute(X, nt_samples=2, stdevs=0.0, **arguments)
    torch.testing.assert_close(still, method.attribute(X, **arguments))


def test_what_does_not_fit_is_refused() -> None:
    grid = AsCaptum(hf.IntegratedGradients(), Wide("grid").eval())
    with pytest.raises(hf.HoldfastError, match="need a target of 2 numbers for each input, got 1"):
        grid.attribute(X, target=1)
    with pytest.raises(hf.HoldfastError, match=r"target position \(5,\) is outside outputs"):
        grid.attribute(X, target=(0, 5))
    with pytest.raises(hf.HoldfastError, match=r"baselines must be a number or a tensor \[1 or 4, \*shape\]"):
        grid.attribute(X, target=(0, 1), baselines=NEAR[:2])
    with pytest.raises(hf.HoldfastError, match="baselines has 2 entries for 1 inputs"):
        grid.attribute(X, target=(0, 1), baselines=(0, 0))
    with pytest.raises(hf.HoldfastError, match="IntegratedGradients has no argument sliding_window_shapes: use"):
        grid.attribute(X, target=(0, 1), sliding_window_shapes=(2,))
    with pytest.raises(hf.HoldfastError, match="internal_batch_size must be a whole number"):
        grid.attribute(X, target=(0, 1), internal_batch_size=-1)
    with pytest.raises(hf.HoldfastError, match="class_axis must be a whole number >= 1"):
        AsCaptum(hf.Grad(), Wide().eval(), class_axis=0)
