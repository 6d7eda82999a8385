"""Pictures of explained photographs: heat, the outline of the top features, and changes too small to see, made seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from holdfast.errors import HoldfastError
from holdfast.report.pictures import save

Pixels = np.ndarray[Any, Any]
_LINE, _SHADE = np.array([1.0, 0.55, 0.1]), np.array([0.1, 0.1, 0.1])
_VISIBLE = 0.4  # how far from grey the larger moves are shown


def plain(x: Pixels) -> Pixels:
    """An input ``[3, H, W]`` as colours ``[H, W, 3]``."""
    return np.moveaxis(np.asarray(x, dtype=np.float64), 0, -1).clip(0, 1)


def heated(x: Pixels, heat: Pixels) -> Pixels:
    """The photograph in grey under colours of ``heat [1 or 3, H, W]``, from 0 (last feature) to 1 (first)."""
    warm = _plane(heat, x.shape[1:])
    colour = mpl.colormaps["inferno"](warm)[..., :3]
    strength = 0.15 + 0.6 * warm[..., None]
    return np.asarray((1 - strength) * _grey(x) + strength * colour)


def outlined(x: Pixels, relevant: Pixels) -> Pixels:
    """The photograph, colours left where ``relevant [1 or 3, H, W]`` features are, with a line around them."""
    inside = _plane(relevant, x.shape[1:]) > 0.5
    shown = np.where(inside[..., None], plain(x), 0.55 * _grey(x) + 0.35)
    edge = np.zeros_like(inside)
    for axis in (0, 1):
        steps = np.diff(inside, axis=axis)
        edge |= np.pad(steps, [(0, int(axis == a)) for a in (0, 1)]) | np.pad(
            steps, [(int(axis == a), 0) for a in (0, 1)]
        )
    if edge.mean() > 0.25:  # single pixels: lines around them would hide them
        return np.asarray(shown)
    return np.where((edge & inside)[..., None], _LINE, np.where((edge & ~inside)[..., None], _SHADE, shown))


def amplified(move: Pixels) -> tuple[Pixels, float]:
    """A change ``[3, H, W]`` about middle grey, made as many times larger as it takes to be seen, and how many."""
    size = np.abs(move)
    large = float(np.quantile(size[size > 0], 0.98)) if bool((size > 0).any()) else 0.0
    if large == 0:
        return np.full((*move.shape[1:], 3), 0.5), 1.0
    factor = max(1.0, _round(_VISIBLE / large))
    return np.moveaxis(0.5 + factor * move, 0, -1).clip(0, 1), factor


def _round(number: float) -> float:
    """The number of one digit, 1, 2 or 5, at or below."""
    power = 10.0 ** math.floor(math.log10(number))
    return max(digit * power for digit in (1, 2, 5) if digit * power <= number * (1 + 1e-9))


def _grey(x: Pixels) -> Pixels:
    return np.repeat((plain(x) @ np.array([0.299, 0.587, 0.114]))[..., None], 3, axis=-1)


def _plane(values: Pixels, shape: tuple[int, ...]) -> Pixels:
    return np.broadcast_to(np.asarray(values, dtype=np.float64).max(0), shape)


# ---------------------------------------------------------------------- figures


@dataclass(frozen=True)
class Panel:
    """One picture of a figure, with words above and below it."""

    pixels: Pixels
    above: str = ""
    below: str = ""


def draw_panels(rows: Sequence[Sequence[Panel]], path: Path, legend: str = "") -> None:
    """Rows of pictures, as many in each as it has."""
    if not rows or not all(rows):
        raise HoldfastError("there are no pictures to draw.")
    wide = max(map(len, rows))
    foot = 0.62 if legend else 0.36
    size = (1.9 * wide + 0.1, 2.3 * len(rows) + 0.05 + foot - 0.36)
    figure = Figure(figsize=size, facecolor="white")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(len(rows), wide, squeeze=False)
    for line, panels in zip(grid, rows, strict=True):
        for axis in line[len(panels) :]:
            axis.set_axis_off()
        for axis, panel in zip(line, panels, strict=False):
            axis.imshow(panel.pixels, interpolation="antialiased")
            axis.set_title(panel.above, fontsize=8, fontweight="bold", pad=3)
            axis.set_xlabel(panel.below, fontsize=7, labelpad=3)
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_color("#9ca3af")
    figure.text(0.5, 0.08 / size[1], legend, ha="center", fontsize=8)
    figure.subplots_adjust(
        left=0.01, right=0.99, top=1 - 0.25 / size[1], bottom=foot / size[1], hspace=0.34, wspace=0.06
    )
    save(figure, path)
