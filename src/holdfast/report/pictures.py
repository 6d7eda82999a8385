"""Pictures: inputs, the features an explanation calls relevant, and the smallest changes that turn a class."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from holdfast.cases import Cases
from holdfast.errors import HoldfastError
from holdfast.robustness import Radii

_RAISED, _LOWERED, _HELD, _UNMOVED = "#c2410c", "#1d4ed8", "#e5e7eb", "#ca8a04"


def draw_changes(cases: Cases, radii: Radii, subsets: Tensor, titles: Sequence[str], path: Path) -> None:
    """One row a case: the input, then for each subset the input after the smallest change found inside it.

    Orange marks what the change raised, blue what it lowered, grey what was held.
    """
    k = radii.radius.shape[1]
    figure, grid = _grid(cases, ["input", *titles])
    for case in range(len(cases)):
        for column in range(k):
            free = _spread(cases, case, subsets[case, column])
            _show_change(grid[case, column + 1], cases.x[case], radii, case, column, free)
    _finish(figure, len(cases), "orange: raised by the smallest change   blue: lowered   grey: held", path)


def draw_explanations(
    cases: Cases, explanations: Mapping[str, tuple[Tensor, Radii]], path: Path, *, changes: bool = False
) -> None:
    """One row a case: the input, then for each explanation the features it calls relevant.

    An explanation is ``(relevant [B, d], radii)`` with the radii of two subsets: only these move, these are held. Blue
    features are pertinent positives, which the smallest change inside them turns down; orange ones pertinent
    negatives, which it turns up. ``changes`` also shows the input after each of the two changes.
    """
    each = ["{}", "only these move", "these are held"] if changes else ["{}"]
    figure, grid = _grid(cases, ["input", *(title.format(name) for name in explanations for title in each)])
    for column, (relevant, radii) in enumerate(explanations.values()):
        for case in range(len(cases)):
            axes = grid[case, 1 + column * len(each) :]
            marked = _spread(cases, case, relevant[case])
            change = radii.witness[case, 0] - cases.x[case]
            worth = f"only {_length(radii, case, 0)}   held {_length(radii, case, 1)}"
            _show(axes[0], mark(grey(cases.x[case]), change, marked), worth)
            if changes:
                _show_change(axes[1], cases.x[case], radii, case, 0, marked)
                _show_change(axes[2], cases.x[case], radii, case, 1, ~marked)
    text = "relevant features   orange: dark, would be turned on   blue: lit, would be turned off   yellow: stay put"
    _finish(figure, len(cases), text, path)


# ---------------------------------------------------------------------- parts


def _grid(cases: Cases, titles: Sequence[str]) -> tuple[Figure, Any]:
    """A row of panels a case under column titles, the inputs already shown."""
    if cases.x.ndim != 4 or cases.x.shape[1] not in (1, 3):
        raise HoldfastError(f"pictures need images [B, 1 or 3, H, W], got {tuple(cases.x.shape)}.")
    figure = Figure(figsize=(1.75 * len(titles), 2.05 * len(cases) + 0.5), facecolor="white")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(len(cases), len(titles), squeeze=False)
    for column, title in enumerate(titles):
        grid[0, column].annotate(
            title, (0.5, 1.22), xycoords="axes fraction", ha="center", fontsize=8.5, fontweight="bold"
        )
    for case in range(len(cases)):
        _show(grid[case, 0], grey(cases.x[case]), f"{int(cases.label[case])}")
    return figure, grid


def _finish(figure: Figure, rows: int, legend: str, path: Path) -> None:
    height = 2.05 * rows + 0.5
    lines = textwrap.wrap(legend, int(15 * figure.get_figwidth()))  # about as many letters as fit an inch
    figure.text(0.5, 0.1 / height, "\n".join(lines), ha="center", fontsize=8)
    bottom = (0.21 + 0.15 * len(lines)) / height
    figure.subplots_adjust(left=0.02, right=0.98, top=1 - 0.62 / height, bottom=bottom, hspace=0.28, wspace=0.08)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """The figure as a file of the kind its name says; its folder is made if need be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise HoldfastError(f"cannot write the picture {path}: {error}.") from error


def _spread(cases: Cases, case: int, features: Tensor) -> Tensor:
    """The coordinates of some features of a case: ``[d]`` -> ``[*shape]``, broadcastable."""
    return cases.features.expand(features[None], torch.tensor([case], device=features.device))[0]


def _length(radii: Radii, case: int, column: int) -> str:
    return "none" if bool(radii.censored[case, column]) else f"{float(radii.radius[case, column]):.2f}"


def _show_change(axis: Any, x: Tensor, radii: Radii, case: int, column: int, free: Tensor) -> None:
    if bool(radii.censored[case, column]):
        _show(axis, blend(grey(x), torch.zeros_like(x), free), "none found")
        return
    witness = radii.witness[case, column]
    title = f"{int(radii.new_class[case, column])}   radius {float(radii.radius[case, column]):.3g}"
    _show(axis, blend(grey(witness), witness - x, free), title)


def _show(axis: Any, picture: np.ndarray[Any, Any], title: str) -> None:
    axis.imshow(picture, interpolation="nearest")
    axis.set_title(title, fontsize=8.5, pad=3)
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_color("#9ca3af")


def grey(x: Tensor) -> np.ndarray[Any, Any]:
    """An input ``[1 or 3, H, W]`` as colours ``[H, W, 3]``."""
    values = x.detach().float().cpu().clamp(0, 1)
    return values.expand(3, -1, -1).permute(1, 2, 0).numpy() if len(values) == 1 else values.permute(1, 2, 0).numpy()


def blend(base: np.ndarray[Any, Any], change: Tensor, free: Tensor) -> np.ndarray[Any, Any]:
    """The picture with the change coloured in proportion to its size, and a veil over what was held."""
    total = change.detach().float().cpu().sum(0)
    strength = (total.abs() / total.abs().max().clamp_min(1e-12)).sqrt().numpy()[..., None] * 0.85
    colour = np.where(total.numpy()[..., None] > 0, _rgb(_RAISED), _rgb(_LOWERED))
    held = ~free.expand(change.shape).any(0).cpu().numpy()[..., None]
    veiled = np.where(held, 0.72 * base + 0.28 * _rgb(_HELD), base)
    return np.asarray(veiled * (1 - strength) + colour * strength)


def mark(base: np.ndarray[Any, Any], change: Tensor, marked: Tensor) -> np.ndarray[Any, Any]:
    """The picture, faded, with the marked features coloured by the way the change moves them."""
    total = change.detach().float().cpu().sum(0).numpy()[..., None]
    colour = np.where(total > 0, _rgb(_RAISED), np.where(total < 0, _rgb(_LOWERED), _rgb(_UNMOVED)))
    shown = marked.expand(change.shape).any(0).cpu().numpy()[..., None]
    return np.asarray(np.where(shown, 0.25 * base + 0.75 * colour, 0.65 * base + 0.1))


def _rgb(colour: str) -> np.ndarray[Any, Any]:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
