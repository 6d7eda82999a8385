"""The ``holdfast`` command."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from PIL import Image, UnidentifiedImageError
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor

from holdfast.cases import Cases
from holdfast.data import mnist, mnist_cnn
from holdfast.data.train import train_mnist_cnn
from holdfast.errors import HoldfastError
from holdfast.features import Features
from holdfast.model import Classifier
from holdfast.report import draw_changes
from holdfast.robustness import METHODS, PGD, Judge, Linear, MinNorm, Radii, Robustness
from holdfast.robustness.rows import margin
from holdfast.version import __version__

app = typer.Typer(
    help="Which features does a prediction hold fast to, and how fast does it hold?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_out = Console()
_err = Console(stderr=True)

_METHODS: dict[str, Callable[..., Robustness]] = {
    "judge": Judge,
    "judge-quick": Judge.quick,
    "judge-thorough": Judge.thorough,
    "minnorm": MinNorm,
    "pgd": PGD,
    "pgd-paper": PGD.paper,
    "linear": Linear,
}

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Device = Annotated[str, typer.Option(help="Where the network runs: cpu, cuda, cuda:1, mps.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]


def main() -> None:
    """Run the command; what goes wrong is one sentence on stderr and exit code 2."""
    try:
        app()
    except HoldfastError as error:
        _err.print(f"[bold red]holdfast:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {__version__} (torch {torch.__version__})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


# ---------------------------------------------------------------------- commands


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("holdfast-demo"),
    digits: Annotated[int, typer.Option(min=1, max=50, help="How many embedded digits.")] = 5,
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure embedded digits: how far to another class with every pixel free, a few held, or only those few free."""
    model = _classifier(device)
    data = mnist()
    first = [int((data.y == y).nonzero()[i]) for i in range(5) for y in (7, 2, 1, 0, 4, 9, 5, 3, 6, 8)][:digits]
    cases = model.ask(data.x[first].to(model.device))
    share = 0.2
    by_slope, at_random = _by_slope(cases, share), _at_random(cases, share, seed)
    everything = torch.ones_like(by_slope)
    subsets = torch.stack([everything, ~by_slope, ~at_random, by_slope, at_random], 1)
    titles = ["all pixels", "steepest held", "random held", "only steepest", "only random"]
    with _progress("measuring", as_json) as progress:
        radii = replace(Judge.quick(), seed=seed)(cases, subsets, progress=progress)
    path = out / "demo.png"
    draw_changes(cases, radii, subsets, titles, path)
    if as_json:
        _print_json(cases, radii, first, titles, {"picture": str(path)})
        return
    table = Table(title="Robustness-S: the smallest L2 change, inside the pixels left free, that turns the digit")
    for name in ("test digit", "seen as", *titles):
        table.add_column(name, justify="right")
    for case, index in enumerate(first):
        cells = [_radius(radii, case, k) for k in range(len(titles))]
        table.add_row(f"#{index}", str(int(cases.label[case])), *cells)
    _out.print(table)
    _explain(radii, share)
    _out.print(f"picture: {path}", soft_wrap=True, highlight=False, markup=False)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """Show the methods, their settings and the kinds of features."""
    methods = [
        {"method": kind.__name__, "about": _headline(kind), "bound": kind.bound, "settings": _settings(kind)}
        for kind in METHODS
    ]
    kinds = {
        "pixels": "one feature a pixel, colour channels together",
        "patches:N": "squares of N x N pixels",
        "superpixels:N": "about N SLIC segments (extra: superpixels)",
    }
    if as_json:
        typer.echo(json.dumps({"methods": methods, "command line": list(_METHODS), "features": kinds}, indent=1))
        return
    table = Table(title="robustness methods")
    for name in ("method", "about", "bound", "settings"):
        table.add_column(name, overflow="fold")
    for method in methods:
        table.add_row(*(str(value) for value in method.values()))
    _out.print(table)
    _out.print(f"--method takes: {', '.join(_METHODS)}", highlight=False, soft_wrap=True)
    _out.print("--features takes: " + "; ".join(f"{k} ({v})" for k, v in kinds.items()), highlight=False)


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
    method: Annotated[str, typer.Option(help=f"One of {', '.join(_METHODS)}.")] = "judge-quick",
    resize: Annotated[bool, typer.Option("--resize", help="Scale image and mask to the network's 28 x 28.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write a picture of the change here.")] = None,
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """How small a change, inside some features, turns the prediction for one image?"""
    measured = _method(method, _norm(p), seed)
    model = _classifier(device)
    x = _image(image, digit, resize).to(model.device)
    cases = model.ask(x, target=target, features=_features(features, x))
    if mask is not None and subset != "all":
        raise HoldfastError("--mask and --subset both say what may move: give one of them.")
    chosen = _masked(cases, mask, resize) if mask is not None else _subset(cases, subset, seed)
    moving = subset if mask is None else "mask"
    with _progress("measuring", as_json) as progress:
        radii = measured(cases, chosen[:, None], progress=progress)
    if out is not None:
        draw_changes(cases, radii, chosen[:, None], [moving], out)
    name = digit if digit is not None else str(image)
    if as_json:
        _print_json(cases, radii, [name], [moving], {"picture": str(out)} if out else {})
        return
    table = Table(show_header=False)
    label, turned = int(cases.label[0]), int(radii.turned[0, 0])
    table.add_row("input", f"test digit #{digit}" if digit is not None else escape(str(image)))
    table.add_row("prediction", str(label))
    table.add_row("question", f"why {label}?" if target is None else f"why {label} and not {target}?")
    table.add_row("may move", f"{int(chosen.sum())} of {cases.features.count} {cases.features.kind}")
    table.add_row(f"L{p} radius ({radii.bound} bound)", _radius(radii, 0, 0))
    table.add_row("turns into", "no change found: censored" if turned < 0 else str(turned))
    table.add_row("model rows", f"{radii.queries.forward:,} forward, {radii.queries.gradient:,} of them with gradient")
    table.add_row("method", radii.method)
    _out.print(table)
    for note in radii.notes:
        _out.print(f"note: {note}", highlight=False)
    if out is not None:
        _out.print(f"picture: {out}", soft_wrap=True, highlight=False, markup=False)


@app.command()
def train(
    network: Annotated[str, typer.Argument(help="The network to train: mnist-cnn.")],
    data: Annotated[Path, typer.Option(help="Folder with the MNIST idx or idx.gz files.")],
    out: Annotated[Path, typer.Option(help="Where to write the weights.")] = Path("mnist-cnn.safetensors"),
    download: Annotated[bool, typer.Option("--download", help="Fetch missing files from the public mirror.")] = False,
    epochs: Annotated[int, typer.Option(min=1)] = 12,
    device: Device = "cpu",
    seed: Seed = 0,
) -> None:
    """Train a network that the package carries weights for, and measure it on the full test set."""
    if network != "mnist-cnn":
        raise HoldfastError(f"there is no network {network!r} to train: use mnist-cnn.")
    _device(device)
    if not out.resolve().parent.is_dir():
        raise HoldfastError(f"the folder {out.resolve().parent} for the weights does not exist.")
    with _progress("training, epochs", False) as progress:
        accuracy = train_mnist_cnn(
            data,
            out,
            download=download,
            epochs=epochs,
            seed=seed,
            device=device,
            progress=lambda done, total, _: progress(done, total) if progress else None,
        )
    _out.print(f"{out}: {accuracy:.2%} of the test digits right", highlight=False)


# ---------------------------------------------------------------------- reading arguments


def _device(device: str) -> torch.device:
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise HoldfastError(f"device {device!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return torch.device(device)


def _classifier(device: str) -> Classifier:
    where = _device(device)
    return Classifier(mnist_cnn().module.to(where), bounds=(0, 1))


def _norm(p: str) -> float:
    try:
        return float(p)
    except ValueError:
        raise HoldfastError(f"p must be 1, 2 or inf, got {p!r}.") from None


def _method(name: str, p: float, seed: int) -> Robustness:
    if name not in _METHODS:
        raise HoldfastError(f"there is no method {name!r}: use one of {', '.join(_METHODS)}.")
    made: Any = _METHODS[name](p=p)
    seeded = any(field.name == "seed" for field in fields(made))
    method: Robustness = replace(made, seed=seed) if seeded else made
    return method


def _image(path: Path | None, digit: int | None, resize: bool) -> Tensor:
    if (path is None) == (digit is None):
        raise HoldfastError("name either an image file or an embedded digit with --digit, not both or neither.")
    if digit is not None:
        digits = mnist()
        if not 0 <= digit < len(digits):
            raise HoldfastError(f"--digit must be between 0 and {len(digits) - 1}, got {digit}.")
        return digits.x[digit : digit + 1]
    assert path is not None
    return _grey(path, resize)[None, None]


def _grey(path: Path, resize: bool) -> Tensor:
    try:
        with Image.open(path) as file:
            picture = file.convert("L")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise HoldfastError(f"cannot read the image {path}: {error}.") from error
    if picture.size != (28, 28):
        if not resize:
            raise HoldfastError(
                f"{path} is {picture.size[0]} x {picture.size[1]}, the network reads 28 x 28: add --resize."
            )
        picture = picture.resize((28, 28), Image.Resampling.BILINEAR)
    return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).reshape(28, 28).float() / 255


def _features(text: str, x: Tensor) -> Features:
    kind, _, size = text.partition(":")
    shape = tuple(x.shape[1:])
    if kind == "pixels" and not size:
        return Features.pixels(shape)
    if kind in ("patches", "superpixels") and size.isdecimal():
        return Features.patches(shape, int(size)) if kind == "patches" else Features.superpixels(x, int(size))
    raise HoldfastError(f"--features must be pixels, patches:N or superpixels:N, got {text!r}.")


def _subset(cases: Cases, text: str, seed: int) -> Tensor:
    kind, _, share = text.partition(":")
    if text == "all":
        return torch.ones(1, cases.features.count, dtype=torch.bool, device=cases.x.device)
    try:
        part = float(share.removesuffix("%")) / 100
    except ValueError:
        part = math.nan
    if kind not in ("top", "rest", "random") or not 0 < part < 1 or not share.endswith("%"):
        raise HoldfastError(f"--subset must be all, top:20%, rest:20% or random:20%, got {text!r}.")
    if kind == "random":
        return _at_random(cases, part, seed)
    top = _by_slope(cases, part)
    return top if kind == "top" else ~top


def _masked(cases: Cases, path: Path, resize: bool) -> Tensor:
    """Features that have a pixel which is not black in the mask."""
    marked = (_grey(path, resize) > 0).to(cases.x)[None, None]
    return cases.features.pool(marked.expand_as(cases.x)) > 0


def _by_slope(cases: Cases, share: float) -> Tensor:
    """The features where the margin is steepest: the plainest explanation there is."""
    _, slope = cases.model.gradient(cases.x, lambda z: margin(z, cases.label, cases.target))
    return _top(cases.features.pool(slope.abs()), share)


def _at_random(cases: Cases, share: float, seed: int) -> Tensor:
    draw = torch.rand(len(cases), cases.features.count, generator=torch.Generator().manual_seed(seed))
    return _top(draw.to(cases.x.device), share)


def _top(score: Tensor, share: float) -> Tensor:
    count = max(1, round(share * score.shape[1]))
    return torch.zeros_like(score, dtype=torch.bool).scatter(1, score.topk(count).indices, True)


# ---------------------------------------------------------------------- showing answers


@contextmanager
def _progress(what: str, quiet: bool) -> Iterator[Any]:
    if quiet:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_err, transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _radius(radii: Radii, case: int, k: int) -> str:
    return "censored" if bool(radii.censored[case, k]) else f"{float(radii.radius[case, k]):.4g}"


def _explain(radii: Radii, share: float) -> None:
    _out.print(
        f"Held = the steepest (or random) {share:.0%} of the pixels are anchored: higher means they mattered. "
        "Only = nothing else may move: lower means they mattered.\n"
        f"Radii are upper bounds, re-measured on the network; {int(radii.censored.sum())} of {radii.radius.numel()} "
        f"are censored (no change found). {radii.queries.gradient:,} gradient rows, {radii.method}.",
        highlight=False,
    )
    for note in radii.notes:
        _out.print(f"note: {note}", highlight=False)


def _print_json(cases: Cases, radii: Radii, names: list[Any], subsets: list[str], extra: dict[str, Any]) -> None:
    rows = [
        {
            "input": names[b],
            "label": int(cases.label[b]),
            "target": None if int(cases.target[b]) < 0 else int(cases.target[b]),
            "subset": subsets[k],
            "radius": None if bool(radii.censored[b, k]) else float(radii.radius[b, k]),
            "censored": bool(radii.censored[b, k]),
            "turned": None if bool(radii.censored[b, k]) else int(radii.turned[b, k]),
        }
        for b in range(len(cases))
        for k in range(len(subsets))
    ]
    answer = {
        "version": __version__,
        "method": radii.method,
        "bound": radii.bound,
        "rows": rows,
        "queries": {"forward": radii.queries.forward, "gradient": radii.queries.gradient},
        "notes": list(radii.notes),
    }
    typer.echo(json.dumps(answer | extra, indent=1))


def _headline(kind: type[Robustness]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def _settings(kind: type[Robustness]) -> str:
    return ", ".join(f"{field.name}={field.default}" for field in fields(kind))  # type: ignore[arg-type]
