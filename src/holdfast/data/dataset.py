"""The interface of data sets in experiments: examples to explain, and the networks that read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from holdfast.analyses.agreement import Marks
from holdfast.analyses.analysis import Vocabulary
from holdfast.columns import Columns
from holdfast.errors import HoldfastError
from holdfast.reference import FixedReference, RandomWords
from holdfast.registry import Registry
from holdfast.settings import Count, Natural, Settings
from holdfast.text import Sentences, TextModel


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples of a data set.

    Attributes:
        x: Inputs ``[N, *shape]``.
        names: The name of each example, in reports and in files of marks.
        sentences: The texts of the inputs; None if they are no texts.
        text_model: The model that embeds the texts; None if they are no texts.
        marks: Features that people marked; None if nobody did.
        columns: The columns of the table; None if inputs are no rows of a table.
    """

    x: Tensor
    names: tuple[str, ...]
    sentences: Sentences | None = None
    text_model: TextModel | None = None
    marks: Marks | None = None
    columns: Columns | None = None

    def __len__(self) -> int:
        return len(self.x)

    def some(self, first: int, count: int, name: str = "references") -> FixedReference:
        """Return some of the inputs as reference values ``[count, *shape]``.

        Args:
            first: The first input to use.
            count: How many inputs to use.
            name: The setting that asks for them, for messages.

        Raises:
            HoldfastError: There are not enough examples.
        """
        chosen = self.x[first : first + count]
        if len(chosen) < count:
            raise HoldfastError(f"{name} asks for more than the {len(self)} examples there are.")
        return FixedReference.inputs(chosen)

    @property
    def typical(self) -> FixedReference | None:
        """The medians of numbers and the most frequent categories, as one row; None if inputs are no rows."""
        return None if self.columns is None else FixedReference(typical_row(self.columns, self.x))

    @property
    def random_words(self) -> RandomWords | None:
        """A reference of random words; None if inputs are no texts."""
        return None if self.text_model is None else self.text_model.random_words

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words that the model knows; None if inputs are no texts."""
        if self.text_model is None:
            return None
        return Vocabulary(FixedReference(self.text_model.known_vectors), self.text_model.known_names)


def typical_row(columns: Columns, x: Tensor) -> Tensor:
    """Return the medians of numbers and the most frequent categories of rows, as one row.

    Args:
        columns: The columns.
        x: The rows as points ``[N, n]``.

    Returns:
        A point ``[n]``; every coordinate of a number is one that some row has.
    """
    point = torch.zeros_like(x[0])
    for column in columns:
        place = columns.slices[column.name]
        part = x[:, place]
        if column.kind == "categorical":
            point[place.start + int(part.sum(0).argmax())] = part.max()
        else:
            point[place] = part.median(0).values
    return point


@dataclass(frozen=True)
class DataSet(Settings, ABC):
    """A source of examples. Subclass it as a frozen dataclass whose fields are its settings in ``[data]``.

    A subclass that sets ``name`` can be named in experiment files.

    Attributes:
        name: The name in experiment files.
        modality: The name of the modality of its inputs.
        networks: Names of the networks that read it, the default first.
        allow_fewer: Whether an experiment that asks for more examples than there are gets all of them. Otherwise it is
            refused.
        root: The folder or file to read. None: the examples that the package contains.
        first: The first example to use.
        count: How many examples to use.
    """

    registry: ClassVar[Registry[DataSet]] = Registry("data set", "holdfast.data", ("modality", "networks"))
    name: ClassVar[str]
    modality: ClassVar[str]
    networks: ClassVar[tuple[str, ...]]
    allow_fewer: ClassVar[bool] = False

    root: str | None = None
    first: Natural = 0
    count: Count = 100

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        DataSet.registry.add(cls)

    @abstractmethod
    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        """Return the examples that the experiment may use.

        Args:
            network: The network of the experiment. It states how inputs are prepared.
            limit: The experiment uses at most this many. None: ``count`` of them.
            device: Where the network computes.

        Returns:
            At least the examples up to ``first + count``; the experiment takes the slice that ``wanted`` returns.

        Raises:
            HoldfastError: The data cannot be read.
        """

    def training(self) -> tuple[Any, Any]:
        """Return the training and the test split, to train a network on.

        Raises:
            HoldfastError: There is no training split.
        """
        raise HoldfastError(f"{self.name} has no training split: use other weights.")

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes; empty if the network states them."""
        return ()

    @property
    def default_network(self) -> str:
        """The name of the network that an experiment uses if it names none."""
        return self.networks[0]

    def others(self, available: int) -> Tensor:
        """Return the numbers of the examples that are not explained, in order: those outside ``first`` and ``count``.

        A limit of the experiment does not change them, so that a short run has the same references as the whole one.

        Args:
            available: How many examples there are.
        """
        number = torch.arange(available)
        return number[(number < self.first) | (number >= self.first + self.count)]

    def wanted(self, available: int, limit: int | None) -> slice:
        """Return the slice of the examples that the experiment uses.

        Args:
            available: How many examples there are.
            limit: Use at most this many. None: ``count`` of them.

        Raises:
            HoldfastError: There are not enough examples.
        """
        stop = self.first + min(self.count, limit or self.count)
        if self.allow_fewer and self.first < available:
            stop = min(stop, available)
        if stop > available:
            raise HoldfastError(
                f"data.first = {self.first} and data.count = {self.count} ask for more than the {available} examples "
                "there are."
            )
        return slice(self.first, stop)
