"""``holdfast explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.cli import arguments
from holdfast.cli.answer import SUBSETS, Answer, answered
from holdfast.cli.app import Device, Digit, FeatureKind, ImageFile, Json, Model, Photo, Seed, app
from holdfast.cli.app import out as console
from holdfast.cli.explain_text import explain_text
from holdfast.cli.show import print_json
from holdfast.cli.subject import Subject, subject
from holdfast.errors import HoldfastError
from holdfast.experiment.names import EXPLAINERS
from holdfast.report import draw_explanations, photographs
from holdfast.report.photographs import Panel, draw_panels

_IMAGES_BY, _TEXTS_BY = "greedy-as-quick", "greedy-as-words"


@app.command()
def explain(
    image: ImageFile = None,
    digit: Digit = None,
    photo: Photo = None,
    text: Annotated[str | None, typer.Option(help="A text instead of an image: which of its words?")] = None,
    model: Model = None,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(EXPLAINERS)}; for a text several, with commas between. If not given, "
            f"{_IMAGES_BY}, and {_TEXTS_BY} for a text."
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="What Greedy methods look for: rest (hard to break when held, if not given) or relevant."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Why not this class, by number or name? Any other class if not given.")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="What a removed feature becomes: a number, blur, mean or uniform noise; words of a text."),
    ] = None,
    top: Annotated[
        str | None, typer.Option(help="How many features to show: 20% (if not given) or a number; 5 words of a text.")
    ] = None,
    p: Annotated[str, typer.Option("--p", help="Norm of the perturbation: 1, 2 or inf.")] = "2",
    features: FeatureKind = None,
    resize: Annotated[bool, typer.Option("--resize", help="Scale a digit's image to the network's 28 x 28.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where to write: explanation.png, or explanation.html for a text, if not given.")
    ] = None,
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Which features does the prediction for one image or text hold fast to?"""
    size = arguments.size(top or ("20%" if text is None else "5"))
    wanted = arguments.Wanted(size, arguments.norm(p), objective, reference, seed)
    if text is not None:
        if (image, digit, photo, features) != (None, None, None, None) or resize:
            raise HoldfastError("--text is a text by itself: leave images and their features out.")
        methods = _TEXTS_BY if method is None else method
        explain_text(text, methods, target, wanted, model, out or Path("explanation.html"), device, as_json)
        return
    out, method = out or Path("explanation.png"), _IMAGES_BY if method is None else method
    arguments.check_picture(out)
    explainer = wanted.explainers([method])[method]
    asked = subject(image, digit, photo, model, resize, device, ", a text with --text")
    aim, laid = asked.number(target), asked.features(features)
    judge = wanted.judge(asked.photograph)

    def answer(target: int | None) -> Answer:
        cases = asked.model.ask(asked.x, target=target, features=laid)
        return answered(cases, asked.called, explainer, judge, size, as_json)

    found = answer(aim)
    if not asked.photograph:
        draw_explanations(found.cases, {method: (found.relevant[:, 0], found.radii)}, out, changes=True)
        notes = found.notes
    else:  # beside a target, the same question without it: to see what is particular to that class
        drawn = [found] if aim is None else [answer(None), found]
        draw_panels([_panels(asked, one) for one in drawn], out)
        notes = [f"{one.question} {note}" if len(drawn) > 1 else note for one in drawn for note in one.notes]
    if as_json:
        _print_json(asked, found, notes, out)
    else:
        _print_table(asked, found, f"L{p}", method, notes, out)


def _pertinent(found: Answer) -> tuple[list[int], list[int]]:
    """The relevant features that the smallest change inside them turns down, and those it turns up."""
    change = found.cases.features.pool(found.radii.witness[:, 0] - found.cases.x)[0]
    down = [feature for feature in found.chosen if float(change[feature]) < 0]
    return down, [feature for feature in found.chosen if float(change[feature]) > 0]


def _panels(asked: Subject, found: Answer) -> list[Panel]:
    """A photograph, what is called relevant, the order of everything, and the two smallest changes."""
    cases, count = found.cases, int(found.ranking.count[0])
    place = found.ranking.order.argsort(1) / max(1, count - 1)
    x, heat = cases.x[0].cpu().numpy(), cases.features.spread((1 - place).to(cases.x))[0].cpu().numpy()
    top = cases.features.expand(found.relevant[:, 0])[0].cpu().numpy()
    panels = [
        Panel(photographs.plain(x), found.prediction, asked.title),
        Panel(photographs.outlined(x, top), found.question, f"top {len(found.chosen)} of {count}"),
        Panel(photographs.heated(x, heat), "order of all features", "bright: first"),
    ]
    for k, what in enumerate(SUBSETS):
        pixels, times = photographs.amplified((found.radii.witness[0, k] - cases.x[0]).cpu().numpy())
        panels.append(Panel(pixels, found.turned(k), f"{what}, x {times:g}: radius {found.radius(k)}"))
    return panels


def _print_json(asked: Subject, found: Answer, notes: list[str], out: Path) -> None:
    off, on = _pertinent(found)
    ranking, spent = found.ranking, found.spent
    extra: dict[str, Any] = {
        "explainer": ranking.method,
        "order": found.chosen,
        "pertinent positive": off,
        "pertinent negative": on,
        "rows to explain": {"forward": spent.forward, "gradient": spent.gradient},
        "uncertain": None if ranking.uncertain is None else float(ranking.uncertain[0]),
        "picture": str(out),
        "notes": notes,
    }
    print_json(found.cases, found.radii, [asked.name], list(SUBSETS), extra)


def _print_table(asked: Subject, found: Answer, norm: str, method: str, notes: list[str], out: Path) -> None:
    cases, ranking, radii = found.cases, found.ranking, found.radii
    table = Table(show_header=False)
    table.add_row("input", escape(asked.title))
    table.add_row("prediction", found.prediction)
    table.add_row("question", found.question)
    table.add_row("explanation", f"{len(found.chosen)} of {int(ranking.count[0])} {cases.features.kind}, by {method}")
    if not asked.photograph:
        off, on = _pertinent(found)
        table.add_row("pertinent positive", f"{len(off)}: lit, would be turned off")
        table.add_row("pertinent negative", f"{len(on)}: dark, would be turned on")
    for k, what in enumerate(SUBSETS):
        table.add_row(f"{norm} radius, {what}", f"{found.radius(k)}, {found.turned(k)}")
    if ranking.uncertain is not None:
        table.add_row("unsettled at the cuts", f"{float(ranking.uncertain[0]):.0%} of the features")
    table.add_row("model rows", f"{found.spent.forward:,} to explain, {radii.queries.forward:,} to judge")
    console.print(table)
    for note in notes:
        console.print(f"note: {note}", highlight=False)
    console.print(f"picture: {out}", soft_wrap=True, highlight=False, markup=False)
