"""The interface of modalities: how one kind of inputs is read, divided into features, and drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from holdfast.cases import AskableModel, Cases
from holdfast.columns import Cell, Columns
from holdfast.errors import HoldfastError
from holdfast.explanation import SUBSETS, Explanation
from holdfast.features import Features
from holdfast.reference import RandomWords
from holdfast.registry import Registry
from holdfast.robustness import Judge, Radii
from holdfast.table import Table, number
from holdfast.text import Sentences, TextModel


@dataclass(frozen=True)
class Source:
    """The input and the network that a command names.

    Attributes:
        file: An image file.
        digit: The index of a digit that comes with the package.
        photo: The index of a photograph that comes with an installed package.
        text: A text.
        model: The name of the network; None: the default of the modality.
        resize: Whether an image is scaled to the size of the network's inputs.
        device: Where the network computes.
        rows: A row of a table, and what is stated about its columns; None: nothing.
    """

    file: Path | None = None
    digit: int | None = None
    photo: int | None = None
    text: str | None = None
    model: str | None = None
    resize: bool = False
    device: str = "cpu"
    rows: RowSource | None = None

    @property
    def named(self) -> list[str]:
        """What is named: the options that say which input is meant."""
        given = {"an image file": self.file, "--digit": self.digit, "--photo": self.photo, "--text": self.text}
        rows = [] if self.rows is None else self.rows.named
        return [name for name, value in given.items() if value is not None] + rows[:1]


@dataclass(frozen=True)
class RowSource:
    """A row of a table that a command names.

    Attributes:
        table: A .csv file; None: the table that comes with the package.
        row: The number of the row, from 0.
        columns: A file that ``Columns.save`` wrote; None: the columns are found out from the table.
        fixed: Names of further columns that never change.
        rising: Names of further columns whose values may only become larger.
        falling: Names of further columns whose values may only become smaller.
        classes: Names of the classes.
        label_column: The column of the table with the class, which the model does not see.
    """

    table: Path | None = None
    row: int | None = None
    columns: Path | None = None
    fixed: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    falling: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    label_column: str | None = None

    @property
    def named(self) -> list[str]:
        """The options that are given."""
        names = [field.name for field in fields(self) if getattr(self, field.name) not in (None, ())]
        return [f"--{name.replace('_', '-')}" for name in names]


@dataclass(frozen=True, eq=False)
class Subject:
    """One input and the model that classifies it.

    Attributes:
        modality: The kind of the input.
        model: The model.
        x: The input ``[1, *shape]``.
        name: The input in JSON output.
        title: The input in headings.
        crop: The side of the central crop of a photograph, as a share of its shorter side.
        sentences: The tokens of the text; None for other inputs.
        text_model: The model with its tokenizer; None for other inputs.
        columns: The columns of the table, if the input is a row of one.
    """

    modality: Modality
    model: AskableModel
    x: Tensor
    name: str | int
    title: str
    crop: float = 1.0
    sentences: Sentences | None = None
    text_model: TextModel | None = None
    columns: Columns | None = None

    def ask(self, target: str | None, features: str | None) -> Cases:
        """Return the input as one case.

        Args:
            target: The name or number of a class, for "why not this class?"; None: untargeted.
            features: The features as text, such as ``patches:16``; None: the default.

        Returns:
            One case.

        Raises:
            HoldfastError: The model has no such class, or the input no such features.
        """
        chosen = self.modality.features(features, self.x, self.sentences, self.columns)
        return self.model.ask(self.x, target=target, features=chosen)

    @property
    def random_words(self) -> RandomWords | None:
        """Random words from the vocabulary of the model; None if the input is not a text."""
        return None if self.text_model is None else self.text_model.random_words


@dataclass(frozen=True)
class Stretch:
    """A part of a text.

    Attributes:
        text: The part.
        place: The rank of a relevant word, 0 for the most relevant; None for other parts.
        replacement: A real word that can replace it; None if there is none.
    """

    text: str
    place: int | None = None
    replacement: str | None = None


@dataclass(frozen=True)
class Shown:
    """An explanation in the form that a page template needs.

    Attributes:
        title: The method, or the question.
        facts: Pairs of a name and a value.
        image: The picture of the relevant features, as a data URL.
        details: Smaller pictures: pairs of a data URL and a description.
        stretches: The text, split at its relevant words.
        cells: The columns of a row of a table, the most relevant first.
        top: How many of them are relevant.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    image: str = ""
    details: tuple[tuple[str, str], ...] = ()
    stretches: tuple[Stretch, ...] = ()
    cells: tuple[Cell, ...] = ()
    top: int = 0


class Modality(ABC):
    """A kind of inputs. Subclasses have no state. A subclass that sets ``name`` is registered under it.

    Attributes:
        name: Its name in stored results.
        explainer: The explainer that ``holdfast explain`` uses by default.
        top: The default size of the relevant set: a share (float) or a number (int) of features.
        ranks_all: Whether explainers with a budget choose all features, and not only the relevant ones.
        default_features: The default features, as text.
        suffixes: File suffixes that ``draw`` can write; empty: any picture format of matplotlib.
        keeps_moves: Whether the gallery stores the changes of all methods, not only of the main one.
        template: The template of one example in reports.
        legend: How to read the gallery of a report. ``{top}`` and ``{main}`` are replaced.
        marks: How to read one picture of an explanation, for a page that shows few of them.
        unit: What a radius is measured in, as the end of a sentence about lengths; empty if that is not known.
    """

    registry: ClassVar[Registry[Modality]] = Registry("modality", "holdfast.modalities", ("explainer", "legend"))
    name: ClassVar[str]
    explainer: ClassVar[str] = "greedy-as-quick"
    top: ClassVar[float | int] = 0.2
    ranks_all: ClassVar[bool] = False
    default_features: ClassVar[str] = "pixels"
    suffixes: ClassVar[tuple[str, ...]] = ()
    keeps_moves: ClassVar[bool] = True
    template: ClassVar[str] = "image.html"
    legend: ClassVar[str]
    marks: ClassVar[str] = ""
    unit: ClassVar[str] = ""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Modality.registry.add(cls)

    # ------------------------------------------------------------------ reading

    @classmethod
    def of(cls, source: Source) -> Modality:
        """Return the first modality that accepts the source; images if none does.

        Args:
            source: The input that a command names.

        Raises:
            HoldfastError: The source names a row of a table and another input.
        """
        if source.rows is not None and len(source.named) > 1:
            raise HoldfastError(f"{' and '.join(source.named)} name different inputs: leave one of them out.")
        every = {name: made() for name, made in cls.registry.classes().items()}
        return next((one for one in every.values() if one.accepts(source)), every["image"])

    @abstractmethod
    def accepts(self, source: Source) -> bool:
        """Return whether the source is of this kind.

        Args:
            source: The input that a command names.
        """

    @abstractmethod
    def read(self, source: Source) -> Subject:
        """Read the input and load its model.

        Args:
            source: The input that a command names.

        Returns:
            The input ``[1, *shape]`` and the model.

        Raises:
            HoldfastError: The input or the model cannot be read, or the options contradict each other.
        """

    def features(
        self, text: str | None, x: Tensor, sentences: Sentences | None = None, columns: Columns | None = None
    ) -> Features:
        """Parse the features of inputs.

        Args:
            text: The features, such as ``patches:16``; None: the default.
            x: The inputs ``[B, *shape]``.
            sentences: The tokens of the inputs, if they are texts.
            columns: The columns of the inputs, if they are rows of a table.

        Returns:
            The features of ``x``.

        Raises:
            HoldfastError: Inputs of this kind have no such features.
        """
        return Features.parse(text or self.default_features, x)

    def judge(self, p: float, seed: int) -> Judge:
        """Return the robustness method that measures the radii of one explanation.

        Args:
            p: The norm of changes: 1, 2 or ``inf``.
            seed: Seed of the search.
        """
        return replace(Judge.quick(p), seed=seed)

    def explained(self, subject: Subject, cases: Cases, explanation: Explanation) -> Explanation:
        """Add what is specific to this kind of inputs to an explanation, such as the words of a text.

        Args:
            subject: The input and its model.
            cases: The input as one case.
            explanation: The explanation of the case.

        Returns:
            The explanation with the additions.
        """
        return explanation

    # ------------------------------------------------------------------ showing

    def facts(self, explanation: Explanation) -> list[tuple[str, str]]:
        """Return further facts about an explanation for the terminal: pairs of a name and a value."""
        return []

    def table(self, explanation: Explanation) -> Table | None:
        """Return a table about an explanation for the terminal; None if there is none to show."""
        return None

    def plain(self, explanation: Explanation) -> dict[str, Any]:
        """Return further facts about an explanation for JSON output, by name."""
        return {}

    def changed(self, subject: Subject, cases: Cases, radii: Radii) -> list[tuple[str, str]]:
        """Return what the first witness of one case changes, for the terminal: pairs of a name and a value."""
        return []

    @abstractmethod
    def draw(self, explanations: Sequence[Explanation], path: Path, title: str) -> None:
        """Write explanations of the same input to a file.

        Args:
            explanations: One for each method or question.
            path: The file to write.
            title: The input, for the heading.

        Raises:
            HoldfastError: The file cannot be written.
        """

    @abstractmethod
    def shown(self, explanation: Explanation, title: str) -> Shown:
        """Return an explanation in the form that a page template needs.

        Args:
            explanation: The explanation.
            title: The method, or the question.
        """

    def input_image(self, explanation: Explanation) -> str:
        """Return a picture of the input as a data URL; empty if there is none."""
        return ""


def radius_facts(explanation: Explanation) -> tuple[tuple[str, str], ...]:
    """Return both radii and the classes after the changes, as pairs of a name and a value."""
    facts = []
    for k, (subset, new) in enumerate(zip(SUBSETS, explanation.new_class, strict=True)):
        if new >= 0:
            reached = f"{explanation.classes[new]} ({explanation.new_probability[k]:.0%})"
            facts.append((subset, f"{number(explanation.radius[k])} → {reached}"))
        else:
            facts.append((subset, explanation.radius_text(k) if explanation.proven[k] else "none found"))
    return tuple(facts)
