"""The figure of radii: one point for each case and subset, with lower bounds, and marks where there is no radius."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from holdfast.figures import Plot, cut, house, move_legend, plain
from holdfast.palette import INK, LOWERED, OTHER, RAISED, RELEVANT

_SPREAD = 0.5  # the width over which the cases of one subset are spread
_ABOVE = 1.1  # where marks without a radius stand, relative to the largest radius
_MOST_NAMES = 40  # more subsets are numbered by matplotlib


def draw(
    radius: Tensor, lower: Tensor, proven: Tensor, names: Sequence[str], bound: str, title: str, width: float = 6.4
) -> Plot:
    """Draw radii.

    Args:
        radius: ``[B, K]``; infinite where there is none.
        lower: Proven lower bounds ``[B, K]``; 0 where nothing is known.
        proven: Bool ``[B, K]``: where the radius, or that there is none, is proven.
        names: What the K subsets are called.
        bound: Which side of the true value the radii lie on.
        title: Above the axes.
        width: The width in inches.
    """
    b, k = radius.shape
    x = torch.arange(k).double() + (_SPREAD * (torch.linspace(-0.5, 0.5, b) if b > 1 else torch.zeros(1)))[:, None]
    y, low = radius.double().cpu(), lower.double().cpu()
    known, proven = torch.isfinite(y), proven.cpu()
    ends = torch.cat([y[known], low[torch.isfinite(low)]])
    top = _ABOVE * max(float(ends.max()) if len(ends) else 0.0, 1e-12)
    kinds = {
        "proven lower bound" if bound == "lower" else "exact radius": (known & proven, y, "o", RELEVANT, RELEVANT),
        f"{bound if bound != 'exact' else 'upper'} bound": (known & ~proven, y, "o", "white", RELEVANT),
        "no change found": (~known & ~proven, torch.full_like(y, top), "X", RAISED, RAISED),
        "proven: no change exists": (~known & proven, torch.full_like(y, top), "s", LOWERED, LOWERED),
    }
    gap = ~proven & (low > 0) & (low < torch.where(known, y, top))
    plot = Plot(width, 3.6)
    with house():
        [ax] = plot.panels()
        if bool(gap.any()):
            ax.vlines(x[gap], low[gap], torch.where(known, y, top)[gap], color=OTHER, linewidth=1, zorder=1)
            ax.plot(x[gap], low[gap], "_", color=INK, markersize=7, linestyle="none", label="proven lower bound")
        for label, (where, heights, marker, face, edge) in kinds.items():
            if bool(where.any()):
                look: dict[str, Any] = {"markerfacecolor": face, "markeredgecolor": edge, "markersize": 5}
                ax.plot(x[where], heights[where], marker, linestyle="none", label=label, **look)
        if k <= _MOST_NAMES:
            turned = 45 if sum(map(len, names)) > 12 * width else 0
            shown = [cut(plain(name)) for name in names]
            ax.set_xticks(range(k), shown, rotation=turned, ha="right" if turned else "center")
        ax.set_xlim(-0.6, k - 0.4)
        ax.set_ylim(0, top * 1.05)
        ax.set_xlabel("subset of the features that moves")
        ax.set_ylabel("radius")
        ax.set_title(cut(plain(title), 80))
        ax.legend()
        move_legend(plot, ax)
    return plot
