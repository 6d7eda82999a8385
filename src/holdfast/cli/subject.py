"""What a command is about: one image, the network that is asked about it, and what its classes are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from holdfast.cases import Cases
from holdfast.cli.arguments import class_name, usable_device
from holdfast.data import imagenet_classifier, imagenet_names, mnist, mnist_cnn, photos, read_photo, zoo_classifier
from holdfast.data.zoo import LIBRARIES, cut_for
from holdfast.errors import HoldfastError
from holdfast.features import Features
from holdfast.models.model import class_number
from holdfast.models.torch import TorchModel


@dataclass(frozen=True, eq=False)
class Subject:
    """One input ``x [1, C, H, W]``, its model, its ``name`` for programs and its ``title`` for people."""

    model: TorchModel
    x: Tensor
    name: str | int
    title: str
    classes: tuple[str, ...] = ()
    photograph: bool = False
    crop: float = 1.0

    def called(self, number: int) -> str:
        """A class by name, or by number where it has none."""
        return self.classes[number] if self.classes else str(number)

    def number(self, text: str | None) -> int | None:
        """A class from its number or its name."""
        named = None if text is None else class_name(text)
        return class_number(named, self.classes) if isinstance(named, str) else named

    def features(self, text: str | None) -> Features:
        """Features from pixels, patches:N or superpixels:N; patches of 16 x 16 for a photograph if nothing is said."""
        text = text or ("patches:16" if self.photograph else "pixels")
        kind, _, size = text.partition(":")
        shape = tuple(self.x.shape[1:])
        if kind == "pixels" and not size:
            return Features.pixels(shape)
        if kind in ("patches", "superpixels") and size.isdecimal():
            return Features.patches(shape, int(size)) if kind == "patches" else Features.superpixels(self.x, int(size))
        raise HoldfastError(f"--features must be pixels, patches:N or superpixels:N, got {text!r}.")


def subject(
    image: Path | None,
    digit: int | None,
    photo: int | None,
    model: str | None,
    resize: bool,
    device: str,
    instead: str = "",
) -> Subject:
    """The image file, embedded digit or packaged photograph that was named, and the network for it.

    ``instead`` is what the command takes in the place of an image.
    """
    if sum(given is not None for given in (image, digit, photo)) != 1:
        images = "an image file, an embedded digit with --digit, a photograph with --photo"
        raise HoldfastError(f"name one of: {images}{instead}.")
    model = model or ("digits" if photo is None else "imagenet")
    if model not in ("digits", "imagenet") and model.partition(":")[0] not in LIBRARIES:
        raise HoldfastError(f"--model must be digits, imagenet, torchvision:NAME or timm:NAME, got {model!r}.")
    usable_device(device)
    if model == "digits":
        if photo is not None:
            raise HoldfastError("--photo is for --model imagenet: the digit network reads 28 x 28 grey pixels.")
        return _digit(image, digit, resize, device)
    if digit is not None:
        raise HoldfastError("--digit is for the digit network: leave --model out.")
    return _photograph(image, photo, model, device)


def _digit(image: Path | None, digit: int | None, resize: bool, device: str) -> Subject:
    network = mnist_cnn().on(device)
    if digit is None:
        assert image is not None
        return Subject(network, grey(image, (28, 28), resize)[None, None].to(device), str(image), str(image))
    digits = mnist()
    if not 0 <= digit < len(digits):
        raise HoldfastError(f"--digit must be between 0 and {len(digits) - 1}, got {digit}.")
    return Subject(network, digits.x[digit : digit + 1].to(device), digit, f"test digit #{digit}")


def _photograph(image: Path | None, photo: int | None, model: str, device: str) -> Subject:
    size, crop = cut_for(model)
    if image is not None:
        x, name = read_photo(image, size, crop=crop)[None], str(image)
    else:
        assert photo is not None
        packaged = photos(size)
        if not 0 <= photo < len(packaged):
            raise HoldfastError(f"--photo must be between 0 and {len(packaged) - 1}, got {photo}.")
        x, name = packaged.x[photo : photo + 1], packaged.names[photo]
    network = imagenet_classifier(device) if model == "imagenet" else zoo_classifier(model, device=device)
    x = x.to(device)
    network(x)  # its number of classes is known now
    classes = imagenet_names() if network.classes == 1000 else ()
    return Subject(network, x, name, name, classes, True, crop)


def masked(asked: Subject, cases: Cases, path: Path, resize: bool) -> Tensor:
    """Features that have a pixel which is not black in the mask; that of a photograph is cut as the photograph is."""
    height, width = cases.x.shape[2:]
    if asked.photograph:
        marked = read_photo(path, height, crop=asked.crop).amax(0) > 0.5
    else:
        marked = grey(path, (width, height), resize) > 0
    return cases.features.pool(marked.to(cases.x)[None, None].expand_as(cases.x)) > 0


def grey(path: Path, size: tuple[int, int], resize: bool) -> Tensor:
    """An image file in grey, ``[H, W]`` from 0 to 1, of that width and height."""
    try:
        with Image.open(path) as file:
            picture = file.convert("L")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise HoldfastError(f"cannot read the image {path}: {error}.") from error
    width, height = size
    if picture.size != size:
        if not resize:
            other = ", or --model imagenet for a photograph" if size == (28, 28) else ""
            raise HoldfastError(
                f"{path} is {picture.size[0]} x {picture.size[1]}, the network reads {width} x {height}: add "
                f"--resize{other}."
            )
        picture = picture.resize(size, Image.Resampling.BILINEAR)
    return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).reshape(height, width).float() / 255
