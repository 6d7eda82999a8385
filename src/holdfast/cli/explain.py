"""``holdfast explain``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.markup import escape
from rich.table import Table

from holdfast.cli import arguments
from holdfast.cli.app import Device, Json, Seed, app
from holdfast.cli.app import out as console
from holdfast.cli.show import print_json, progress_bar, shown_radius
from holdfast.experiment.names import EXPLAINERS
from holdfast.ranking import Ranking
from holdfast.report import draw_explanations
from holdfast.robustness import Judge


@app.command()
def explain(
    image: Annotated[Path | None, typer.Argument(help="An image file of a digit, light on dark.")] = None,
    digit: Annotated[int | None, typer.Option(help="An embedded test digit, 0 to 999, instead of a file.")] = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(EXPLAINERS)}.")] = "greedy-as-quick",
    objective: Annotated[
        str | None,
        typer.Option(help="What Greedy methods look for: rest (hard to break when held, if not given) or relevant."),
    ] = None,
    target: Annotated[int | None, typer.Option(help="Why not this class? Any other class if not given.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="What a removed feature becomes: a number, blur, mean or uniform noise.")
    ] = None,
    top: Annotated[str, typer.Option(help="How many features to show: 20% or a number.")] = "20%",
    p: Annotated[str, typer.Option("--p", help="Norm of the perturbation: 1, 2 or inf.")] = "2",
    features: Annotated[str, typer.Option(help="pixels, patches:N or superpixels:N.")] = "pixels",
    resize: Annotated[bool, typer.Option("--resize", help="Scale the image to the network's 28 x 28.")] = False,
    out: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("explanation.png"),
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Which features does the prediction for one image hold fast to?"""
    size, norm = arguments.size(top), arguments.norm(p)
    arguments.check_picture(out)
    judge = replace(Judge.quick(norm), seed=seed)
    explainer = arguments.explainer(method, objective, norm, size, reference, seed)
    model = arguments.classifier(device)
    x = arguments.image(image, digit, resize).to(model.device)
    cases = model.ask(x, target=target, features=arguments.features(features, x))
    with progress_bar("ranking features", as_json) as progress:
        started = model.queries
        ranking = explainer(cases, progress)
        spent = model.queries - started
    relevant = ranking.top([size])
    with progress_bar("measuring", as_json) as progress:
        radii = judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    draw_explanations(cases, {method: (relevant[:, 0], radii)}, out, changes=True)
    change = cases.features.pool(radii.witness[:, 0] - cases.x)[0]
    chosen = [feature for feature in ranking.order[0].tolist() if bool(relevant[0, 0, feature])]
    off = [feature for feature in chosen if float(change[feature]) < 0]
    on = [feature for feature in chosen if float(change[feature]) > 0]
    notes = [*ranking.notes, *_ties(ranking, len(chosen)), *radii.notes]
    label = int(cases.label[0])
    if as_json:
        extra: dict[str, Any] = {
            "explainer": ranking.method,
            "order": chosen,
            "pertinent positive": off,
            "pertinent negative": on,
        }
        extra |= {"rows to explain": {"forward": spent.forward, "gradient": spent.gradient}}
        extra |= {"doubt": None if ranking.doubt is None else float(ranking.doubt[0]), "picture": str(out)}
        name = digit if digit is not None else str(image)
        print_json(cases, radii, [name], ["only these move", "these are held"], extra | {"notes": notes})
        return
    table = Table(show_header=False)
    table.add_row("input", f"test digit #{digit}" if digit is not None else escape(str(image)))
    table.add_row("question", f"why {label}?" if target is None else f"why {label} and not {target}?")
    table.add_row("explanation", f"{len(chosen)} of {int(ranking.count[0])} {cases.features.kind}, by {method}")
    table.add_row("pertinent positive", f"{len(off)}: lit, would be turned off")
    table.add_row("pertinent negative", f"{len(on)}: dark, would be turned on")
    for k, what in enumerate(("only these move", "these are held")):
        turned = "no change found: censored" if bool(radii.censored[0, k]) else f"turns into {int(radii.turned[0, k])}"
        table.add_row(f"L{p} radius, {what}", f"{shown_radius(radii, 0, k)}, {turned}")
    if ranking.doubt is not None:
        table.add_row("unsettled at the cuts", f"{float(ranking.doubt[0]):.0%} of the features")
    table.add_row("model rows", f"{spent.forward:,} to explain, {radii.queries.forward:,} to judge")
    console.print(table)
    for note in notes:
        console.print(f"note: {note}", highlight=False)
    console.print(f"picture: {out}", soft_wrap=True, highlight=False, markup=False)


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
