"""``holdfast explain --text``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from holdfast.cases import Cases
from holdfast.cli import arguments
from holdfast.cli.app import out as console
from holdfast.cli.show import progress_bar, shown_radius
from holdfast.data.topics import load_bilstm, topics_bilstm
from holdfast.errors import HoldfastError
from holdfast.explainers import Explainer
from holdfast.ranking import Ranking
from holdfast.report.templates import shade
from holdfast.report.texts import Highlighted, Stretch, stretches, write_texts
from holdfast.robustness import Judge, Radii
from holdfast.text import Sentences, Substitution, TextModel, by_word, substitute, transformer
from holdfast.version import __version__


def text_model(name: str | None, device: str) -> TextModel:
    """The classifier of texts that was named."""
    arguments.usable_device(device)
    if name in (None, "topics"):
        return topics_bilstm(device)
    assert name is not None
    if name.startswith("huggingface:"):
        return transformer(name.removeprefix("huggingface:"), device=device)
    if name.endswith(".safetensors"):
        return load_bilstm(name, device)
    raise HoldfastError(f"--model must be topics, a .safetensors file or huggingface:NAME for a text, got {name!r}.")


def explain_text(
    text: str,
    model: str | None,
    methods: str,
    objective: str | None,
    target: str | None,
    reference: str | None,
    size: float | int,
    norm: float,
    out: Path,
    device: str,
    seed: int,
    as_json: bool,
) -> None:
    """Which words does the prediction for a text hold fast to, by each method?"""
    arguments.check_page(out)
    asked = text_model(model, device)
    read = asked.read(text)
    if isinstance(size, int):  # a text may have fewer words
        size = min(size, len(read.words[0]))
    explainers = {
        name: arguments.explainer(name, objective, norm, size, reference, seed, asked.random_words)
        for name in map(str.strip, methods.split(","))
    }
    aim = int(target) if target is not None and re.fullmatch(r"-?\d+", target) else target
    cases = asked.ask(read, target=aim)
    judge = replace(Judge.quick(norm), seed=seed)
    answers = [_answered(asked, read, cases, name, one, judge, size, as_json) for name, one in explainers.items()]
    write_texts(_share(asked, cases), [answer.shown for answer in answers], out)
    if as_json:
        _print_json(asked, answers, out)
    else:
        _print(asked, cases, answers, out)


@dataclass(frozen=True, eq=False)
class _Answer:
    """The order of one method, its words, the smallest changes of them and of all others, and the words they mean."""

    method: str
    ranking: Ranking
    chosen: list[int]
    radii: Radii
    new: Substitution
    shown: Highlighted


def _answered(
    asked: TextModel,
    read: Sentences,
    cases: Cases,
    name: str,
    explainer: Explainer,
    judge: Judge,
    size: float | int,
    quiet: bool,
) -> _Answer:
    with progress_bar(f"ranking words: {name}", quiet) as progress:
        ranking = explainer(cases, progress)
    relevant = ranking.top([size])
    with progress_bar("measuring", quiet) as progress:
        radii = judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    chosen = [word for word in ranking.order[0].tolist() if bool(relevant[0, 0, word])]
    new = substitute(cases, radii, asked.known_vectors)
    into = by_word(new.rows[0, 0].tolist(), cases.features.ids[0, :, 0].tolist(), asked.known_names)
    label, target = int(cases.label[0]), int(cases.target[0])
    question = f"why {asked.called(label)}" + (f" and not {asked.called(target)}?" if target >= 0 else "?")
    facts = {
        "radius, only these words move": _turned(asked, radii, 0),
        "radius, these words are held": (
            _turned(asked, radii, 1) if len(chosen) < len(read.words[0]) else "no word is left to move"
        ),
        "real words in their place": _by_words(new) if into else "none: no change was found",
    }
    notes = [*ranking.notes, *radii.notes]
    facts |= {"note": " ".join(notes)} if notes else {}
    shown = Highlighted(name, question, tuple(stretches(read.texts[0], read.words[0], chosen, into)), facts)
    return _Answer(name, ranking, chosen, radii, new, shown)


def _turned(asked: TextModel, radii: Radii, k: int) -> str:
    if bool(radii.censored[0, k]):
        return "no change found: censored"
    return f"{shown_radius(radii, 0, k)}, turns into {asked.called(int(radii.turned[0, k]))}"


def _by_words(new: Substitution) -> str:
    return "change the prediction as well" if bool(new.changed[0, 0]) else "do not change the prediction"


def _share(asked: TextModel, cases: Cases) -> str:
    label = int(cases.label[0])
    share = cases.model.probabilities(cases.model(cases.x))[0, label]
    return f"{asked.called(label)} ({float(share):.0%})"


def _print(asked: TextModel, cases: Cases, answers: list[_Answer], out: Path) -> None:
    console.print(f"prediction: [bold]{escape(_share(asked, cases))}[/]", highlight=False)
    for answer in answers:
        console.print()
        console.print(f"[bold]{escape(answer.method)}[/]: {escape(answer.shown.question)}", highlight=False)
        console.print(_coloured(answer.shown.pieces), soft_wrap=False, highlight=False)
        table = Table(show_header=False)
        table.add_row("words", escape(", ".join(_words(answer.shown.pieces))))
        for name, value in answer.shown.facts.items():
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


def _print_json(asked: TextModel, answers: list[_Answer], out: Path) -> None:
    told = [
        {
            "method": answer.method,
            "explainer": answer.ranking.method,
            "question": answer.shown.question,
            "words": [
                {"word": piece.text, "place": piece.place, "into": piece.into}
                for piece in answer.shown.pieces
                if piece.place is not None
            ],
            "order": answer.chosen,
            "radii": {
                name: None if bool(answer.radii.censored[0, k]) else float(answer.radii.radius[0, k])
                for k, name in enumerate(("only these move", "these are held"))
            },
            "turned": [None if number < 0 else asked.called(number) for number in answer.radii.turned[0].tolist()],
            "real words change it too": bool(answer.new.changed[0, 0]),
            "notes": [*answer.ranking.notes, *answer.radii.notes],
        }
        for answer in answers
    ]
    typer.echo(json.dumps({"version": __version__, "answers": told, "page": str(out)}, indent=1))
