"""Pictures: an input, the smallest change inside a subset that turns its class, and what it turns into."""

from __future__ import annotations

from collections.abc import Sequence
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

_RAISED, _LOWERED, _HELD = "#c2410c", "#1d4ed8", "#e5e7eb"


def draw_changes(cases: Cases, radii: Radii, subsets: Tensor, titles: Sequence[str], path: Path) -> None:
    """One row a case: the input, then for each subset the input after the smallest change found inside it.

    Orange marks what the change raised, blue what it lowered, grey what was held.
    """
    if cases.x.ndim != 4 or cases.x.shape[1] not in (1, 3):
        raise HoldfastError(f"pictures need images [B, 1 or 3, H, W], got {tuple(cases.x.shape)}.")
    b, k = radii.radius.shape
    figure = Figure(figsize=(1.75 * (k + 1), 2.05 * b + 0.5), facecolor="white")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(b, k + 1, squeeze=False)
    for case in range(b):
        _show(grid[case, 0], _grey(cases.x[case]), f"{int(cases.label[case])}")
        for column in range(k):
            free = cases.features.expand(subsets[case, [column]], torch.tensor([case], device=subsets.device))[0]
            _show_change(grid[case, column + 1], cases.x[case], radii, case, column, free)
    for column, title in enumerate(["input", *titles]):
        grid[0, column].annotate(
            title, (0.5, 1.22), xycoords="axes fraction", ha="center", fontsize=8.5, fontweight="bold"
        )
    figure.text(
        0.5, 0.012, "orange: raised by the smallest change   blue: lowered   grey: held", ha="center", fontsize=8
    )
    figure.subplots_adjust(
        left=0.02, right=0.98, top=1 - 0.62 / (2.05 * b + 0.5), bottom=0.05, hspace=0.28, wspace=0.08
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise HoldfastError(f"cannot write the picture {path}: {error}.") from error


def _show_change(axis: Any, x: Tensor, radii: Radii, case: int, column: int, free: Tensor) -> None:
    if bool(radii.censored[case, column]):
        _show(axis, _blend(_grey(x), torch.zeros_like(x), free), "none found")
        return
    witness = radii.witness[case, column]
    title = f"{int(radii.turned[case, column])}   radius {float(radii.radius[case, column]):.3g}"
    _show(axis, _blend(_grey(witness), witness - x, free), title)


def _show(axis: Any, picture: np.ndarray[Any, Any], title: str) -> None:
    axis.imshow(picture, interpolation="nearest")
    axis.set_title(title, fontsize=8.5, pad=3)
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_color("#9ca3af")


def _grey(x: Tensor) -> np.ndarray[Any, Any]:
    values = x.detach().float().cpu().clamp(0, 1)
    return values.expand(3, -1, -1).permute(1, 2, 0).numpy() if len(values) == 1 else values.permute(1, 2, 0).numpy()


def _blend(base: np.ndarray[Any, Any], change: Tensor, free: Tensor) -> np.ndarray[Any, Any]:
    """The picture with the change coloured in proportion to its size, and a veil over what was held."""
    total = change.detach().float().cpu().sum(0)
    strength = (total.abs() / total.abs().max().clamp_min(1e-12)).sqrt().numpy()[..., None] * 0.85
    colour = np.where(total.numpy()[..., None] > 0, _rgb(_RAISED), _rgb(_LOWERED))
    held = ~free.expand(change.shape).any(0).cpu().numpy()[..., None]
    veiled = np.where(held, 0.72 * base + 0.28 * _rgb(_HELD), base)
    return np.asarray(veiled * (1 - strength) + colour * strength)


def _rgb(colour: str) -> np.ndarray[Any, Any]:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
