from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.models.torch import layers_of
from holdfast.robustness.rows import margin
from toys import small_net


class Functional(nn.Module):
    """Ends in a function, where no layer can be found by looking at the modules."""

    def __init__(self, net: nn.Module, kind: str):
        super().__init__()
        self.net, self.kind = net, kind

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.net(x)
        if self.kind == "softmax":
            return nn.functional.softmax(z, 1)
        if self.kind == "method":
            return z.softmax(-1)
        if self.kind == "sigmoid":
            p = torch.sigmoid(z[:, 0] - z[:, 1])
            return torch.stack([p, 1 - p], 1)
        if self.kind == "by hand":
            e = z.exp()
            return e / e.sum(1, keepdim=True)
        return torch.log_softmax(z, 1)


@pytest.mark.parametrize("kind", ["softmax", "method", "by hand", "log-softmax"])
def test_probabilities_give_the_radius_of_the_logits_behind_them(kind: str) -> None:
    net = small_net()
    x = torch.randn(6, 12, generator=torch.Generator().manual_seed(1)).double()
    subsets = torch.ones(6, 1, 12, dtype=torch.bool)
    plain = hf.MinNorm(steps=40)(hf.TorchModel(net).ask(x), subsets)
    wrapped = hf.MinNorm(steps=40)(hf.TorchModel(Functional(net, kind).eval()).ask(x), subsets)
    torch.testing.assert_close(wrapped.radius, plain.radius, rtol=1e-4, atol=0)


@pytest.mark.parametrize("kind", ["softmax", "method"])
def test_saturated_softmax_does_not_read_as_robust(kind: str) -> None:
    net = small_net()
    for parameter in net[-1].parameters():
        parameter.mul_(1e8)
    x = torch.randn(6, 12, generator=torch.Generator().manual_seed(1)).double()
    subsets = torch.ones(6, 1, 12, dtype=torch.bool)
    cases = hf.TorchModel(Functional(net, kind).eval()).ask(x)
    assert float(layers_of(cases.model).module(x).amax(1).min()) == 1.0
    plain = hf.MinNorm(steps=40)(hf.TorchModel(net).ask(x), subsets)
    torch.testing.assert_close(hf.MinNorm(steps=40)(cases, subsets).radius, plain.radius, rtol=1e-6, atol=0)


def test_saturation_behind_a_home_made_softmax_is_said() -> None:
    net = small_net()
    x = torch.randn(3, 12).double()
    list(net[-1].parameters())[1][0] = 100.0
    with pytest.warns(hf.HoldfastWarning, match="does not mean robustness"):
        hf.TorchModel(Functional(net, "sigmoid").eval()).ask(x)


def test_plain_logits_that_look_like_probabilities_once_are_left_alone() -> None:
    net = nn.Linear(2, 2, bias=False).double().eval().requires_grad_(False)
    net.weight.copy_(torch.eye(2))
    model = hf.TorchModel(net)
    assert model(torch.tensor([[1.0, 0.0]]).double()).tolist() == [[1.0, 0.0]]
    assert "output=logits" in repr(model)


def test_queries_count_rows() -> None:
    model = hf.TorchModel(small_net())
    x = torch.randn(5, 12).double()
    model(x)
    assert model.queries == hf.Queries(forward=5)
    label = torch.zeros(5, dtype=torch.long)
    model.gradient(x, lambda z: margin(z, label, label - 1))
    assert model.queries == hf.Queries(forward=10, gradient=5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_any_dtype_keeps_its_own(dtype: torch.dtype) -> None:
    model = hf.TorchModel(small_net().to(dtype), bounds=(-3, 3))
    cases = model.ask(torch.randn(4, 12).clamp(-3, 3))
    radii = hf.MinNorm(steps=30)(cases, torch.ones(4, 1, 12, dtype=torch.bool))
    assert next(model.module.parameters()).dtype == dtype
    assert radii.radius.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert bool(torch.isfinite(radii.radius).all())


def test_the_gradient_is_autograds() -> None:
    net = small_net()
    x = torch.randn(3, 12).double()
    label = net(x).argmax(1)
    points = x.clone().requires_grad_(True)
    z = net(points)
    z[torch.arange(3), label].sum().backward()
    _, slope = hf.TorchModel(net).gradient(x, lambda z: z.gather(1, label[:, None])[:, 0])
    torch.testing.assert_close(slope, points.grad)


def test_a_network_without_weights_works() -> None:
    model = hf.TorchModel(nn.Flatten().eval())
    assert model(torch.rand(2, 3)).shape == (2, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hf.TorchModel(nn.Linear(3, 2)), "training mode"),
        (lambda: hf.TorchModel("net"), "torch.nn.Module"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: hf.TorchModel(nn.Linear(3, 2).eval(), bounds=(1, 0)), "low < high"),
        (lambda: hf.TorchModel(nn.Linear(3, 2).eval(), bounds=(0, float("inf"))), "finite"),
        (lambda: hf.TorchModel(nn.Linear(3, 2).eval(), bounds=3), "bounds must be"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: hf.TorchModel(nn.Linear(3, 2).eval(), chunk=0), "a whole number >= 1"),
        (lambda: hf.TorchModel(nn.Linear(3, 1).eval()).ask(torch.rand(2, 3)), "one column"),
        (lambda: hf.TorchModel(nn.Linear(4, 2).eval()).ask(torch.rand(2, 3)), "failed in its forward pass"),
        (lambda: hf.TorchModel(nn.Conv1d(2, 2, 1).eval()).ask(torch.rand(3, 2, 5)), r"must return \[R, classes\]"),
        (lambda: hf.TorchModel(nn.LSTM(3, 2).eval()).ask(torch.rand(2, 3)), "must return a tensor"),
    ],
)
def test_bad_models_get_one_clear_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(hf.HoldfastError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_training_mode_is_refused_later_too() -> None:
    model = hf.TorchModel(small_net())
    cases = model.ask(torch.rand(2, 12).double())
    model.module.train()
    with pytest.raises(hf.HoldfastError, match="training mode"):
        hf.MinNorm()(cases, torch.ones(2, 1, 12, dtype=torch.bool))


def test_nan_scores_are_refused() -> None:
    net = nn.Linear(3, 2).eval().requires_grad_(False)
    net.weight.fill_(float("nan"))
    with pytest.raises(hf.HoldfastError, match="NaN"):
        hf.TorchModel(net).ask(torch.rand(2, 3))


def test_the_size_of_a_pass_follows_the_shape_of_the_input() -> None:
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)).eval()
    model = hf.TorchModel(net)
    small, large = torch.rand(1, 1, 8, 8), torch.rand(1, 1, 256, 256)
    model(small)
    assert model.chunk(small) > model.chunk(large)


def test_noise_outside_a_modules_domain_does_not_refuse_it() -> None:
    class Logarithm(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.log()

    assert hf.TorchModel(Logarithm().eval()).ask(torch.rand(3, 4) + 0.01).label.shape == (3,)


def test_normalize_keeps_inputs_bounds_and_radii_in_the_units_of_pixels() -> None:
    torch.manual_seed(0)
    line = torch.nn.Linear(3 * 4 * 4, 3)
    net = torch.nn.Sequential(torch.nn.Flatten(), line).double().eval().requires_grad_(False)
    mean, std = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.3, 0.25])
    model = hf.TorchModel(net, bounds=(0, 1), normalize=(mean, std))
    x = torch.rand(2, 3, 4, 4).double()
    wanted = net((x - mean.view(3, 1, 1).double()) / std.view(3, 1, 1).double())
    torch.testing.assert_close(model(x), wanted)
    torch.testing.assert_close(hf.TorchModel(net, normalize=(0.5, (0.2, 0.2, 0.2)))(x), net((x - 0.5) / 0.2))
    radii = hf.ExactLinear()(hf.TorchModel(net, normalize=(mean, std)).ask(x), torch.ones(2, 1, 16, dtype=torch.bool))
    weight = line.weight.view(3, 3, 4, 4) / std.view(3, 1, 1)  # per unit of the pixel, not of the normalised value
    for case in range(2):
        label = int(wanted[case].argmax())
        others = [k for k in range(3) if k != label]
        nearest = min(
            float((wanted[case, label] - wanted[case, k]) / (weight[label] - weight[k]).norm()) for k in others
        )
        assert float(radii.radius[case, 0]) == pytest.approx(nearest)


@pytest.mark.parametrize(
    ("normalize", "says"),
    [
        ((0.5,), "normalize must be \\(mean, std\\)"),
        ((0.5, 0.0), "std > 0"),
        ((float("nan"), 1.0), "must be finite"),
        (((0.5, 0.5), (1.0, 1.0, 1.0)), "2 means and 3 deviations"),
    ],
)
def test_bad_normalization_is_refused(normalize: Any, says: str) -> None:
    with pytest.raises(hf.HoldfastError, match=says):
        hf.TorchModel(torch.nn.Flatten().eval(), normalize=normalize)


def test_a_classifier_on_another_device_is_a_copy_with_its_box() -> None:
    model = hf.TorchModel(small_net(), (0.0, torch.ones(12)))
    assert model.on("cpu") is model
    moved = model.on("meta")  # a device that every machine has
    assert moved.device.type == "meta"
    assert {weight.device.type for weight in moved.module.parameters()} == {"meta"}
    assert moved.high is not None
    assert moved.high.device.type == "meta"
    assert {weight.device.type for weight in model.module.parameters()} == {"cpu"}
