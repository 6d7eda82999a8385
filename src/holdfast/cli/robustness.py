"""``holdfast robustness``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.cli import arguments
from holdfast.cli.app import Device, Json, Seed, app
from holdfast.cli.app import out as console
from holdfast.cli.show import print_json, progress_bar, shown_radius
from holdfast.errors import HoldfastError
from holdfast.experiment.names import METHODS
from holdfast.report import draw_changes


@app.command()
def robustness(
    image: Annotated[Path | None, typer.Argument(help="An image file of a digit, light on dark.")] = None,
    digit: Annotated[int | None, typer.Option(help="An embedded test digit, 0 to 999, instead of a file.")] = None,
    p: Annotated[str, typer.Option("--p", help="Norm of the perturbation: 1, 2 or inf.")] = "2",
    target: Annotated[int | None, typer.Option(help="Towards this class; any other class if not given.")] = None,
    features: Annotated[str, typer.Option(help="pixels, patches:N or superpixels:N.")] = "pixels",
    subset: Annotated[
        str, typer.Option(help="Which features may move: all, top:20% (by gradient), rest:20%, random:20%.")
    ] = "all",
    mask: Annotated[Path | None, typer.Option(help="An image of the same size: pixels not black may move.")] = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "judge-quick",
    resize: Annotated[bool, typer.Option("--resize", help="Scale image and mask to the network's 28 x 28.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write a picture of the change here.")] = None,
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """How small a change, inside some features, turns the prediction for one image?"""
    if out is not None:
        arguments.check_picture(out)
    measured = arguments.method(method, arguments.norm(p), seed)
    model = arguments.classifier(device)
    x = arguments.image(image, digit, resize).to(model.device)
    cases = model.ask(x, target=target, features=arguments.features(features, x))
    if mask is not None and subset != "all":
        raise HoldfastError("--mask and --subset both say what may move: give one of them.")
    chosen = arguments.masked(cases, mask, resize) if mask is not None else arguments.subset(cases, subset, seed)
    moving = subset if mask is None else "mask"
    with progress_bar("measuring", as_json) as progress:
        radii = measured(cases, chosen[:, None], progress=progress)
    if out is not None:
        draw_changes(cases, radii, chosen[:, None], [moving], out)
    name = digit if digit is not None else str(image)
    if as_json:
        print_json(cases, radii, [name], [moving], {"picture": str(out)} if out else {})
        return
    table = Table(show_header=False)
    label, turned = int(cases.label[0]), int(radii.turned[0, 0])
    table.add_row("input", f"test digit #{digit}" if digit is not None else escape(str(image)))
    table.add_row("prediction", str(label))
    table.add_row("question", f"why {label}?" if target is None else f"why {label} and not {target}?")
    table.add_row("may move", f"{int(chosen.sum())} of {cases.features.count} {cases.features.kind}")
    table.add_row(f"L{p} radius ({radii.bound} bound)", shown_radius(radii, 0, 0))
    table.add_row("turns into", "no change found: censored" if turned < 0 else str(turned))
    table.add_row("model rows", f"{radii.queries.forward:,} forward, {radii.queries.gradient:,} of them with gradient")
    table.add_row("method", radii.method)
    console.print(table)
    for note in radii.notes:
        console.print(f"note: {note}", highlight=False)
    if out is not None:
        console.print(f"picture: {out}", soft_wrap=True, highlight=False, markup=False)
