"""``holdfast explain --text``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from holdfast.cli.answer import SUBSETS, Answer, answered
from holdfast.cli.app import out as console
from holdfast.cli.arguments import Wanted, check_page, class_name, usable_device
from holdfast.data.topics import load_bilstm, topics_bilstm
from holdfast.errors import HoldfastError
from holdfast.report.templates import shade
from holdfast.report.texts import Highlighted, Stretch, stretches, write_texts
from holdfast.text import Sentences, Substitution, TextModel, by_word, substitute, transformer
from holdfast.version import __version__


def text_model(name: str | None, device: str) -> TextModel:
    """The classifier of texts that was named."""
    usable_device(device)
    if name in (None, "topics"):
        return topics_bilstm(device)
    assert name is not None
    if name.startswith("huggingface:"):
        return transformer(name.removeprefix("huggingface:"), device=device)
    if name.endswith(".safetensors"):
        return load_bilstm(name, device)
    raise HoldfastError(f"--model must be topics, a .safetensors file or huggingface:NAME for a text, got {name!r}.")


def explain_text(
    text: str, methods: str, target: str | None, wanted: Wanted, model: str | None, out: Path, device: str, quiet: bool
) -> None:
    """Which words does the prediction for a text hold fast to, by each method? JSON alone where ``quiet``."""
    check_page(out)
    asked = text_model(model, device)
    read = asked.read(text)
    if isinstance(wanted.size, int):  # a text may have fewer words
        wanted = replace(wanted, size=min(wanted.size, len(read.words[0])))
    names = list(dict.fromkeys(map(str.strip, methods.split(","))))
    explainers = wanted.explainers(names, asked.random_words)
    cases = asked.ask(read, target=None if target is None else class_name(target))
    found = []
    for name, explainer in explainers.items():
        answer = answered(cases, asked.called, explainer, wanted.judge(), wanted.size, quiet)
        found.append(_reworded(asked, read, name, answer))
    write_texts(found[0].answer.prediction, [one.shown for one in found], out)
    if quiet:
        _print_json(asked, read, found, out)
    else:
        _print(found, out)


class _Reworded(NamedTuple):
    """What one method answers, the real words that its smallest change means, and how that is shown."""

    answer: Answer
    new: Substitution
    shown: Highlighted


def _reworded(asked: TextModel, read: Sentences, method: str, answer: Answer) -> _Reworded:
    cases, words = answer.cases, read.words[0]
    new = substitute(cases, answer.radii, asked.known_vectors)
    into = by_word(new.rows[0, 0].tolist(), cases.features.ids[0, :, 0].tolist(), asked.known_names)
    moved, held = (f"{answer.radius(k)}, {answer.turned(k)}" for k in range(len(SUBSETS)))
    facts = {
        "radius, only these words move": moved,
        "radius, these words are held": held if len(answer.chosen) < len(words) else "no word is left to move",
        "real words in their place": _by_words(new) if into else "none: no change was found",
    }
    notes = _notes(read, answer)
    facts |= {"note": " ".join(notes)} if notes else {}
    marked = stretches(_as_read(read), words, answer.chosen, into)
    return _Reworded(answer, new, Highlighted(method, answer.question, tuple(marked), facts))


def _as_read(read: Sentences) -> str:
    """The text as far as the model read it."""
    return f"{read.texts[0][: read.words[0][-1].end]} …" if read.left[0] else read.texts[0]


def _notes(read: Sentences, answer: Answer) -> list[str]:
    """What must be known to read the answer right."""
    left = read.left[0]
    cut = [f"the model reads {len(read.words[0])} words of this text: the last {left} are left out."] if left else []
    return cut + answer.notes


def _by_words(new: Substitution) -> str:
    told = "change the prediction as well" if bool(new.changed[0, 0]) else "do not change the prediction"
    return f"{told}; words drawn at random do in {float(new.by_chance[0, 0]):.0%} of draws"


def _print(found: list[_Reworded], out: Path) -> None:
    console.print(f"prediction: [bold]{escape(found[0].answer.prediction)}[/]", highlight=False)
    for _, _, shown in found:
        console.print()
        console.print(f"[bold]{escape(shown.method)}[/]: {escape(shown.question)}", highlight=False)
        console.print(_coloured(shown.stretches), soft_wrap=False, highlight=False)
        table = Table(show_header=False)
        table.add_row("words", escape(", ".join(_words(shown.stretches))))
        for name, value in shown.facts.items():
            table.add_row(name, escape(value))
        console.print(table)
    console.print(f"page: {out}", soft_wrap=True, highlight=False, markup=False)


def _words(shown: tuple[Stretch, ...]) -> list[str]:
    """The relevant words, most relevant first."""
    marked = sorted((piece.place, piece) for piece in shown if piece.place is not None)
    return [f"{piece.text} (→ {piece.into})" if piece.into else piece.text for _, piece in marked]


def _coloured(shown: tuple[Stretch, ...]) -> Text:
    count = sum(piece.place is not None for piece in shown)
    text = Text()
    for piece in shown:
        if piece.place is None:
            text.append(piece.text)
        else:
            part = shade(piece.place, count)
            red, green, blue = (round(255 - part * (255 - end)) for end in (234, 88, 12))
            text.append(piece.text, style=f"bold black on rgb({red},{green},{blue})")
    return text


def _print_json(asked: TextModel, read: Sentences, found: list[_Reworded], out: Path) -> None:
    told = [
        {
            "method": shown.method,
            "explainer": answer.ranking.method,
            "question": shown.question,
            "words": [
                {"word": stretch.text, "place": stretch.place, "into": stretch.into}
                for stretch in shown.stretches
                if stretch.place is not None
            ],
            "order": answer.chosen,
            "radii": {
                name: None if bool(answer.radii.censored[0, k]) else float(answer.radii.radius[0, k])
                for k, name in enumerate(SUBSETS)
            },
            "turned": {
                name: None if number < 0 else asked.called(number)
                for name, number in zip(SUBSETS, answer.radii.new_class[0].tolist(), strict=True)
            },
            "bound": answer.radii.bound,
            "real words change it too": bool(new.changed[0, 0]),
            "random words change it": float(new.by_chance[0, 0]),
            "rows to explain": {"forward": answer.spent.forward, "gradient": answer.spent.gradient},
            "notes": _notes(read, answer),
        }
        for answer, new, shown in found
    ]
    first = found[0].answer
    label, target = int(first.cases.label[0]), int(first.cases.target[0])
    about = {
        "version": __version__,
        "text": read.texts[0],
        "label": asked.called(label),
        "probability": first.probability,
        "target": None if target < 0 else asked.called(target),
        "words left out": read.left[0],
    }
    typer.echo(json.dumps({**about, "answers": told, "page": str(out)}, indent=1))
