"""What callers may give to ``from_captum``, and what comes of what Captum raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from captum import attr as captum
from torch import Tensor, nn

import holdfast as hf
from holdfast.interop.captum import FromCaptum, from_captum
from toys import small_net


def _x(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize(
    "make",
    [captum.IntegratedGradients, captum.FeatureAblation, lambda net: captum.NoiseTunnel(captum.Saliency(net))],
)
def test_an_argument_that_captum_does_not_know_is_refused_when_the_explainer_is_made(make: Any) -> None:
    with pytest.raises(hf.HoldfastError, match=r"there is no argument of .* 'absolut': did you mean|use one of"):
        from_captum(make(small_net()), absolut=True)
    with pytest.raises(
        hf.HoldfastError, match="there is no argument of IntegratedGradients 'nsteps': did you mean n_s"
    ):
        from_captum(captum.IntegratedGradients(small_net()), nsteps=3)


def test_arguments_of_a_method_inside_a_noise_tunnel_are_known() -> None:
    net = small_net()
    method = captum.NoiseTunnel(captum.IntegratedGradients(net))
    explainer = from_captum(method, n_steps=5, nt_samples=2, stdevs=0.1)
    assert explainer(hf.TorchModel(net).ask(_x(2, 12))).order.shape == (2, 12)


class Broken(captum.Saliency):  # type: ignore[misc]  # Captum is not typed here
    def __init__(self, net: nn.Module, error: Exception):
        super().__init__(net)
        self.error = error

    def attribute(self, inputs: Tensor, target: Any) -> Tensor:
        raise self.error


def test_what_captum_raises_is_one_error_that_names_the_method() -> None:
    net = small_net()
    cases = hf.TorchModel(net).ask(_x(2, 12))
    failed = r"IntegratedGradients of Captum failed for inputs of shape \(2, 12\): "
    with pytest.raises(hf.HoldfastError, match=f"{failed}TypeError"):
        from_captum(captum.IntegratedGradients(net), n_steps="a")(cases)
    for baselines in (_x(1, 5), "text"):
        with pytest.raises(hf.HoldfastError, match=failed):
            from_captum(captum.IntegratedGradients(net), baselines=baselines)(cases)
    with pytest.raises(hf.HoldfastError, match=r"^mine\.$"):
        from_captum(Broken(net, hf.HoldfastError("mine.")))(cases)
    with pytest.raises(MemoryError):
        from_captum(Broken(net, MemoryError()))(cases)


def test_baselines_that_do_not_fit_what_never_moves_are_refused() -> None:
    net = small_net()
    cases = hf.TorchModel(net).ask(_x(2, 12), features=torch.tensor([0] * 6 + [-1] * 6))
    for baselines, message in (
        (_x(1, 5), r"baselines \(1, 5\) do not fit inputs"),
        ("text", "baselines must be a number or a tensor"),
        ((), "baselines must be a number or a tensor|do not fit"),
    ):
        with pytest.raises(hf.HoldfastError, match=message):
            from_captum(captum.FeatureAblation(net), baselines=baselines)(cases)


def test_arguments_are_tensors_with_values() -> None:
    for baselines in (_x(1, 12).to("meta"), (_x(1, 12).to(torch.complex64),), np.array(["a"])):
        with pytest.raises(hf.HoldfastError, match="baselines must be a tensor or an array"):
            from_captum(captum.IntegratedGradients(small_net()), baselines=baselines)
    with pytest.raises(hf.HoldfastError, match="arguments must be a mapping"):
        FromCaptum(captum.Saliency(small_net()), 3)  # type: ignore[arg-type]


def test_large_tensors_in_a_tuple_are_part_of_the_key() -> None:
    """Torch shortens the text of a large tensor."""
    zeros, other = torch.zeros(1, 2000), torch.zeros(1, 2000)
    other[0, 1000] = 1
    one, two = (from_captum(captum.IntegratedGradients(small_net()), baselines=(each,)) for each in (zeros, other))
    assert one != two


def test_every_seed_is_a_seed() -> None:
    net = small_net()
    for seed in (-1, 10**30):
        assert from_captum(captum.Saliency(net), seed=seed)(hf.TorchModel(net).ask(_x(2, 12))).order.shape == (2, 12)
