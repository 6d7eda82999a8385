"""The ``holdfast`` command."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image, UnidentifiedImageError
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor

from holdfast.cases import Cases
from holdfast.criteria import CRITERIA, Criterion, PerturbRelevant, PerturbRest
from holdfast.curve import Curve, trace
from holdfast.data import mnist, mnist_cnn
from holdfast.data.train import train_mnist_cnn
from holdfast.errors import HoldfastError
from holdfast.explainers import EXPLAINERS, Explainer, Grad, Greedy, GreedyAS, OneStepBanzhaf, Random
from holdfast.features import Features
from holdfast.model import Classifier
from holdfast.ranking import Ranking, check_size
from holdfast.report import draw_changes, draw_curves, draw_explanations
from holdfast.robustness import METHODS, PGD, Judge, Linear, MinNorm, Radii, Robustness
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

_EXPLAINERS: dict[str, Callable[..., Explainer]] = {
    "greedy-as": GreedyAS,
    "greedy-as-quick": GreedyAS.quick,
    "greedy-as-thorough": GreedyAS.thorough,
    "greedy": Greedy,
    "one-step-banzhaf": OneStepBanzhaf,
    "grad": Grad,
    "random": Random,
}
_OBJECTIVES: dict[str, Callable[[Robustness], Criterion]] = {"rest": PerturbRest, "relevant": PerturbRelevant}

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Device = Annotated[str, typer.Option(help="Where the network runs: cpu, cuda, cuda:1, mps.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")]


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
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("holdfast-demo"),
    digits: Annotated[int, typer.Option(min=1, max=50, help="How many embedded digits.")] = 5,
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Explain embedded digits with Greedy-AS, the gradient and chance, and judge the three by robustness."""
    model = _classifier(device)
    data = mnist()
    first = [int((data.y == y).nonzero()[i]) for i in range(5) for y in (7, 2, 1, 0, 4, 9, 5, 3, 6, 8)][:digits]
    cases = model.ask(data.x[first].to(model.device))
    judge, sizes = replace(Judge.quick(), seed=seed), (0.05, 0.15, 0.25, 0.35, 0.45)
    objectives: dict[str, Criterion] = {
        "Robustness-S̄r: relevant features held (higher is better)": PerturbRest(judge),
        "Robustness-Sr: only relevant features move (lower is better)": PerturbRelevant(judge),
    }
    started = model.queries
    panels: dict[str, dict[str, Curve]] = {}
    shown: dict[str, Ranking] = {}
    for title, objective in objectives.items():
        explainers: dict[str, Explainer] = {
            "Greedy-AS": replace(GreedyAS.quick(objective), seed=seed),
            "Grad": Grad(),
            "Random": Random(seed),
        }
        panels[title] = {}
        for name, explainer in explainers.items():
            with _progress(f"{name}: ranking pixels", as_json) as progress:
                ranking = explainer(cases, progress)
            with _progress(f"{name}: judging", as_json) as progress:
                panels[title][name] = trace(cases, ranking, objective, sizes, progress=progress)
            shown.setdefault(name, ranking)
    explained = {}
    for name, ranking in shown.items():
        relevant = ranking.top([0.2])
        with _progress(f"{name}: measuring the top 20 %", as_json) as progress:
            explained[name] = relevant[:, 0], judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    pictures = [out / "demo.png", out / "curves.png"]
    draw_explanations(cases, explained, pictures[0])
    draw_curves(panels, pictures[1])
    areas = {name: [float(panels[title][name].auc().mean()) for title in panels] for name in shown}
    counted = sum(int(curve.censored.sum()) for curves in panels.values() for curve in curves.values())
    spent = model.queries - started
    if as_json:
        judged = [{"explainer": name, "auc rest": rest, "auc relevant": only} for name, (rest, only) in areas.items()]
        answer: dict[str, Any] = {"version": __version__, "digits": first, "judge": repr(judge), "explainers": judged}
        answer |= {"censored": counted, "gradient rows": spent.gradient, "pictures": [str(path) for path in pictures]}
        typer.echo(json.dumps(answer, indent=1))
        return
    table = Table(title=f"{len(cases)} digits explained, and each explanation judged by how small a change turns them")
    table.add_column("explanation")
    for column in ("area, relevant held (higher is better)", "area, only relevant move (lower is better)"):
        table.add_column(column, justify="right")
    for name, (rest, only) in areas.items():
        table.add_row(name, f"{rest:.1f}", f"{only:.1f}")
    _out.print(table)
    _out.print(
        "Areas lie under the curves from 5 to 45 % of the pixels. Greedy-AS looks for the pixels that are best by the "
        "measure it is judged by, once for each measure; the picture shows the first kind.\n"
        f"Radii are upper bounds, re-measured on the network; {counted} points are censored (no change found) and "
        f"count as the largest move possible. {spent.gradient:,} gradient rows, {judge}.",
        highlight=False,
    )
    for path in pictures:
        _out.print(f"picture: {path}", soft_wrap=True, highlight=False, markup=False)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """Show explainers, criteria and robustness methods with their settings, and the kinds of features."""
    rooms: dict[str, tuple[Sequence[type], list[str]]] = {
        "explainers": (EXPLAINERS, list(_EXPLAINERS)),
        "criteria": (CRITERIA, list(_OBJECTIVES)),
        "robustness methods": (METHODS, list(_METHODS)),
    }
    kinds = {
        "pixels": "one feature a pixel, colour channels together",
        "patches:N": "squares of N x N pixels",
        "superpixels:N": "about N SLIC segments (extra: superpixels)",
    }
    listed = {
        room: [{"name": kind.__name__, "about": _headline(kind), "settings": _settings(kind)} for kind in all_of_it]
        for room, (all_of_it, _) in rooms.items()
    }
    if as_json:
        spoken = {room: names for room, (_, names) in rooms.items()}
        typer.echo(json.dumps({**listed, "command line": spoken, "features": kinds}, indent=1))
        return
    for room, (_, names) in rooms.items():
        table = Table(title=room)
        for column in ("name", "about", "settings"):
            table.add_column(column, overflow="fold")
        for row in listed[room]:
            table.add_row(*row.values())
        _out.print(table)
        _out.print(f"on the command line: {', '.join(names)}\n", highlight=False, soft_wrap=True)
    _out.print("--features takes: " + "; ".join(f"{k} ({v})" for k, v in kinds.items()), highlight=False)


@app.command()
def explain(
    image: Annotated[Path | None, typer.Argument(help="An image file of a digit, light on dark.")] = None,
    digit: Annotated[int | None, typer.Option(help="An embedded test digit, 0 to 999, instead of a file.")] = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(_EXPLAINERS)}.")] = "greedy-as-quick",
    objective: Annotated[
        str, typer.Option(help="What to look for: rest (held, they make it hard to break) or relevant (easy).")
    ] = "rest",
    target: Annotated[int | None, typer.Option(help="Why not this class? Any other class if not given.")] = None,
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
    size, norm = _size(top), _norm(p)
    _check_picture(out)
    judge = replace(Judge.quick(norm), seed=seed)
    explainer = _explainer(method, objective, norm, size, seed)
    model = _classifier(device)
    x = _image(image, digit, resize).to(model.device)
    cases = model.ask(x, target=target, features=_features(features, x))
    with _progress("ranking features", as_json) as progress:
        started = model.queries
        ranking = explainer(cases, progress)
        spent = model.queries - started
    relevant = ranking.top([size])
    with _progress("measuring", as_json) as progress:
        radii = judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    draw_explanations(cases, {method: (relevant[:, 0], radii)}, out, changes=True)
    change = cases.features.pool(radii.witness[:, 0] - cases.x)[0]
    chosen = [feature for feature in ranking.order[0].tolist() if bool(relevant[0, 0, feature])]
    off = [feature for feature in chosen if float(change[feature]) < 0]
    on = [feature for feature in chosen if float(change[feature]) > 0]
    notes = [*ranking.notes, *radii.notes]
    label = int(cases.label[0])
    if as_json:
        extra: dict[str, Any] = {
            "explainer": ranking.method,
            "order": chosen,
            "pertinent positive": off,
            "pertinent negative": on,
        }
        extra |= {"gradient rows to explain": spent.gradient}
        extra |= {"doubt": None if ranking.doubt is None else float(ranking.doubt[0]), "picture": str(out)}
        name = digit if digit is not None else str(image)
        _print_json(cases, radii, [name], ["only these move", "these are held"], extra | {"notes": notes})
        return
    table = Table(show_header=False)
    table.add_row("input", f"test digit #{digit}" if digit is not None else escape(str(image)))
    table.add_row("question", f"why {label}?" if target is None else f"why {label} and not {target}?")
    table.add_row("explanation", f"{len(chosen)} of {int(ranking.count[0])} {cases.features.kind}, by {method}")
    table.add_row("pertinent positive", f"{len(off)}: lit, would be turned off")
    table.add_row("pertinent negative", f"{len(on)}: dark, would be turned on")
    for k, what in enumerate(("only these move", "these are held")):
        turned = "no change found: censored" if bool(radii.censored[0, k]) else f"turns into {int(radii.turned[0, k])}"
        table.add_row(f"L{p} radius, {what}", f"{_radius(radii, 0, k)}, {turned}")
    if ranking.doubt is not None:
        table.add_row("unsettled at the cuts", f"{float(ranking.doubt[0]):.0%} of the features")
    table.add_row("gradient rows", f"{spent.gradient:,} to explain, {radii.queries.gradient:,} to judge")
    _out.print(table)
    for note in notes:
        _out.print(f"note: {note}", highlight=False)
    _out.print(f"picture: {out}", soft_wrap=True, highlight=False, markup=False)


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
    if out is not None:
        _check_picture(out)
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
    explainer = Random(seed) if kind == "random" else Grad()
    chosen = explainer(cases).top([part])[:, 0]
    return ~chosen if kind == "rest" else chosen


def _masked(cases: Cases, path: Path, resize: bool) -> Tensor:
    """Features that have a pixel which is not black in the mask."""
    marked = (_grey(path, resize) > 0).to(cases.x)[None, None]
    return cases.features.pool(marked.expand_as(cases.x)) > 0


def _check_picture(path: Path) -> None:
    """Refuse a picture that could not be written, before anything is computed for it."""
    kinds = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise HoldfastError(f"--out {path} must end in a kind of picture: .{', .'.join(sorted(kinds))}.")
    if path.is_dir() or not os.access(next(p for p in path.resolve().parents if p.exists()), os.W_OK):
        raise HoldfastError(f"cannot write the picture {path}: choose another --out.")


def _size(text: str) -> float | int:
    try:
        size = float(text[:-1]) / 100 if text.endswith("%") else int(text)
    except ValueError:
        raise HoldfastError(f"--top must be a share such as 20% or a number of features, got {text!r}.") from None
    check_size(size, "--top")
    return size


def _explainer(name: str, objective: str, p: float, budget: float | int, seed: int) -> Explainer:
    """The explainer of that name, ranking as many features as will be shown."""
    if name not in _EXPLAINERS:
        raise HoldfastError(f"there is no explainer {name!r}: use one of {', '.join(_EXPLAINERS)}.")
    if objective not in _OBJECTIVES:
        raise HoldfastError(f"--objective must be one of {', '.join(_OBJECTIVES)}, got {objective!r}.")
    made: Any = _EXPLAINERS[name]()
    given = {"objective": _OBJECTIVES[objective](MinNorm(p, steps=20)), "budget": budget, "seed": seed}
    known = {field.name for field in fields(made)}
    explainer: Explainer = replace(made, **{key: value for key, value in given.items() if key in known})
    return explainer


# ---------------------------------------------------------------------- showing answers


@contextmanager
def _progress(what: str, quiet: bool) -> Iterator[Any]:
    if quiet or not _err.is_terminal:
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


def _headline(kind: type) -> str:
    first = (kind.__doc__ or "").strip().splitlines()[0]
    return f"{first} Gives {kind.bound} bounds." if issubclass(kind, Robustness) else first


def _settings(kind: Any) -> str:
    made = kind()
    return ", ".join(f"{field.name}={getattr(made, field.name)}" for field in fields(made))
