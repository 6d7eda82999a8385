"""MNIST, Fashion-MNIST and the digit network in experiments."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from holdfast.cases import AskableModel
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.digits import DIGITS, FASHION, Digits, fashion_mnist, load_weights, mnist, mnist_cnn
from holdfast.data.network import Network, Place
from holdfast.data.networks import mnist_cnn as mnist_cnn_network
from holdfast.data.train import EPOCHS, train_cnn
from holdfast.errors import HoldfastError
from holdfast.models.torch import TorchModel


@dataclass(frozen=True)
class MnistData(DataSet):
    """Test digits of MNIST.

    Attributes:
        root: A folder with the idx files of the full set. None: the first thousand digits.
    """

    name: ClassVar[str] = "mnist"
    modality: ClassVar[str] = "image"
    networks: ClassVar[tuple[str, ...]] = ("mnist-cnn",)

    def read(self, split: Literal["train", "test"] = "test") -> Digits:
        """Read a split.

        Raises:
            HoldfastError: It cannot be read, or is not among the files.
        """
        return mnist(self.root, split=split)

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        digits = self.read()
        return Examples(digits.x, tuple(f"{self.name} #{number}" for number in range(len(digits))))

    def training(self) -> tuple[Digits, Digits]:
        if self.root is None:
            raise HoldfastError(
                "training needs the training split: name the folder of its idx files with --data FOLDER."
            )
        return self.read("train"), self.read("test")

    @property
    def class_names(self) -> tuple[str, ...]:
        return DIGITS


@dataclass(frozen=True)
class FashionData(MnistData):
    """Test images of Fashion-MNIST.

    Attributes:
        root: A folder with its idx files. The package does not contain them.
    """

    name: ClassVar[str] = "fashion-mnist"

    def read(self, split: Literal["train", "test"] = "test") -> Digits:
        if self.root is None:
            raise HoldfastError("Fashion-MNIST is not embedded: name the folder of its idx files with --data FOLDER.")
        return fashion_mnist(self.root, split=split)

    @property
    def class_names(self) -> tuple[str, ...]:
        return FASHION


@dataclass(frozen=True)
class MnistCnn(Network):
    """The digit network.

    Attributes:
        weights: ``"embedded"`` (trained on MNIST), ``"train"`` (on the data of the experiment) or a safetensors file.
    """

    name: ClassVar[str] = "mnist-cnn"

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[AskableModel, dict[str, str]]:
        if self.weights == "embedded":
            if data.name != MnistData.name:
                raise HoldfastError(
                    'model.weights should be "train" or a file: the embedded network classifies digits only.'
                )
            return mnist_cnn().on(place.device), {}
        path = self._trained(data, place) if self.weights == "train" else Path(self.weights)
        network, about = mnist_cnn_network(), {}
        if path.exists() or self.weights != "train":
            about = load_weights(network, path)
        module = network.eval().requires_grad_(False)
        return TorchModel(module, bounds=(0, 1), classes=data.class_names).on(place.device), about

    def _trained(self, data: DataSet, place: Place) -> Path:
        """Return the file of weights trained on the data. Train them if it is missing and training is allowed."""
        content = json.dumps([data.name, self.epochs, self.seed])
        path = place.folder / f"weights-{hashlib.sha256(content.encode()).hexdigest()[:8]}.safetensors"
        if not path.exists() and place.train:
            training, test = data.training()
            report = place.progress
            train_cnn(
                training,
                test,
                path,
                epochs=self.epochs or EPOCHS,
                seed=self.seed,
                device=place.device,
                progress=None if report is None else lambda done, total, _: report(done, total),
            )
        return path
