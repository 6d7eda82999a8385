"""Figures of a report, as images that stand inside the page."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from PIL import Image

from holdfast.analyses.result import plain
from holdfast.curve import Curve
from holdfast.data.photographs import is_photograph
from holdfast.errors import HoldfastError
from holdfast.experiment.results import Picture, Results
from holdfast.ranking import size_text
from holdfast.report import photographs
from holdfast.report.pictures import blend, grey, mark
from holdfast.report.table import number

# Colours that are told apart without red and green; the main method's comes first.
_COLOURS = (
    "#c2410c",
    "#1d4ed8",
    "#0891b2",
    "#7e22ce",
    "#ca8a04",
    "#15803d",
    "#be185d",
    "#64748b",
    "#78716c",
    "#111827",
)
_DASHES = ("-", "--", ":")


def curves(results: Results) -> dict[str, str]:
    """One figure a criterion of the tables: the mean curve of every method, as an image address."""
    found = {}
    for measure in results.measures("table"):
        by = {name: results.curve(name, measure) for name in [results.main, *results.methods("table", "ablation")]}
        by = {name: curve for name, curve in by.items() if curve is not None}
        if by:
            better = "higher is better" if measure["higher"] else "lower is better"
            found[f"{measure['name']}: {better}"] = _figure(_curves, by, size=(5.6, 4.2))
    return found


def _curves(ax: Any, by: Mapping[str, Curve]) -> None:
    for place, (name, curve) in enumerate(by.items()):
        values, percent = _known(curve), curve.along().double()
        mean = values.nanmean(0)
        spread = (values - mean).square().nanmean(0).sqrt() / max(1, len(values) - 1) ** 0.5
        style = {"color": _COLOURS[place % len(_COLOURS)], "linestyle": _DASHES[place // len(_COLOURS) % len(_DASHES)]}
        ax.plot(
            percent, mean, marker="o", markersize=3, linewidth=2.4 if place == 0 else 1.3, label=plain(name), **style
        )
        ax.fill_between(percent, mean - spread, mean + spread, color=style["color"], alpha=0.12, linewidth=0)
        some = curve.censored.any(0)
        if bool(some.any()):  # where the largest move possible stands in
            ax.plot(percent[some], mean[some], "o", markersize=7, fillstyle="none", color=style["color"])
    shares = next(iter(by.values())).sizes.is_floating_point()
    ax.set_xlabel("features called relevant, %" if shares else "features called relevant")
    ax.legend(fontsize=7, frameon=False, ncols=2)


def _known(curve: Curve) -> torch.Tensor:
    """Values with the largest move in place of censored ones, or NaN where no box says what that is."""
    values = torch.where(curve.censored, curve.ceiling, curve.values).double()
    return values.masked_fill(torch.isinf(values) | (curve.censored & (curve.ceiling == 0)), torch.nan)


def analyses(results: Results) -> dict[str, dict[str, str]]:
    """Figures by the key of the table they stand beside."""
    found: dict[str, dict[str, str]] = {}
    if results.references is not None:
        both = results.references
        for place, name in enumerate(("Insertion", "Deletion")):
            shown = _figure(lambda ax, place=place: both.plot(ax, place), size=(5.6, 3.8))
            found.setdefault("ranks", {})[f"Rank by {name}"] = shown
    for key, result in (
        ("sensitivity", results.sensitivity),
        ("sanity", results.sanity),
        ("runtime", results.runtime),
        ("diagnostics", results.diagnostics),
    ):
        if result is not None:
            found[key] = {key: _figure(result.plot, size=(5.6, 3.6))}
    return found


def _figure(draw: Callable[..., None], *given: Any, size: tuple[float, float]) -> str:
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "holdfast", "font.family": "sans-serif"}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        axis = figure.subplots()
        axis.spines[["top", "right"]].set_visible(False)
        draw(axis, *given)
        out = io.BytesIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _address("svg+xml", out.getvalue())


# ---------------------------------------------------------------------- explanations


def is_image(picture: Picture) -> bool:
    """Whether an input can be looked at: one or three channels over a plane."""
    return picture.x.ndim == 3 and picture.x.shape[0] in (1, 3)


def input_image(picture: Picture) -> str:
    """The input as it is."""
    if is_photograph(picture.x.shape):
        return _jpeg(photographs.plain(picture.x))
    return _png(grey(torch.from_numpy(picture.x)))


def relevant_image(picture: Picture) -> str:
    """The features called relevant: outlined in a photograph, else coloured by the way the smallest change goes."""
    if is_photograph(picture.x.shape):
        return _jpeg(photographs.outlined(picture.x, picture.relevant))
    marked = torch.from_numpy(np.broadcast_to(picture.relevant, picture.x.shape).copy())
    return _png(mark(grey(torch.from_numpy(picture.x)), torch.from_numpy(_moves(picture)[0]), marked))


def smaller_images(picture: Picture) -> list[tuple[str, str]]:
    """What else there is to see, with words for it.

    Of a photograph, its heat and the two smallest changes, amplified; else the input after each of them.
    """
    told = ("only these move", "these are held")
    if not is_photograph(picture.x.shape):
        return [(changed_image(picture, which), f"after the smallest change, {told[which]}") for which in (0, 1)]
    shown = [(_jpeg(photographs.heated(picture.x, picture.heat)), "the order of all features")]
    for which in (0, 1) if picture.moves is not None else ():
        if picture.turned[which] >= 0:
            pixels, times = photographs.amplified(_moves(picture)[which])
            shown.append((_jpeg(pixels), f"the smallest change, {told[which]}, times {times:g}"))
    return shown


def changed_image(picture: Picture, which: int) -> str:
    """The input after the smallest change: only the relevant features move (0), or all others do (1)."""
    free = torch.from_numpy(np.broadcast_to(picture.relevant, picture.x.shape).copy())
    move = torch.from_numpy(_moves(picture)[which])
    after = torch.from_numpy(picture.x) + move.float()
    return _png(blend(grey(after), move, ~free if which else free))


def _moves(picture: Picture) -> np.ndarray[Any, Any]:
    assert picture.moves is not None, "of all but photographs they are kept"
    return picture.moves


def has_photographs(results: Results) -> bool:
    """Whether there is something for ``draw_gallery``."""
    return any(is_photograph(one.x.shape) for by in results.pictures().values() for one in by.values())


def draw_gallery(results: Results, path: Path) -> None:
    """The explanations of every photograph by every method side by side, as in the paper's figures."""
    rows = []
    for _, by_method in sorted(results.pictures().items()):
        one = next(iter(by_method.values()))
        if not is_photograph(one.x.shape):
            continue
        name = results.study["classes"][one.label]
        row = [photographs.Panel(photographs.plain(one.x), name, f"{one.before:.0%}")]
        for method, picture in by_method.items():
            if method in results.methods("table"):
                told = ["none" if math.isinf(radius) else number(radius) for radius in picture.radius]
                pixels = photographs.outlined(picture.x, picture.relevant)
                row.append(photographs.Panel(pixels, method, f"only {told[0]}   held {told[1]}"))
        rows.append(row)
    if not rows:
        raise HoldfastError(f"{results.path} holds no photographs to draw side by side.")
    share = f"top {size_text(results.study['top'])} of the features"
    photographs.draw_panels(rows, path, f"{share}; smallest change when only they move, and when they are held")


def _jpeg(pixels: np.ndarray[Any, Any]) -> str:
    out = io.BytesIO()
    Image.fromarray((pixels.clip(0, 1) * 255).round().astype(np.uint8)).save(out, "jpeg", quality=88, subsampling=0)
    return _address("jpeg", out.getvalue())


def _png(pixels: np.ndarray[Any, Any]) -> str:
    out = io.BytesIO()
    Image.fromarray((pixels.clip(0, 1) * 255).round().astype(np.uint8)).save(out, "png", optimize=True)
    return _address("png", out.getvalue())


def _address(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
