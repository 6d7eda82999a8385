"""The figure of an evaluation: one panel for each criterion, one curve for each method."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from holdfast.criteria.criterion import Criterion
from holdfast.curve import Curve, draw_curves
from holdfast.figures import Plot, cut, house, plain
from holdfast.palette import SOFT, Style

Curves = Mapping[str, Mapping[str, Curve]]

_WIDTH, _HEIGHT = 4.6, 3.2  # inches of a panel
_LINE = 64  # letters of a verdict in one line
_LINES = 3
_NAME = 20  # letters of a method in a verdict
_BANDED = 4  # methods; bands of more would hide each other


def draw(
    curves: Curves,
    criteria: Mapping[str, Criterion],
    verdicts: Mapping[str, str],
    styles: Mapping[str, Style],
    main: str | None,
) -> Plot:
    """Draw the mean curves of all methods, and above each panel what holds after Holm's correction.

    Args:
        curves: By criterion, then by method.
        criteria: The criteria by name.
        verdicts: A sentence for each criterion.
        styles: The style of each method.
        main: The method whose line is thicker.
    """
    said = {name: _wrapped(words) for name, words in verdicts.items()}
    height = 5 + 11.5 * max(map(len, said.values()))  # points above the axes
    across = min(2, len(curves))
    down = -(-len(curves) // across)
    plot = Plot(_WIDTH * across + (1.2 if across == 1 else 0), _HEIGHT * down + 0.4)
    with house():
        axes = plot.panels(down, across)
        for ax, (name, by_method) in zip(axes, curves.items(), strict=False):
            draw_curves(ax, by_method, styles, main, _banded(curves))
            better = "higher is better" if criteria[name].higher_is_better else "lower is better"
            ax.set_title(f"{cut(plain(name))}: {better}", pad=height + 5)
            above: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "top"}
            ax.annotate("\n".join(map(plain, said[name])), (0, 1), xytext=(0, height), color=SOFT, fontsize=8, **above)
        for ax in axes[len(curves) :]:
            ax.set_axis_off()
        _legend(plot, curves)
    return plot


def short_name(name: str) -> str:
    """Return the name of a method in a verdict above a panel."""
    return cut(name, _NAME)


def _banded(curves: Curves) -> int:
    """Return how many methods have a band."""
    count = len(next(iter(curves.values())))
    return count if count <= _BANDED else 0


def _legend(plot: Plot, curves: Curves) -> None:
    """Name the methods, the bands and the rings below all panels."""
    handles, labels = plot.axes[0].get_legend_handles_labels()
    every = [curve for by_method in curves.values() for curve in by_method.values()]
    if _banded(curves) and len(every[0].values) > 1:
        handles.append(Patch(color=SOFT, alpha=0.15, linewidth=0))
        labels.append("mean ± standard error")
    if any(bool(curve.censored.any()) for curve in every):
        handles.append(Line2D([], [], linestyle="none", marker="o", markersize=9, fillstyle="none", color=SOFT))
        labels.append("no change found in some cases")
    labels = [cut(label) for label in labels]
    columns = max(1, min(4, len(labels), int(18 * plot.get_figwidth() / (max(map(len, labels)) + 8))))
    plot.legend(handles, labels, loc="outside lower center", ncols=columns)


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(" ".join(sentence.split()), _LINE, max_lines=_LINES, placeholder=" …")
