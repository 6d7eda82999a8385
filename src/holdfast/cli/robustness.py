"""``holdfast robustness``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.cli import arguments
from holdfast.cli.app import Device, Digit, FeatureKind, ImageFile, Json, Model, Photo, Seed, app
from holdfast.cli.app import out as console
from holdfast.cli.show import print_json, progress_bar, shown_radius
from holdfast.cli.subject import masked, subject
from holdfast.errors import HoldfastError
from holdfast.experiment.names import METHODS
from holdfast.report import draw_changes


@app.command()
def robustness(
    image: ImageFile = None,
    digit: Digit = None,
    photo: Photo = None,
    model: Model = None,
    p: Annotated[str, typer.Option("--p", help="Norm of the perturbation: 1, 2 or inf.")] = "2",
    target: Annotated[str | None, typer.Option(help="Towards this class; any other class if not given.")] = None,
    features: FeatureKind = None,
    subset: Annotated[
        str, typer.Option(help="Which features may move: all, top:20% (by gradient), rest:20%, random:20%.")
    ] = "all",
    mask: Annotated[
        Path | None, typer.Option(help="An image of the same size as the input: what is not black may move.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "judge-quick",
    resize: Annotated[bool, typer.Option("--resize", help="Scale a digit's image, and the mask, to fit.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write a picture of the change here.")] = None,
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """How small a change, inside some features, turns the prediction for one image?"""
    if out is not None:
        arguments.check_picture(out)
    measured = arguments.method(method, arguments.norm(p), seed)
    asked = subject(image, digit, photo, model, resize, device)
    cases = asked.model.ask(asked.x, target=asked.number(target), features=asked.features(features))
    if mask is not None and subset != "all":
        raise HoldfastError("--mask and --subset both say what may move: give one of them.")
    chosen = masked(asked, cases, mask, resize) if mask is not None else arguments.subset(cases, subset, seed)
    moving = subset if mask is None else "mask"
    with progress_bar("measuring", as_json) as progress:
        radii = measured(cases, chosen[:, None], progress=progress)
    if out is not None:
        draw_changes(cases, radii, chosen[:, None], [moving], out)
    if as_json:
        print_json(cases, radii, [asked.name], [moving], {"picture": str(out)} if out else {})
        return
    table = Table(show_header=False)
    label, turned = asked.called(int(cases.label[0])), int(radii.new_class[0, 0])
    table.add_row("input", escape(asked.title))
    table.add_row("prediction", label)
    aim = int(cases.target[0])
    table.add_row("question", f"why {label}?" if aim < 0 else f"why {label} and not {asked.called(aim)}?")
    table.add_row("may move", f"{int(chosen.sum())} of {cases.features.count} {cases.features.kind}")
    table.add_row(f"L{p} radius ({radii.bound} bound)", shown_radius(radii, 0, 0))
    table.add_row("turns into", "no change found: censored" if turned < 0 else asked.called(turned))
    table.add_row("model rows", f"{radii.queries.forward:,} forward, {radii.queries.gradient:,} of them with gradient")
    table.add_row("method", radii.method)
    console.print(table)
    for note in radii.notes:
        console.print(f"note: {note}", highlight=False)
    if out is not None:
        console.print(f"picture: {out}", soft_wrap=True, highlight=False, markup=False)
