"""``holdfast explain``."""

from __future__ import annotations

from dataclasses import replace
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
from holdfast.cli.show import print_json, progress_bar, shown_radius
from holdfast.cli.subject import Subject, subject
from holdfast.experiment.names import EXPLAINERS
from holdfast.ranking import Ranking
from holdfast.report import draw_explanations, photographs
from holdfast.report.photographs import Panel, draw_panels
from holdfast.robustness import Judge, Radii


@app.command()
def explain(
    image: ImageFile = None,
    digit: Digit = None,
    photo: Photo = None,
    model: Model = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(EXPLAINERS)}.")] = "greedy-as-quick",
    objective: Annotated[
        str | None,
        typer.Option(help="What Greedy methods look for: rest (hard to break when held, if not given) or relevant."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Why not this class, by number or name? Any other class if not given.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="What a removed feature becomes: a number, blur, mean or uniform noise.")
    ] = None,
    top: Annotated[str, typer.Option(help="How many features to show: 20% or a number.")] = "20%",
    p: Annotated[str, typer.Option("--p", help="Norm of the perturbation: 1, 2 or inf.")] = "2",
    features: FeatureKind = None,
    resize: Annotated[bool, typer.Option("--resize", help="Scale a digit's image to the network's 28 x 28.")] = False,
    out: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("explanation.png"),
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Which features does the prediction for one image hold fast to?"""
    size, norm = arguments.size(top), arguments.norm(p)
    arguments.check_picture(out)
    explainer = arguments.explainer(method, objective, norm, size, reference, seed)
    asked = subject(image, digit, photo, model, resize, device)
    aim, laid = asked.number(target), asked.features(features)
    # A photograph's judge is smaller than Judge.quick(), which would take as long as the explanation.
    judge = (
        Judge(norm, 15, classes=3, starts=0, seed=seed) if asked.photograph else replace(Judge.quick(norm), seed=seed)
    )
    cases = asked.model.ask(asked.x, target=aim, features=laid)
    with progress_bar("ranking features", as_json) as progress:
        started = asked.model.queries
        ranking = explainer(cases, progress)
        spent = asked.model.queries - started
    relevant = ranking.top([size])
    with progress_bar("measuring", as_json) as progress:
        radii = judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    chosen = [feature for feature in ranking.order[0].tolist() if bool(relevant[0, 0, feature])]
    notes = [*ranking.notes, *_ties(ranking, len(chosen)), *radii.notes]
    if asked.photograph:
        drawn = [(_question(asked, cases), cases, ranking, relevant, radii)]
        if aim is not None:  # the same without the target, to see what is particular to it
            whole = asked.model.ask(asked.x, features=laid)
            with progress_bar("ranking features for any other class", as_json) as progress:
                other = explainer(whole, progress)
            first = other.top([size])
            both = judge(whole, torch.cat([first, ~first], 1))
            drawn.insert(0, (_question(asked, whole), whole, other, first, both))
            notes += [f"{_question(asked, whole)} {note}" for note in (*other.notes, *both.notes)]
        draw_panels([_panels(asked, *one) for one in drawn], out)
    else:
        draw_explanations(cases, {method: (relevant[:, 0], radii)}, out, changes=True)
    change = cases.features.pool(radii.witness[:, 0] - cases.x)[0]
    off = [feature for feature in chosen if float(change[feature]) < 0]
    on = [feature for feature in chosen if float(change[feature]) > 0]
    if as_json:
        extra: dict[str, Any] = {
            "explainer": ranking.method,
            "order": chosen,
            "pertinent positive": off,
            "pertinent negative": on,
        }
        extra |= {"rows to explain": {"forward": spent.forward, "gradient": spent.gradient}}
        extra |= {"doubt": None if ranking.doubt is None else float(ranking.doubt[0]), "picture": str(out)}
        print_json(cases, radii, [asked.name], ["only these move", "these are held"], extra | {"notes": notes})
        return
    table = Table(show_header=False)
    table.add_row("input", escape(asked.title))
    table.add_row("prediction", _share(asked, cases.x, int(cases.label[0])))
    table.add_row("question", _question(asked, cases))
    table.add_row("explanation", f"{len(chosen)} of {int(ranking.count[0])} {cases.features.kind}, by {method}")
    if not asked.photograph:
        table.add_row("pertinent positive", f"{len(off)}: lit, would be turned off")
        table.add_row("pertinent negative", f"{len(on)}: dark, would be turned on")
    for k, what in enumerate(("only these move", "these are held")):
        table.add_row(f"L{p} radius, {what}", f"{shown_radius(radii, 0, k)}, {_turned(asked, radii, k)}")
    if ranking.doubt is not None:
        table.add_row("unsettled at the cuts", f"{float(ranking.doubt[0]):.0%} of the features")
    table.add_row("model rows", f"{spent.forward:,} to explain, {radii.queries.forward:,} to judge")
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


def _panels(
    asked: Subject, question: str, cases: Cases, ranking: Ranking, relevant: Tensor, radii: Radii
) -> list[Panel]:
    """A photograph, what its explanation calls relevant, the order of everything, and the two smallest changes."""
    place = ranking.order.argsort(1) / max(1, int(ranking.count[0]) - 1)
    x, heat = cases.x[0].cpu().numpy(), cases.features.spread((1 - place).to(cases.x))[0].cpu().numpy()
    top = cases.features.expand(relevant[:, 0])[0].cpu().numpy()
    panels = [
        Panel(photographs.plain(x), _share(asked, cases.x, int(cases.label[0])), asked.title),
        Panel(photographs.outlined(x, top), question, f"top {int(relevant.sum())} of {int(ranking.count[0])}"),
        Panel(photographs.heated(x, heat), "order of all features", "bright: first"),
    ]
    for k, what in enumerate(("only these move", "these are held")):
        move = (radii.witness[0, k] - cases.x[0]).cpu().numpy()
        pixels, times = photographs.amplified(move)
        below = f"{what}, x {times:g}: radius {shown_radius(radii, 0, k)}"
        panels.append(Panel(pixels, _turned(asked, radii, k), below))
    return panels


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
