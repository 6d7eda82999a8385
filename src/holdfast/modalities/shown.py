"""An explanation in the form that page templates need."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.columns import Cell


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
