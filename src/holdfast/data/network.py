"""The interface of networks in experiments: a name, weights, and how inputs are prepared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from holdfast.cases import AskableModel
from holdfast.chunks import Progress
from holdfast.data.dataset import DataSet, Examples
from holdfast.errors import HoldfastError
from holdfast.registry import Registry
from holdfast.settings import Count, Settings
from holdfast.text import TextModel


class Place(NamedTuple):
    """Where a network computes and where its weights are stored.

    Attributes:
        folder: The folder of weights that an experiment trains.
        device: Where the network computes.
        train: Whether to train weights that are not in the folder. Otherwise the network stays untrained, which is
            enough to plan an experiment.
        progress: Called with (done, total) epochs.
    """

    folder: Path
    device: str = "cpu"
    train: bool = True
    progress: Progress | None = None


class Prepared(NamedTuple):
    """How photographs are prepared for a network.

    Attributes:
        size: Pixels a side.
        crop: Share of the shorter side that is kept.
    """

    size: int
    crop: float


@dataclass(frozen=True)
class Network(Settings, ABC):
    """A network by name. Subclass it as a frozen dataclass whose fields are its settings in ``[model]``.

    A subclass that sets ``name`` can be named in experiment files and on the command line.

    Attributes:
        name: The name in experiment files and on the command line.
        variants: Whether this is a library of networks, which are named ``name:VARIANT``.
        variant: The name of the network in the library; empty if this is no library.
        weights: ``"embedded"`` (those of the package or the library), ``"train"`` or a file.
        epochs: Epochs of training. None: the network's default.
        seed: Seed of the training.

    Raises:
        HoldfastError: A variant is missing or not allowed, or ``epochs`` is less than 1.
    """

    registry: ClassVar[Registry[Network]] = Registry("network", "holdfast.data")
    name: ClassVar[str]
    variants: ClassVar[bool] = False

    variant: str = ""
    weights: str = "embedded"
    epochs: Count | None = None
    seed: int = 0

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Network.registry.add(cls)

    def __post_init__(self) -> None:
        if bool(self.variant) != self.variants:
            shown = f"{self.name}:NAME" if self.variants else self.name
            raise HoldfastError(f"expected the network {shown}, got {' '.join(self.full_name.split())}.")

    @property
    def full_name(self) -> str:
        """The name, with the variant of a library."""
        return f"{self.name}:{self.variant}" if self.variant else self.name

    @abstractmethod
    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[AskableModel, dict[str, str]]:
        """Make the model.

        Args:
            data: The data set of the experiment.
            examples: Its examples.
            place: Where the network computes and where its weights are stored.

        Returns:
            The model, and facts about it for the report.

        Raises:
            HoldfastError: There are no such weights, or they are those of another network.
        """

    def prepared(self) -> Prepared:
        """Return how photographs are prepared for it.

        Raises:
            HoldfastError: It is not a network for photographs.
        """
        raise HoldfastError(f"{self.full_name} reads no photographs.")

    def text_model(self, device: str) -> TextModel:
        """Return the network with its reader of texts.

        Args:
            device: Where the network computes.

        Raises:
            HoldfastError: It is not a network for texts, or it cannot be loaded.
        """
        raise HoldfastError(f"{self.full_name} reads no texts.")

    @classmethod
    def parse(cls, text: str, **settings: Any) -> Network:
        """Make a network from its name.

        Args:
            text: A name, such as ``mnist-cnn`` or ``torchvision:resnet50``.
            **settings: Other fields of the network.

        Raises:
            HoldfastError: There is no such network; the nearest name is suggested.
        """
        name, _, variant = text.partition(":")
        network: Network = cls.registry.maker(name)(variant=variant, **settings)
        return network


def shown_names(names: tuple[str, ...]) -> str:
    """Return names of networks for a message.

    Args:
        names: Names of networks; a library is shown with ``:NAME``.

    Returns:
        The names, joined by commas and "or".
    """
    known = Network.registry.classes()
    shown = [f"{name}:NAME" if known[name].variants else name for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
