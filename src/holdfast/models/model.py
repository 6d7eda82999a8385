"""The interface of models, which explainers, criteria and robustness methods use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from holdfast.domain import Domain
from holdfast.errors import HoldfastError, unknown_name
from holdfast.features import Features
from holdfast.registry import Registry


class Access(IntEnum):
    """The access that a model gives. Each level includes those before it.

    Explainers, criteria and robustness methods state the level that they require; a model states the level it gives.
    """

    DECISIONS = 1
    SCORES = 2
    GRADIENTS = 3
    LAYERS = 4

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Queries:
    """Rows put through a model.

    Copies that fill up a batch of a search on a GPU are counted.

    Attributes:
        forward: All rows.
        gradient: The rows that were also differentiated.
    """

    forward: int = 0
    gradient: int = 0

    def __add__(self, other: Queries) -> Queries:
        return Queries(self.forward + other.forward, self.gradient + other.gradient)

    def __sub__(self, other: Queries) -> Queries:
        return Queries(self.forward - other.forward, self.gradient - other.gradient)


class Step(Protocol):
    """A step of a search: a function of tensors that asks a model. Equal steps compute the same function."""

    def __call__(self, model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Compute new tensors. Nothing but the model's count of queries may change."""

    def __hash__(self) -> int: ...


class Model(ABC):
    """A classifier: it maps rows ``[R, *shape]`` to scores ``[R, classes]``.

    Attributes:
        access: The level of access that it gives.
        device: The torch device of its inputs and outputs.
        dtype: The precision of inputs, radii and scores.
        low: The smallest allowed input, broadcastable to one input; None without bounds.
        high: The largest allowed input; None without bounds.
        queries: Rows put through so far.
        columns: Names of the columns of an input, where the model knows them; otherwise empty.
        domain: Which points inside the bounds are inputs, such as whole numbers; None: all.
        features: What moves together if a question does not say; None: pixels of images, otherwise every coordinate.
    """

    access: Access
    device: torch.device
    dtype: torch.dtype
    low: Tensor | None
    high: Tensor | None
    queries: Queries
    columns: tuple[str, ...] = ()
    domain: Domain | None = None
    features: Features | None = None

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; their numbers if they have no names; empty before the first call of the model."""

    @abstractmethod
    def __call__(self, rows: Tensor, *, exact: bool = False) -> Tensor:
        """Return the scores of rows, without gradients.

        Args:
            rows: Inputs ``[R, *shape]``.
            exact: Use the model itself, not a faster form that rounds differently.

        Returns:
            Logits ``[R, classes]``, or the scores that the model has instead.
        """

    @abstractmethod
    def probabilities(self, scores: Tensor) -> Tensor:
        """Convert scores of this model, ``[R, classes]``, to probabilities ``[R, classes]``."""

    @abstractmethod
    def chunk(self, rows: Tensor, gradient: bool = True) -> int:
        """Return the batch size: how many rows of this shape go through the model at once.

        Args:
            rows: Inputs ``[R, *shape]``.
            gradient: Whether the rows are also differentiated, which takes more memory.
        """

    @abstractmethod
    def ask(self, x: Any, label: Any = None, target: Any = None, features: Any = None) -> Any:
        """Return ``Cases`` of inputs; see ``AskableModel.ask``, which documents the arguments."""

    @abstractmethod
    def check_ready(self) -> None:
        """Raise ``HoldfastError`` if the outputs of the model are random, as in training mode."""

    @abstractmethod
    def on(self, device: torch.device | str) -> Model:
        """Return this model on a device: itself if it is there, a copy otherwise."""

    def run(self, step: Step, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Run a step of a search. A model on a GPU may record the step and replay it, with the same result.

        Args:
            step: The step.
            tensors: Its arguments; the first one has one entry for each row.

        Returns:
            What the step returns.
        """
        return step(self, *tensors)

    def fills_up(self, rows: int) -> bool:
        """Return whether steps of this many rows are filled up with copies, to one of few batch sizes."""
        return False

    @property
    def smooth(self) -> bool:
        """Whether searches may follow gradients: the model gives them, and every point in the bounds is an input."""
        return self.access >= Access.GRADIENTS and (self.domain is None or self.domain.is_everything)

    def content(self) -> Mapping[str, Tensor] | None:
        """Return all numbers that decide what the model computes, by name; None: it has none to recognise it by."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about how the model was computed that the reader of results needs."""
        return ()

    def warn_if_saturated(self, scores: Tensor) -> None:  # noqa: B027  # most models have nothing to warn about
        """Warn if scores ``[R, classes]`` are rounded so that gradients vanish."""

    def class_name(self, number: int) -> str:
        """Return the name of a class."""
        return self.classes[number] if number < len(self.classes) else str(number)

    def class_number(self, name: str) -> int:
        """Return the number of a class.

        Args:
            name: Its name in any case, or its number as text.

        Raises:
            HoldfastError: No class, or more than one, has this name; the nearest one is suggested.
        """
        return class_number(name, self.classes)


class DifferentiableModel(Model):
    """A model whose scores can be differentiated with respect to its input."""

    @property
    def low_precision(self) -> bool:
        """Whether there is a faster, less exact gradient."""
        return False

    @abstractmethod
    def gradient(
        self, rows: Tensor, loss: Callable[[Tensor], Tensor], *, low_precision: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return scores and the gradient of a loss at the same points, in one pass.

        Args:
            rows: Inputs ``[R, *shape]``.
            loss: From scores ``[R, classes]`` to values ``[R]``.
            low_precision: Accept a less exact gradient. For searches whose results are checked exactly afterwards.

        Returns:
            Scores ``[R, classes]``, detached, and the gradient ``[R, *shape]``.
        """

    @abstractmethod
    def logits(self, rows: Tensor, *, exact: bool = False) -> Tensor:
        """Return logits for the caller to differentiate. Every row counts as one with a gradient.

        Args:
            rows: Inputs ``[R, *shape]``.
            exact: Use the model itself, not a faster form that rounds differently.

        Returns:
            Logits ``[R, classes]``, attached to the graph of ``rows``.
        """


def class_number(name: str, classes: Sequence[str]) -> int:
    """Return the number of a class.

    Args:
        name: Its name in any case, or its number as text.
        classes: Names of all classes.

    Returns:
        The index of the class. A number is not checked against ``classes``.

    Raises:
        HoldfastError: No class, or more than one, has this name; the nearest one is suggested.
    """
    numbers = [number for number, one in enumerate(classes) if one.lower() == name.lower()]
    if len(numbers) > 1:
        raise HoldfastError(
            f"{len(numbers)} classes are called {name!r}: use a number, {' or '.join(map(str, numbers))}."
        )
    if not numbers and name.isdecimal() and len(name) < 10:
        return int(name)
    if not numbers:
        raise unknown_name("class", name, classes, most=20)
    return numbers[0]


# ---------------------------------------------------------------------- the one check


class Requiring(Protocol):
    """A method that requires some access to a model."""

    requires: ClassVar[Access]

    @property
    def needs(self) -> Access:
        """The access that this instance requires, with its settings."""


def check_access(method: Requiring, model: Model, registry: Registry[Any]) -> None:
    """Refuse a method that requires more access than the model gives. No other function checks this.

    Args:
        method: An explainer, criterion or robustness method.
        model: The model to use it on.
        registry: All methods of the same kind.

    Raises:
        HoldfastError: The model gives too little access, and the message names methods that can be used; or the method
            is made for another kind of model.
    """
    if method.needs <= model.access:
        refusal = getattr(method, "refusal", None)  # of an explainer that is made for one kind of model
        if refusal is not None and (why := refusal(model)):
            raise HoldfastError(why)
        return
    fitting = [name for name, cls in registry.classes().items() if _fits(cls, model)]
    hint = f"use one of {', '.join(fitting)}" if fitting else "use a model that gives them, such as a TorchModel"
    access = f"the {type(model).__name__} gives only {model.access}"
    raise HoldfastError(f"{type(method).__name__} needs {method.needs}, and {access}: {hint}.")


def _fits(cls: Any, model: Model) -> bool:
    """Whether a method with its default settings can be used on a model."""
    try:
        made = cls()
    except TypeError:  # it has no defaults
        return bool(cls.requires <= model.access)
    serves, refusal = getattr(made, "serves", lambda _: True), getattr(made, "refusal", lambda _: "")
    return bool(made.needs <= model.access and serves(model) and not refusal(model))


def why_adapted(method: object, model: Model) -> str:
    """Return the beginning of a note that says why a method that follows gradients was replaced."""
    name = type(method).__name__
    if model.access < Access.GRADIENTS:
        return f"{name} needs gradients, and this model gives only {model.access}"
    return f"{name} takes any numbers as inputs, and this model has whole numbers or categories"


def differentiable(model: Model) -> DifferentiableModel:
    """Return the model, typed as one with gradients.

    Raises:
        HoldfastError: It has none. ``check_access`` finds this earlier; this is for direct callers.
    """
    if not isinstance(model, DifferentiableModel):
        raise HoldfastError(f"gradients are needed, and the {type(model).__name__} gives only {model.access}.")
    return model
