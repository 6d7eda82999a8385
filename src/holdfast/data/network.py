"""The interface of networks in experiments: by name, with their weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from holdfast.chunks import Progress
from holdfast.data.dataset import DataSet, Examples
from holdfast.errors import HoldfastError
from holdfast.models.torch import TorchModel
from holdfast.registry import Registry
from holdfast.text import TextModel


class Place(NamedTuple):
    """Where a network is made.

    Attributes:
        folder: Where weights that an experiment trains are kept.
        device: Where it computes.
        train: Whether to train weights that are not there. Otherwise untrained ones are enough, to plan with.
        progress: Called with (done, total) epochs.
    """

    folder: Path
    device: str = "cpu"
    train: bool = True
    progress: Progress | None = None


class Prepared(NamedTuple):
    """How images are cut for a network: pixels a side, and the share of the shorter side that is kept."""

    size: int
    crop: float


@dataclass(frozen=True)
class Network(ABC):
    """A network by name. Subclass as a frozen dataclass whose fields are its settings in ``[model]``.

    Attributes:
        name: What it is called in experiment files and on the command line.
        variants: Whether it is a library of networks, called ``name:VARIANT``.
        variant: The network of the library.
        weights: ``"embedded"``, ``"train"`` or a file.
        epochs: How long to train it; None: the network's default.
        seed: Seed of the training.
    """

    registry: ClassVar[Registry[Network]] = Registry("network", "holdfast.data")
    name: ClassVar[str]
    variants: ClassVar[bool] = False

    variant: str = ""
    weights: str = "embedded"
    epochs: int | None = None
    seed: int = 0

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Network.registry.add(cls)

    def __post_init__(self) -> None:
        if bool(self.variant) != self.variants:
            shown = f"{self.name}:NAME" if self.variants else self.name
            raise HoldfastError(f"expected the network {shown}, got {self.called}.")
        if self.epochs is not None and self.epochs < 1:
            raise HoldfastError(f"epochs must be at least 1, got {self.epochs}.")

    @property
    def called(self) -> str:
        """Its whole name."""
        return f"{self.name}:{self.variant}" if self.variant else self.name

    @abstractmethod
    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[TorchModel, dict[str, str]]:
        """Return the model, and facts about it for the report."""

    def prepared(self) -> Prepared:
        """Return how photographs are cut for it."""
        raise HoldfastError(f"{self.called} reads no photographs.")

    def text_model(self, device: str) -> TextModel:
        """Return the network with its reader of texts."""
        raise HoldfastError(f"{self.called} reads no texts.")

    @classmethod
    def parse(cls, text: str, **settings: Any) -> Network:
        """Make a network from its name, such as ``mnist-cnn`` or ``torchvision:resnet50``.

        Raises:
            HoldfastError: There is no such network; the nearest name is suggested.
        """
        name, _, variant = text.partition(":")
        made: Network = cls.registry.maker(name)(variant=variant, **settings)
        return made


def shown_names(names: tuple[str, ...]) -> str:
    """Return names of networks as text, those of libraries with ``:NAME``."""
    known = Network.registry.classes()
    shown = [f"{name}:NAME" if known[name].variants else name for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
