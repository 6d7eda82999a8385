"""``holdfast explain``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from holdfast.cases import Cases
from holdfast.cli import arguments
from holdfast.cli.app import Device, Digit, FeatureKind, ImageFile, Json, Model, Photo, Seed, app
from holdfast.cli.app import out as console
from holdfast.cli.explain_text import explain_text
from holdfast.cli.show import print_json, progress_bar, shown_radius
from holdfast.cli.subject import Subject, subject
from holdfast.errors import HoldfastError
from holdfast.experiment.names import EXPLAINERS
from holdfast.explainers import Explainer
from holdfast.model import Queries
from holdfast.ranking import Ranking
from holdfast.report import draw_explanations, photographs
from holdfast.report.photographs import Panel, draw_panels
from holdfast.robustness import Judge, Radii

_SUBSETS = ("only these move", "these are held")


@app.command()
def explain(
    image: ImageFile = None,
    digit: Digit = None,
    photo: Photo = None,
    text: Annotated[str | None, typer.Option(help="A text instead of an image: which of its words?")] = None,
    model: Model = None,
    method: Annotated[
        str, typer.Option(help=f"One of {', '.join(EXPLAINERS)}; for a text several, with commas between.")
    ] = "greedy-as-quick",
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
    norm = arguments.norm(p)
    if text is not None:
        if (image, digit, photo, features) != (None, None, None, None) or resize:
            raise HoldfastError("--text is a text by itself: leave images and their features out.")
        page, size = out or Path("explanation.html"), arguments.size(top or "5")
        explain_text(text, model, method, objective, target, reference, size, norm, page, device, seed, as_json)
        return
    size, out = arguments.size(top or "20%"), out or Path("explanation.png")
    arguments.check_picture(out)
    explainer = arguments.explainer(method, objective, norm, size, reference, seed)
    asked = subject(image, digit, photo, model, resize, device)
    aim, laid = asked.number(target), asked.features(features)
    # A photograph's judge is smaller than Judge.quick(), which would take as long as the explanation.
    judge = Judge(norm, 15, classes=3, starts=0) if asked.photograph else Judge.quick(norm)
    judge = replace(judge, seed=seed)

    def answer(target: int | None) -> _Answer:
        return _answered(asked, asked.model.ask(asked.x, target=target, features=laid), explainer, judge, size, as_json)

    found = answer(aim)
    if not asked.photograph:
        draw_explanations(found.cases, {method: (found.relevant[:, 0], found.radii)}, out, changes=True)
        notes = found.notes
    else:  # beside a target, the same question without it: to see what is particular to that class
        drawn = [found] if aim is None else [answer(None), found]
        draw_panels([one.panels(asked) for one in drawn], out)
        notes = [f"{one.question} {note}" if len(drawn) > 1 else note for one in drawn for note in one.notes]
    if as_json:
        _print_json(asked, found, notes, out)
    else:
        _print_table(asked, found, f"L{p}", method, notes, out)


@dataclass(frozen=True, eq=False)
class _Answer:
    """One question, the order of its features, those called relevant ``[1, 1, d]``, and the two smallest changes."""

    question: str
    cases: Cases
    ranking: Ranking
    relevant: Tensor
    radii: Radii
    spent: Queries

    @property
    def chosen(self) -> list[int]:
        """The relevant features, most relevant first."""
        return [feature for feature in self.ranking.order[0].tolist() if bool(self.relevant[0, 0, feature])]

    @property
    def notes(self) -> list[str]:
        return [*self.ranking.notes, *_ties(self.ranking, len(self.chosen)), *self.radii.notes]

    def pertinent(self) -> tuple[list[int], list[int]]:
        """The relevant features that the smallest change inside them turns down, and those it turns up."""
        change = self.cases.features.pool(self.radii.witness[:, 0] - self.cases.x)[0]
        down = [feature for feature in self.chosen if float(change[feature]) < 0]
        return down, [feature for feature in self.chosen if float(change[feature]) > 0]

    def panels(self, asked: Subject) -> list[Panel]:
        """A photograph, what is called relevant, the order of everything, and the two smallest changes."""
        cases, count = self.cases, int(self.ranking.count[0])
        place = self.ranking.order.argsort(1) / max(1, count - 1)
        x, heat = cases.x[0].cpu().numpy(), cases.features.spread((1 - place).to(cases.x))[0].cpu().numpy()
        top = cases.features.expand(self.relevant[:, 0])[0].cpu().numpy()
        panels = [
            Panel(photographs.plain(x), _share(asked, cases.x, int(cases.label[0])), asked.title),
            Panel(photographs.outlined(x, top), self.question, f"top {len(self.chosen)} of {count}"),
            Panel(photographs.heated(x, heat), "order of all features", "bright: first"),
        ]
        for k, what in enumerate(_SUBSETS):
            pixels, times = photographs.amplified((self.radii.witness[0, k] - cases.x[0]).cpu().numpy())
            below = f"{what}, x {times:g}: radius {shown_radius(self.radii, 0, k)}"
            panels.append(Panel(pixels, _turned(asked, self.radii, k), below))
        return panels


def _answered(
    asked: Subject, cases: Cases, explainer: Explainer, judge: Judge, size: float | int, quiet: bool
) -> _Answer:
    question = _question(asked, cases)
    with progress_bar(f"ranking features: {question}", quiet) as progress:
        started = asked.model.queries
        ranking = explainer(cases, progress)
        spent = asked.model.queries - started
    relevant = ranking.top([size])
    with progress_bar("measuring", quiet) as progress:
        radii = judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    return _Answer(question, cases, ranking, relevant, radii, spent)


def _print_json(asked: Subject, found: _Answer, notes: list[str], out: Path) -> None:
    off, on = found.pertinent()
    ranking, spent = found.ranking, found.spent
    extra: dict[str, Any] = {
        "explainer": ranking.method,
        "order": found.chosen,
        "pertinent positive": off,
        "pertinent negative": on,
        "rows to explain": {"forward": spent.forward, "gradient": spent.gradient},
        "doubt": None if ranking.doubt is None else float(ranking.doubt[0]),
        "picture": str(out),
        "notes": notes,
    }
    print_json(found.cases, found.radii, [asked.name], list(_SUBSETS), extra)


def _print_table(asked: Subject, found: _Answer, norm: str, method: str, notes: list[str], out: Path) -> None:
    cases, ranking, radii = found.cases, found.ranking, found.radii
    table = Table(show_header=False)
    table.add_row("input", escape(asked.title))
    table.add_row("prediction", _share(asked, cases.x, int(cases.label[0])))
    table.add_row("question", found.question)
    table.add_row("explanation", f"{len(found.chosen)} of {int(ranking.count[0])} {cases.features.kind}, by {method}")
    if not asked.photograph:
        off, on = found.pertinent()
        table.add_row("pertinent positive", f"{len(off)}: lit, would be turned off")
        table.add_row("pertinent negative", f"{len(on)}: dark, would be turned on")
    for k, what in enumerate(_SUBSETS):
        table.add_row(f"{norm} radius, {what}", f"{shown_radius(radii, 0, k)}, {_turned(asked, radii, k)}")
    if ranking.doubt is not None:
        table.add_row("unsettled at the cuts", f"{float(ranking.doubt[0]):.0%} of the features")
    table.add_row("model rows", f"{found.spent.forward:,} to explain, {radii.queries.forward:,} to judge")
    console.print(table)
    for note in notes:
        console.print(f"note: {note}", highlight=False)
    console.print(f"picture: {out}", soft_wrap=True, highlight=False, markup=False)


def _question(asked: Subject, cases: Cases) -> str:
    label, target = int(cases.label[0]), int(cases.target[0])
    return f"why {asked.called(label)}" + (f" and not {asked.called(target)}?" if target >= 0 else "?")


def _share(asked: Subject, x: Tensor, number: int) -> str:
    """A class and its probability for an input ``[1, *shape]``."""
    share = asked.model.probabilities(asked.model(x, as_it_is=True))[0, number]
    return f"{asked.called(number)} ({float(share):.0%})"


def _turned(asked: Subject, radii: Radii, k: int) -> str:
    if bool(radii.censored[0, k]):
        return "no change found: censored"
    return f"turns into {_share(asked, radii.witness[:, k], int(radii.turned[0, k]))}"


def _ties(ranking: Ranking, shown: int) -> list[str]:
    """A note where equal scores lie on both sides of the cut."""
    along = ranking.scores[0].gather(0, ranking.order[0])[: int(ranking.count[0])]
    if shown >= len(along) or float(along[shown - 1]) != float(along[shown]):
        return []
    equal = int((along[:shown] == along[shown]).sum())
    return [
        f"{equal} of the {shown} features shown have the same score as some that are not: a draw of the seed chose "
        "among them."
    ]
