"""The interface of modalities: reading, features, names and drawing of one kind of inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from holdfast.cases import Cases
from holdfast.explanation import SUBSETS, Explanation
from holdfast.features import Features
from holdfast.models.torch import TorchModel
from holdfast.reference import RandomWords
from holdfast.registry import Registry
from holdfast.robustness import Judge
from holdfast.table import number
from holdfast.text import Sentences, TextModel


@dataclass(frozen=True)
class Source:
    """What a command is asked about.

    Attributes:
        file: An image file.
        digit: The number of an embedded digit.
        photo: The number of a photograph that comes with a package.
        text: A text.
        model: The network, by name.
        resize: Whether an image is scaled to the size of the network's inputs.
        device: Where the network computes.
    """

    file: Path | None = None
    digit: int | None = None
    photo: int | None = None
    text: str | None = None
    model: str | None = None
    resize: bool = False
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class Subject:
    """One input and the model that is asked about it.

    Attributes:
        modality: The kind of the input.
        model: The model.
        x: The input ``[1, *shape]``.
        name: The input, for programs.
        title: The input, for people.
        crop: The share of the shorter side of a photograph that is kept.
        sentences: The text as the model reads it.
        text_model: The model with its reader of texts.
    """

    modality: Modality
    model: TorchModel
    x: Tensor
    name: str | int
    title: str
    crop: float = 1.0
    sentences: Sentences | None = None
    text_model: TextModel | None = None

    def ask(self, target: str | None, features: str | None) -> Cases:
        """Return the case, with a class and features from the command line."""
        return self.model.ask(self.x, target=target, features=self.modality.features(features, self.x, self.sentences))

    @property
    def random_words(self) -> RandomWords | None:
        """Random words of the model; None if the input is no text."""
        return None if self.text_model is None else self.text_model.random_words


@dataclass(frozen=True)
class Stretch:
    """A part of a text.

    Attributes:
        text: The part.
        place: The place of a relevant word, 0 for the most relevant; None for other parts.
        replacement: A real word to put in its place.
    """

    text: str
    place: int | None = None
    replacement: str | None = None


@dataclass(frozen=True)
class Shown:
    """An explanation, ready for a page.

    Attributes:
        title: The method, or the question.
        facts: Names and values.
        image: The address of the picture of the relevant features.
        details: Addresses of smaller pictures, with a description of each.
        stretches: The text, cut at its relevant words.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    image: str = ""
    details: tuple[tuple[str, str], ...] = ()
    stretches: tuple[Stretch, ...] = ()


class Modality(ABC):
    """A kind of inputs. Subclasses have no state; one that sets ``name`` is found by it.

    Attributes:
        name: What it is called in stored results.
        explainer: The explainer that ``holdfast explain`` uses by default.
        top: How many features it shows by default: a share or a number.
        default_features: The features that it uses by default.
        suffixes: What the name of a file that ``draw`` writes may end in; empty: any kind of picture.
        keeps_moves: Whether the gallery keeps the changes of all methods, not only of the main one.
        template: The template of one example in reports.
        legend: How to read the gallery of a report; ``{top}`` and ``{main}`` are filled in.
    """

    registry: ClassVar[Registry[Modality]] = Registry("modality", "holdfast.modalities", ("explainer", "legend"))
    name: ClassVar[str]
    explainer: ClassVar[str] = "greedy-as-quick"
    top: ClassVar[float | int] = 0.2
    default_features: ClassVar[str] = "pixels"
    suffixes: ClassVar[tuple[str, ...]] = ()
    keeps_moves: ClassVar[bool] = True
    template: ClassVar[str] = "image.html"
    legend: ClassVar[str]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Modality.registry.add(cls)

    # ------------------------------------------------------------------ reading

    @classmethod
    def of(cls, source: Source) -> Modality:
        """Return the modality of what a command is asked about."""
        every = {name: made() for name, made in cls.registry.classes().items()}
        return next((one for one in every.values() if one.accepts(source)), every["image"])

    @abstractmethod
    def accepts(self, source: Source) -> bool:
        """Return whether the source is of this kind."""

    @abstractmethod
    def read(self, source: Source) -> Subject:
        """Return the input and its model.

        Raises:
            HoldfastError: One of them cannot be read.
        """

    def features(self, text: str | None, x: Tensor, sentences: Sentences | None = None) -> Features:
        """Return features from text.

        Args:
            text: Such as ``patches:16``; None: the default.
            x: The inputs ``[B, *shape]``.
            sentences: The inputs as texts, if they are.

        Raises:
            HoldfastError: Inputs of this kind have no such features.
        """
        return Features.parse(text or self.default_features, x)

    def judge(self, p: float, seed: int) -> Judge:
        """Return the robustness method that measures one explanation."""
        return replace(Judge.quick(p), seed=seed)

    def explained(self, subject: Subject, cases: Cases, explanation: Explanation) -> Explanation:
        """Add what is known of this kind of inputs to an explanation."""
        return explanation

    # ------------------------------------------------------------------ showing

    def facts(self, explanation: Explanation) -> list[tuple[str, str]]:
        """Return what else a reader should know about an explanation, by name."""
        return []

    def plain(self, explanation: Explanation) -> dict[str, list[int]]:
        """Return what else programs should know about an explanation, by name."""
        return {}

    @abstractmethod
    def draw(self, explanations: Sequence[Explanation], path: Path, title: str) -> None:
        """Write explanations of the same input to a file."""

    @abstractmethod
    def shown(self, explanation: Explanation, title: str) -> Shown:
        """Return an explanation ready for a page."""

    def input_image(self, explanation: Explanation) -> str:
        """Return the address of a picture of the input; empty if there is none."""
        return ""


def radius_facts(explanation: Explanation) -> tuple[tuple[str, str], ...]:
    """Return both radii and the classes that they lead to, as facts."""
    facts = []
    for k, (subset, new) in enumerate(zip(SUBSETS, explanation.new_class, strict=True)):
        if new >= 0:
            reached = f"{explanation.classes[new]} ({explanation.new_probability[k]:.0%})"
            facts.append((subset, f"{number(explanation.radius[k])} → {reached}"))
        else:
            facts.append((subset, explanation.radius_text(k) if explanation.proven[k] else "none found"))
    return tuple(facts)
