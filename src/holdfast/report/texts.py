"""Texts with the words that an explanation calls relevant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.experiment.export import write
from holdfast.experiment.results import Picture, Results
from holdfast.report.table import number
from holdfast.report.templates import template_file, templates
from holdfast.text import Word


class Stretch(NamedTuple):
    """A run of a text: a relevant word has its ``place``, 0 for the most relevant, and maybe a word to put there."""

    text: str
    place: int | None = None
    into: str | None = None


@dataclass(frozen=True)
class Highlighted:
    """A text as one method explains it, and what there is to say about that."""

    method: str
    question: str
    stretches: tuple[Stretch, ...]
    facts: Mapping[str, str]


def stretches(
    text: str, words: Sequence[Word], chosen: Sequence[int], into: Mapping[int, str] | None = None
) -> list[Stretch]:
    """The text cut at its relevant words: ``chosen`` are their numbers, most relevant first."""
    found, end = [], 0
    for feature in sorted(chosen):
        word = words[feature]
        if word.start > end:
            found.append(Stretch(text[end : word.start]))
        found.append(Stretch(text[word.start : word.end], chosen.index(feature), (into or {}).get(feature)))
        end = word.end
    return [*found, Stretch(text[end:])] if end < len(text) else found


def write_texts(title: str, explained: Sequence[Highlighted], out: Path) -> None:
    """One page with the text under every method. It needs no network."""
    page = templates().get_template("text.html")
    write(out, page.render(title=title, explained=explained, css=template_file("page.css")))


# ---------------------------------------------------------------------- of an experiment


def text_gallery(results: Results) -> list[dict[str, Any]]:
    """Every text of the gallery under every method; none where examples are no texts."""
    if not results.study.get("texts"):
        return []
    into = results.new_words()
    return [
        _story(results, example, [(name, picture) for name, picture in by_method.items()], into)
        for example, by_method in sorted(results.pictures().items())
    ]


def why_not(results: Results) -> list[dict[str, Any]]:
    """Every text of the gallery with the classes it was asked not to be."""
    if not results.study.get("texts"):
        return []
    classes = results.study["classes"]
    return [
        _story(results, example, [(f"Why not {classes[picture.target]}?", picture) for picture in pictures], {})
        for example, pictures in sorted(results.targeted().items())
    ]


def _story(
    results: Results, example: int, pictures: list[tuple[str, Picture]], into: Mapping[tuple[str, int], dict[int, str]]
) -> dict[str, Any]:
    told = results.study["texts"][example]
    text, words = told["text"], [Word(told["text"][start:end], start, end) for start, end in told["words"]]
    classes, first = results.study["classes"], pictures[0][1]
    return {
        "name": results.study["examples"][example],
        "label": f"{classes[first.label]} ({first.before:.0%})",
        "explained": [
            Highlighted(
                name,
                "",
                tuple(stretches(text, words, picture.chosen, into.get((picture.ranking, example)))),
                {
                    "only these move": _turned(picture, 0, classes),
                    "these are held": _turned(picture, 1, classes),
                },
            )
            for name, picture in pictures
        ],
    }


def _turned(picture: Picture, k: int, classes: Sequence[str]) -> str:
    if picture.turned[k] < 0:
        return "none found"
    return f"{number(picture.radius[k])} → {classes[picture.turned[k]]}"
