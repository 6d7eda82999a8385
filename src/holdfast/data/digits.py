"""MNIST and Fashion-MNIST, and the digit network.

The package contains a thousand test digits. Full sets are read from a folder or downloaded from a mirror.
"""

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

from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from holdfast.data.idx import parse_idx, read_bytes
from holdfast.data.networks import mnist_cnn as mnist_cnn_network
from holdfast.errors import HoldfastError, HoldfastWarning, first_line
from holdfast.files import MEGABYTE, atomic, reading
from holdfast.models.torch import TorchModel

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FASHION_MIRROR = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
DIGITS = tuple("0123456789")
"""Names of the classes of MNIST."""
FASHION = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
"""Names of the classes of Fashion-MNIST."""
_LARGEST = 64 * 2**20  # bytes of the largest download that is accepted; the largest file has 26 MB
MOST_WEIGHTS = 1024 * MEGABYTE  # bytes of a file with weights of a network that holdfast trains
_PREFIX = {"train": "train", "test": "t10k"}

# SHA-256 of the uncompressed files, because mirrors compress them differently.
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
    """Images of 28 x 28 pixels and their classes.

    Attributes:
        x: Images ``[N, 1, 28, 28]`` with values from 0 to 1.
        y: Their classes ``[N]``.
    """

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
    """Read MNIST (LeCun et al. 1998).

    Args:
        root: A folder with idx or idx.gz files. None: the first 1,000 test digits, which the package contains.
        split: The split to read.
        download: Download files that ``root`` lacks. A file is stored only if its checksum is right.
        mirror: The address to download them from.

    Returns:
        The digits of the split.

    Raises:
        HoldfastError: A file is missing, damaged or cannot be downloaded, or the training split is read without
            ``root``.
    """
    _check_split(split)
    if root is None:
        if split == "train":
            raise HoldfastError("the package contains test digits only: name a root folder for the training split.")
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
    """Read Fashion-MNIST (Xiao et al. 2017, MIT licence).

    Args:
        root: A folder with idx or idx.gz files.
        split: The split to read.
        download: Download files that ``root`` lacks. A file is stored only if its checksum is right.
        mirror: The address to download them from.

    Returns:
        The images of the split.

    Raises:
        HoldfastError: A file is missing, damaged or cannot be downloaded.
    """
    return _split(Path(root), split, download, mirror, _FASHION_CHECKSUM)


def mnist_cnn() -> TorchModel:
    """Load the digit network that the package contains. Its model card states training and accuracy.

    Returns:
        A model of images ``[R, 1, 28, 28]`` with values from 0 to 1 and ten classes.
    """
    network = mnist_cnn_network()
    with as_file(files("holdfast.data") / "files" / "mnist-cnn.safetensors") as path:
        load_weights(network, path)
    return TorchModel(network.eval().requires_grad_(False), bounds=(0.0, 1.0), classes=DIGITS)


def load_weights(network: nn.Module, path: Path) -> dict[str, str]:
    """Load weights from a safetensors file. Nothing in the file is executed.

    Args:
        network: The network, changed in place.
        path: The file.

    Returns:
        The metadata of the file.

    Raises:
        HoldfastError: The file cannot be read, or its weights are those of another network.
    """
    with reading(path, "weights from", MOST_WEIGHTS):
        network.load_state_dict(load_file(path))
        with safe_open(path, "pt") as file:
            return dict(file.metadata() or {})


def _digits(images: bytes, labels: bytes, name: str) -> Digits:
    """Return the digits in the bytes of two idx files."""
    x, y = parse_idx(images, f"the images in {name}"), parse_idx(labels, f"the labels in {name}")
    if x.ndim != 3 or x.shape[1:] != (28, 28) or y.ndim != 1 or len(x) != len(y):
        raise HoldfastError(
            f"{name} should be images [N, 28, 28] and labels [N], got shapes {tuple(x.shape)} and {tuple(y.shape)}."
        )
    return Digits(x.float().div_(255).unsqueeze(1), y.long())


def _check_split(split: str) -> None:
    if split not in _PREFIX:
        raise HoldfastError(f'split must be "train" or "test", got {split!r}.')


def _split(root: Path, split: str, download: bool, mirror: str, checksum: dict[str, str]) -> Digits:
    """Read a split from a folder; warn if a file is not the one that is known by its name."""
    _check_split(split)
    names = [f"{_PREFIX[split]}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
    images, labels = (_read(root, name, download, mirror, checksum[name]) for name in names)
    digits = _digits(images, labels, str(root))
    for name, content in zip(names, (images, labels), strict=True):
        if hashlib.sha256(content).hexdigest() != checksum[name]:
            warnings.warn(
                f"{name} in {root} is not the known file of that name, because its checksum differs: it may be another "
                "data set.",
                HoldfastWarning,
                stacklevel=4,
            )
    return digits


def _read(root: Path, name: str, download: bool, mirror: str, checksum: str) -> bytes:
    """Return the content of a file of the set, decompressed."""
    with reading(root):
        for path in (root / name, root / f"{name}.gz"):
            if path.exists():
                return read_bytes(path)
    if not download:
        raise HoldfastError(f"{root} has no {name} or {name}.gz: copy it there or pass download=True.")
    return _download(root, name, mirror, checksum)


def _download(root: Path, name: str, mirror: str, checksum: str) -> bytes:
    """Download a file into the folder and return its content, decompressed."""
    address = f"{mirror.rstrip('/')}/{name}.gz"
    try:
        with urllib.request.urlopen(address, timeout=60) as reply:
            raw = reply.read(_LARGEST + 1)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise HoldfastError(f"cannot download {address}: {first_line(error)}") from error
    if len(raw) > _LARGEST:
        raise HoldfastError(f"{address} is larger than any file of MNIST: nothing was stored.")
    with atomic(root / f"{name}.gz") as part:
        part.write_bytes(raw)
        content = read_bytes(part)
        if hashlib.sha256(content).hexdigest() != checksum:
            raise HoldfastError(f"{address} is not the known {name} (wrong checksum): nothing was stored.")
    return content
