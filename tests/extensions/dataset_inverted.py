"""A data set in one file: the embedded digits, dark on light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.data import mnist
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.network import Network, Place
from holdfast.models.torch import TorchModel


@dataclass(frozen=True)
class Inverted(DataSet):
    """The embedded digits, dark on light."""

    name: ClassVar[str] = "inverted-mnist"
    modality: ClassVar[str] = "image"
    networks: ClassVar[tuple[str, ...]] = ("last-pixels",)

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        x = 1 - mnist().x[:20]
        return Examples(x, tuple(f"inverted {number}" for number in range(len(x))))


@dataclass(frozen=True)
class LastPixels(Network):
    """A linear network of two classes."""

    name: ClassVar[str] = "last-pixels"

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[TorchModel, dict[str, str]]:
        import torch

        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 3)).eval().requires_grad_(False)
        return TorchModel(net, bounds=(0, 1), classes=["a", "b", "c"]), {"network": self.full_name}
