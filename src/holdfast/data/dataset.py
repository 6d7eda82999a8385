"""The interface of data sets in experiments: examples to explain, and the networks that can read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from holdfast.analyses.agreement import Marks
from holdfast.analyses.analysis import Vocabulary
from holdfast.errors import HoldfastError
from holdfast.reference import FixedReference, RandomWords
from holdfast.registry import Registry
from holdfast.text import Sentences, TextModel


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and what belongs to them.

    Attributes:
        x: Inputs ``[N, *shape]``.
        names: What each example is called.
        sentences: Texts as the model reads them; None if inputs are no texts.
        text_model: The model that read them.
        marks: Features that people marked.
    """

    x: Tensor
    names: tuple[str, ...]
    sentences: Sentences | None = None
    text_model: TextModel | None = None
    marks: Marks | None = None

    def __len__(self) -> int:
        return len(self.x)

    def some(self, first: int, count: int, name: str = "references") -> FixedReference:
        """Return some of the inputs as reference values; ``name`` is the setting that asks for them."""
        chosen = self.x[first : first + count]
        if len(chosen) < count:
            raise HoldfastError(f"{name} asks for more than the {len(self)} examples there are.")
        return FixedReference.inputs(chosen)

    @property
    def random_words(self) -> RandomWords | None:
        """Random words of the model; None if inputs are no texts."""
        return None if self.text_model is None else self.text_model.random_words

    @property
    def vocabulary(self) -> Vocabulary | None:
        """All words of the model; None if inputs are no texts."""
        if self.text_model is None:
            return None
        return Vocabulary(FixedReference(self.text_model.known_vectors), self.text_model.known_names)


@dataclass(frozen=True)
class DataSet(ABC):
    """A source of examples. Subclass as a frozen dataclass whose fields are its settings in ``[data]``.

    Attributes:
        name: What it is called in experiment files.
        modality: The kind of its inputs: the name of a modality.
        networks: Names of the networks that read it, the default first.
        all_there: Whether an experiment may ask for more examples than there are, and then gets all.
        root: The folder or file with the full set; None: what the package holds.
        first: The first example to use.
        count: How many examples to use.
    """

    registry: ClassVar[Registry[DataSet]] = Registry("data set", "holdfast.data", ("modality", "networks"))
    name: ClassVar[str]
    modality: ClassVar[str]
    networks: ClassVar[tuple[str, ...]]
    all_there: ClassVar[bool] = False

    root: str | None = None
    first: int = 0
    count: int = 100

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        DataSet.registry.add(cls)

    def __post_init__(self) -> None:
        if self.first < 0 or self.count < 1:
            raise HoldfastError(f"first must be at least 0 and count at least 1, got {self.first} and {self.count}.")

    @abstractmethod
    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        """Return the examples that the experiment may use.

        Args:
            network: The network of the experiment; it may say how inputs are prepared.
            limit: Use at most this many.
            device: Where the network computes.
        """

    def training(self) -> tuple[Any, Any]:
        """Return the training and the test split, to train a network on."""
        raise HoldfastError(f"{self.name} has no training split: use other weights.")

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes of a network that is trained on it."""
        return ()

    def wanted(self, available: int, limit: int | None) -> slice:
        """Return which of the available examples the experiment uses.

        Raises:
            HoldfastError: There are not enough.
        """
        stop = self.first + min(self.count, limit or self.count)
        if self.all_there and self.first < available:
            stop = min(stop, available)
        if stop > available:
            raise HoldfastError(
                f"data.first = {self.first} and data.count = {self.count} ask for more than the {available} examples "
                "there are."
            )
        return slice(self.first, stop)
