"""MNIST and Fashion-MNIST: a thousand digits inside the package, full sets from a folder or their public mirrors."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
import warnings
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from holdfast.data.idx import parse_idx, read_bytes
from holdfast.data.networks import mnist_cnn as mnist_cnn_network
from holdfast.errors import HoldfastError, HoldfastWarning, first_line
from holdfast.files import atomic
from holdfast.models.torch import TorchModel

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FASHION_MIRROR = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
DIGITS = tuple("0123456789")
FASHION = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
"""What the classes of Fashion-MNIST are."""
_LONGEST = 64 * 2**20  # bytes a download may have; the largest file has 10 MB
_PREFIX = {"train": "train", "test": "t10k"}

# SHA-256 of the uncompressed files: however a mirror compresses them, a download is checked.
_CHECKSUM = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_FASHION_CHECKSUM = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}


@dataclass(frozen=True, eq=False)
class Digits:
    """Images ``x [N, 1, 28, 28]`` in [0, 1] and their classes ``y [N]``."""

    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)


def mnist(
    root: str | os.PathLike[str] | None = None,
    *,
    split: Literal["train", "test"] = "test",
    download: bool = False,
    mirror: str = MIRROR,
) -> Digits:
    """The first 1,000 test digits, embedded; with ``root``, a full split from idx or idx.gz files there.

    ``download=True`` fetches what ``root`` lacks from ``mirror`` and keeps it only if its checksum is right.
    """
    _check_split(split)
    if root is None:
        if split == "train":
            raise HoldfastError("only test digits are embedded: name a root folder for the training split.")
        folder = files("holdfast.data") / "files"
        with as_file(folder / "mnist-1000-images.gz") as images, as_file(folder / "mnist-1000-labels.gz") as labels:
            return _digits(read_bytes(images), read_bytes(labels), "the embedded digits")
    return _split(Path(root), split, download, mirror, _CHECKSUM)


def fashion_mnist(
    root: str | os.PathLike[str],
    *,
    split: Literal["train", "test"] = "test",
    download: bool = False,
    mirror: str = FASHION_MIRROR,
) -> Digits:
    """A full split of Fashion-MNIST (Xiao et al. 2017, MIT licence) from idx or idx.gz files in ``root``.

    ``download=True`` fetches what ``root`` lacks from ``mirror`` and keeps it only if its checksum is right.
    """
    return _split(Path(root), split, download, mirror, _FASHION_CHECKSUM)


def mnist_cnn() -> TorchModel:
    """The embedded digit network (see its model card for how it was trained and what it reaches)."""
    network = mnist_cnn_network()
    with as_file(files("holdfast.data") / "files" / "mnist-cnn.safetensors") as path:
        load_weights(network, path)
    return TorchModel(network.eval().requires_grad_(False), bounds=(0.0, 1.0), classes=DIGITS)


def load_weights(network: nn.Module, path: Path) -> dict[str, str]:
    """Fill a network from a safetensors file and return what the file says about it; nothing in it is executed."""
    try:
        network.load_state_dict(load_file(path))
        with safe_open(path, "pt") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError, RuntimeError) as error:
        raise HoldfastError(f"cannot load weights from {path}: {first_line(error)}") from error


def _digits(images: bytes, labels: bytes, name: str) -> Digits:
    x, y = parse_idx(images, f"the images in {name}"), parse_idx(labels, f"the labels in {name}")
    if x.ndim != 3 or y.ndim != 1 or len(x) != len(y):
        raise HoldfastError(f"{name}: {tuple(x.shape)} images and {tuple(y.shape)} labels do not belong together.")
    return Digits(x.float().div_(255).unsqueeze(1), y.long())


def _check_split(split: str) -> None:
    if split not in _PREFIX:
        raise HoldfastError(f'split must be "train" or "test", got {split!r}.')


def _split(root: Path, split: str, download: bool, mirror: str, checksum: dict[str, str]) -> Digits:
    _check_split(split)
    names = [f"{_PREFIX[split]}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
    images, labels = (_find(root, name, download, mirror, checksum[name]) for name in names)
    found = _digits(images, labels, str(root))
    for name, content in zip(names, (images, labels), strict=True):
        if hashlib.sha256(content).hexdigest() != checksum[name]:
            warnings.warn(
                f"{name} in {root} is not the known file of that name, going by its checksum: another data set?",
                HoldfastWarning,
                stacklevel=4,
            )
    return found


def _find(root: Path, name: str, download: bool, mirror: str, checksum: str) -> bytes:
    for path in (root / name, root / f"{name}.gz"):
        if path.exists():
            return read_bytes(path)
    if not download:
        raise HoldfastError(f"{root} has no {name} or {name}.gz: copy it there or pass download=True.")
    return _download(root, name, mirror, checksum)


def _download(root: Path, name: str, mirror: str, checksum: str) -> bytes:
    address = f"{mirror.rstrip('/')}/{name}.gz"
    try:
        with urllib.request.urlopen(address, timeout=60) as reply:
            raw = reply.read(_LONGEST + 1)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise HoldfastError(f"cannot download {address}: {error}.") from error
    if len(raw) > _LONGEST:
        raise HoldfastError(f"{address} is larger than any MNIST file: nothing was kept.")
    with atomic(root / f"{name}.gz") as part:
        part.write_bytes(raw)
        content = read_bytes(part)
        if hashlib.sha256(content).hexdigest() != checksum:
            raise HoldfastError(f"{address} is not the known {name} (wrong checksum): nothing was kept.")
    return content
