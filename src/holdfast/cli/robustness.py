"""``holdfast robustness``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table as Rich
from torch import Tensor

from holdfast.cases import Cases
from holdfast.cli import arguments, options
from holdfast.cli.app import out as console
from holdfast.cli.own import subject_or_modality
from holdfast.cli.show import print_radii, progress_bar, radius_text
from holdfast.errors import HoldfastError
from holdfast.explanation import question
from holdfast.modalities.image import draw_changes
from holdfast.modalities.modality import Subject
from holdfast.modalities.source import Source
from holdfast.model_files import is_own
from holdfast.robustness import Radii

app = typer.Typer(add_completion=False)


@app.command()
def robustness(
    image: options.ImageFile = None,
    digit: options.Digit = None,
    photo: options.Photo = None,
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
    p: options.Norm = "2",
    target: options.Target = None,
    features: options.FeatureKind = None,
    subset: Annotated[
        str, typer.Option(help="Which features may move: all, top:20% (by gradient), rest:20%, random:20%; columns.")
    ] = "all",
    mask: Annotated[
        Path | None, typer.Option(help="An image of the same size as the input: what is not black may move.")
    ] = None,
    method: Annotated[str, typer.Option(help="A robustness method; holdfast list shows them.")] = "judge-quick",
    resize: options.Resize = False,
    out: Annotated[Path | None, typer.Option(help="Write a picture of the change here.")] = None,
    device: options.Device = "cpu",
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Measure how small a change, inside some features, changes the prediction for one image or row of a table."""
    if out is not None:
        arguments.check_picture(out)
    if mask is not None and subset != "all":
        raise HoldfastError("--mask and --subset both say what may move: give one of them.")
    measure = arguments.method(method, arguments.norm(p), seed)
    arguments.usable_device(device)
    own = is_own(model) and table is None and row is None
    rows = arguments.row_source(table, row, columns, (fixed, rising, falling), None if own else classes, label_column)
    if rows is not None and (out is not None or mask is not None):
        raise HoldfastError(f"{'--mask' if out is None else '--out'} is for images: leave it out for a row of a table.")
    source = Source(image, digit, photo, None, model, resize, device, rows, weights, arguments.listed(classes))
    loaded, modality = subject_or_modality(source)
    subject = modality.read(source) if loaded is None else loaded
    cases = subject.ask(target, features)
    moving = arguments.subset(cases, subset, seed) if mask is None else arguments.masked(subject, cases, mask, resize)
    name = subset if mask is None else "mask"
    with progress_bar("measuring", as_json) as progress:
        radii = measure(cases, moving[:, None], progress=progress)
    if out is not None:
        draw_changes(cases, radii, moving[:, None], [name], out)
    changed = subject.modality.changed(subject, cases, radii)
    if as_json:
        print_radii(cases, radii, [subject.name], [name], ({"picture": str(out)} if out else {}) | dict(changed))
        return
    _print(subject, cases, radii, [("may move", _moving(cases, moving)), (f"L{p} radius", _radius(radii)), *changed])
    if out is not None:
        console.print(f"written: {out}", soft_wrap=True, highlight=False, markup=False)


def _moving(cases: Cases, moving: Tensor) -> str:
    return f"{int(moving.sum())} of {cases.features.count} {cases.features.kind}"


def _radius(radii: Radii) -> str:
    """Return the radius in words, and what is known of it."""
    bound = f" ({radii.bound} bound)"
    if radii.bound == "exact":
        bound = " (exact)" if bool(radii.proven[0, 0]) else f" (at least {float(radii.lower[0, 0]):.4g} is proven)"
    return radius_text(radii, 0, 0) + ("" if bool(radii.unreachable[0, 0]) else bound)


def _print(subject: Subject, cases: Cases, radii: Radii, facts: list[tuple[str, str]]) -> None:
    classes, label, new = cases.model.classes, int(cases.label[0]), int(radii.new_class[0, 0])
    table = Rich(show_header=False)
    table.add_row("input", escape(subject.title))
    table.add_row("prediction", escape(classes[label]))
    table.add_row("question", escape(question(classes, label, int(cases.target[0]))))
    for name, value in facts:
        table.add_row(name, escape(value))
    none = "no class: none can be reached" if bool(radii.unreachable[0, 0]) else "no class: no change was found"
    table.add_row("changes to", none if new < 0 else escape(classes[new]))
    table.add_row("model rows", f"{radii.queries.forward:,} forward, {radii.queries.gradient:,} of them with gradient")
    table.add_row("method", radii.method)
    console.print(table)
    for note in radii.notes:
        console.print(f"note: {note}", highlight=False)
