"""``holdfast explain``."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table as Rich
from rich.text import Text as RichText

from holdfast.cases import ANY, Cases
from holdfast.cli import arguments, options
from holdfast.cli.app import out as console
from holdfast.cli.own import subject_or_modality
from holdfast.cli.show import progress_bar
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.explaining import explain_cases
from holdfast.explanation import SUBSETS, Explanation
from holdfast.modalities.modality import Subject
from holdfast.modalities.shown import Stretch
from holdfast.modalities.source import Source
from holdfast.model_files import is_own
from holdfast.table import Table
from holdfast.table import text as plain_text
from holdfast.templates import shade
from holdfast.version import __version__

app = typer.Typer(add_completion=False)


@app.command()
def explain(
    image: options.ImageFile = None,
    digit: options.Digit = None,
    photo: options.Photo = None,
    text: options.Text = None,
    table: options.Table = None,
    row: options.Row = None,
    columns: options.ColumnsFile = None,
    fixed: options.Fixed = None,
    rising: options.Rising = None,
    falling: options.Falling = None,
    classes: options.Classes = None,
    label_column: options.LabelColumn = None,
    model: options.Model = None,
    weights: options.Weights = None,
    methods: options.Methods = None,
    objective: options.Objective = None,
    target: options.Target = None,
    reference: options.Reference = None,
    top: options.Top = None,
    p: options.Norm = "2",
    features: options.FeatureKind = None,
    resize: options.Resize = False,
    out: Annotated[
        Path | None, typer.Option(help="Where to write. Default: explanation.png, for texts explanation.html.")
    ] = None,
    device: options.Device = "cpu",
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Find the features that the prediction for one image, text or row of a table depends on."""
    own = is_own(model) and table is None and row is None
    rows = arguments.row_source(table, row, columns, (fixed, rising, falling), None if own else classes, label_column)
    names_of_classes = arguments.listed(classes)
    source = Source(image, digit, photo, text, model, resize, device, rows, weights, names_of_classes)
    loaded, modality = subject_or_modality(source)
    size = modality.top if top is None else arguments.size(top)
    budget = 1.0 if modality.ranks_all else None
    wanted = arguments.Wanted(size, arguments.norm(p), objective, reference, seed, budget)
    path = arguments.output(out, modality)
    arguments.usable_device(device)
    names = list(dict.fromkeys(map(str.strip, (modality.explainer if methods is None else methods).split(","))))
    wanted.check(names)  # before a network is loaded
    subject = modality.read(source) if loaded is None else loaded
    cases = subject.ask(target, features)
    if isinstance(size, int) and isinstance(modality.top, int):  # a text may have fewer words
        wanted = replace(wanted, size=min(size, cases.features.count))
    elif isinstance(size, int) and size > cases.features.count:
        raise HoldfastError(f"--top must be at most the {cases.features.count} features there are, got {size}.")
    explainers = wanted.explainers(names, subject.random_words)
    explanations = _explained(subject, cases, explainers, wanted, as_json)
    drawn = explanations
    if target is not None and not modality.keeps_moves:  # beside it, what does not depend on the target
        drawn = [*_explained(subject, subject.ask(None, features), explainers, wanted, as_json), *explanations]
    modality.draw(drawn, path, subject.title)
    if as_json:
        _print_json(subject, explanations, path)
    else:
        _print(subject, explanations, f"L{p}", path)


def _explained(
    subject: Subject, cases: Cases, explainers: dict[str, Explainer], wanted: arguments.Wanted, quiet: bool
) -> list[Explanation]:
    """Explain the input by every method."""
    judge = subject.modality.judge(wanted.p, wanted.seed)
    explanations = []
    for name, explainer in explainers.items():
        with progress_bar(f"{name}: ranking {cases.features.kind}", quiet) as progress:
            explanation = explain_cases(cases, name, explainer, judge, wanted.size, progress, seed=wanted.seed)[0]
        explanation = subject.modality.explained(subject, cases, explanation)
        explanations.append(
            replace(
                explanation,
                notes=(*subject.notes, *explanation.notes),
                title=subject.title,
                display=subject.modality,
            )
        )
    return explanations


def _print(subject: Subject, explanations: list[Explanation], norm: str, path: Path) -> None:
    for one in explanations:
        table = Rich(show_header=False)
        if one.text:
            console.print(_highlighted(list(subject.modality.shown(one, one.method).stretches)), highlight=False)
        else:
            table.add_row("input", escape(subject.title))
        table.add_row("prediction", escape(one.prediction))
        table.add_row("question", escape(one.question))
        table.add_row("explanation", f"{one.size} of {len(one.order)} {one.features.kind}, by {one.method}")
        for name, value in subject.modality.facts(one):
            table.add_row(name, escape(value))
        for k, subset in enumerate(SUBSETS):
            table.add_row(f"{norm} radius, {subset}", escape(_radius(one, k)))
        table.add_row("in comparison", escape(one.sentence))
        if one.uncertain is not None:
            table.add_row("order not certain for", f"{one.uncertain:.0%} of the features")
        table.add_row("model rows", f"{one.cost.forward:,} to explain, {one.judging.forward:,} to judge")
        console.print(table)
        _print_table(subject.modality.table(one))
        for note in one.notes:
            console.print(f"note: {note}", highlight=False, markup=False)
    console.print(f"written: {path}", soft_wrap=True, highlight=False, markup=False)


def _print_table(given: Table | None) -> None:
    """Print a table of a modality, with its note below."""
    if given is None:
        return
    table = Rich()
    for name in given.columns:
        table.add_column(name)
    for row in given.rows:
        table.add_row(*(escape(plain_text(cell)) for cell in row))
    console.print(table)
    console.print(given.note, highlight=False, markup=False)


def _radius(explanation: Explanation, which: int) -> str:
    if which == 1 and explanation.size >= len(explanation.order):
        return f"no {explanation.features.kind} are left to move"
    bound = f" ({explanation.bound_text(which)})" if explanation.new_class[which] >= 0 else ""
    if explanation.new_class[which] < 0 and explanation.proven[which] and math.isinf(explanation.radius[which]):
        return "unreachable: proven that no change inside the bounds does it"
    return f"{explanation.radius_text(which)}{bound}, {explanation.change_text(which)}"


def _highlighted(stretches: list[Stretch]) -> RichText:
    """Return a text with its relevant words coloured by their place."""
    count = sum(stretch.place is not None for stretch in stretches)
    text = RichText()
    for stretch in stretches:
        if stretch.place is None:
            text.append(stretch.text)
        else:
            part = shade(stretch.place, count)
            red, green, blue = (round(255 - part * (255 - end)) for end in (234, 88, 12))
            text.append(stretch.text, style=f"bold black on rgb({red},{green},{blue})")
    return text


def _print_json(subject: Subject, explanations: list[Explanation], path: Path) -> None:
    first = explanations[0]
    answer = {
        "version": __version__,
        "input": subject.name,
        "label": first.classes[first.label],
        "probability": first.probability,
        "target": None if first.target == ANY else first.classes[first.target],
        "explanations": [one.to_dict() for one in explanations],
        "written": str(path),
    }
    typer.echo(json.dumps(answer, indent=1))
