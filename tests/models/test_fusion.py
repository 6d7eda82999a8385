"""Which layers are fused. What the kernels compute is tested on a GPU, in tests/test_gpu.py."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from holdfast.models import fusion
from holdfast.models.fusion import FusedConvolution, fused

X = torch.rand(2, 3, 8, 8)


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "kernels_work", lambda: True)


def fusions(module: nn.Module) -> dict[str, tuple[bool, fusion.Limits]]:
    return {
        name: (layer.depthwise, layer.limits)
        for name, layer in module.named_modules()
        if isinstance(layer, FusedConvolution)
    }


def test_each_convolution_gets_the_activation_that_follows_it() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.ReLU6(),
        nn.Conv2d(8, 8, 3, groups=8, bias=False),
        nn.ReLU(inplace=True),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.Conv2d(8, 4, 1, bias=False),
        nn.Flatten(),
    ).eval()
    made = fused(net, X)
    assert fusions(made) == {
        "0": (False, (0, 6)),
        "2": (True, (0, math.inf)),
        "4": (True, fusion.UNLIMITED),
    }
    assert type(made[1]) is type(made[3]) is nn.Identity  # type: ignore[index]
    assert type(net[1]) is nn.ReLU6, "the network itself is not changed"


class Shared(nn.Module):
    """One activation after two convolutions; with ``more`` also after a sum."""

    def __init__(self, more: bool):
        super().__init__()
        self.first, self.second, self.relu, self.more = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1), nn.ReLU(), more

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.second(self.relu(self.first(x))))
        x = self.relu(x + 1) if self.more else x
        return x.flatten(1)


def test_an_activation_goes_only_where_each_of_its_calls_follows_a_convolution() -> None:
    assert [limits for _, limits in fusions(fused(Shared(False), X)).values()] == [(0, math.inf)] * 2
    made = fused(Shared(True), X)
    assert [limits for _, limits in fusions(made).values()] == [fusion.UNLIMITED] * 2
    assert type(made.relu) is nn.ReLU


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(self.conv(x))
        return x.flatten(1)


class Changed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu = nn.Conv2d(3, 3, 1), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.conv(x).add_(1))
        return x.flatten(1)


def test_what_cannot_be_fused_stays() -> None:
    assert fusions(fused(Twice(), X)) == {}
    assert fusions(fused(Changed(), X)) == {"conv": (False, fusion.UNLIMITED)}  # its output was changed in place
    reflect = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect"), nn.ReLU())
    assert fused(reflect, X) is reflect
    double = nn.Sequential(nn.Conv2d(3, 3, 3), nn.ReLU()).double()
    assert fused(double, X.double()) is double


def test_nothing_is_fused_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "kernels_work", lambda: False)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    assert fused(net, X) is net
