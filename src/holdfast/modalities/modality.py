"""The interface of modalities: how one kind of inputs is read, divided into features, and drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from holdfast.cases import AskableModel, Cases
from holdfast.columns import Columns
from holdfast.errors import HoldfastError
from holdfast.explanation import SUBSETS, Explanation
from holdfast.features import Features
from holdfast.figures import Plot
from holdfast.modalities.shown import Shown
from holdfast.modalities.source import Source
from holdfast.reference import RandomWords
from holdfast.registry import Registry
from holdfast.robustness import Judge, Radii
from holdfast.table import Table, number
from holdfast.templates import template_file, templates
from holdfast.text import Sentences, TextModel


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
        notes: What was assumed about the input.
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
    notes: tuple[str, ...] = ()

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
    def figure(self, explanations: Sequence[Explanation], title: str) -> Plot:
        """Draw explanations of the same input.

        Args:
            explanations: One for each method or question.
            title: The input, for the heading.
        """

    def draw(self, explanations: Sequence[Explanation], path: Path, title: str) -> None:
        """Write explanations of the same input to a picture.

        Args:
            explanations: One for each method or question.
            path: The file to write.
            title: The input, for the heading.

        Raises:
            HoldfastError: The file cannot be written.
        """
        self.figure(explanations, title).save(path)

    def page(self, explanations: Sequence[Explanation], title: str) -> str:
        """Return an HTML page about explanations of the same input. It loads nothing.

        Args:
            explanations: One for each method or question.
            title: The input, for the heading.
        """
        shown = [
            (f"{one.method}: {one.question}", one, self.shown(one, one.method), page_facts(one)) for one in explanations
        ]
        pictures = [self.figure([one], title).address for one in explanations]
        template = templates().get_template("explanation.html")
        return template.render(
            title=explanations[0].prediction, input=title, shown=shown, pictures=pictures, css=template_file("page.css")
        )

    def fragment(self, explanation: Explanation) -> str:
        """Return an explanation as HTML for a notebook: what is predicted, a sentence, a picture and facts."""
        picture = self.figure([explanation], explanation.title).address
        template = templates().get_template("fragment.html")
        return template.render(one=explanation, picture=picture, facts=page_facts(explanation))

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


def page_facts(explanation: Explanation) -> list[tuple[str, str]]:
    """Return both radii, the classes after the changes, and notes, as pairs of a name and a value."""
    facts = [
        (f"radius, {subset}", f"{explanation.radius_text(k)}, {explanation.change_text(k)}")
        for k, subset in enumerate(SUBSETS)
    ]
    return [*facts, *explanation.extra, *(("note", note) for note in explanation.notes)]


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
