"""One style for each method in all figures and tables of a page, whoever drew them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.analyses.result import plain
from holdfast.palette import Style

Styles = Mapping[str, Style]
"""Styles by the name of the method."""

_ACROSS = 3  # columns of a legend
_STROKES = {"-": "", "--": "5 3", ":": "1.5 2.5", "-.": "5 2 1.5 2"}
_SHAPES = {
    "o": "M9 5a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "s": "M9.5 1.5h7v7h-7z",
    "^": "M13 .8L17.5 8.8H8.5z",
    "D": "M13 .2L17.8 5L13 9.8L8.2 5z",
    "v": "M13 9.2L17.5 1.2H8.5z",
    "P": "M11.5 .8h3v2.7h2.7v3h-2.7v2.7h-3V6.5H8.8v-3h2.7z",
    "X": "M8.8 2.6L10.6 .8L13 3.2L15.4 .8L17.2 2.6L14.8 5L17.2 7.4L15.4 9.2L13 6.8L10.6 9.2L8.8 7.4L11.2 5z",
    "<": "M8.8 5L16.8 .5V9.5z",
}


def paint(ax: Any, styles: Styles) -> None:
    """Give lines and bars that are named after methods the styles of these methods.

    Args:
        ax: Axes of matplotlib, already drawn on. Lines are known by their labels, bars by the labels of their ticks.
        styles: The style of each method.
    """
    by_label = {plain(name): style for name, style in styles.items()}
    for line in ax.lines:
        style = by_label.get(line.get_label())
        if style is not None:
            line.set(color=style.colour, linestyle=style.dash, marker=style.marker)
    for bars in ax.containers:
        patches = getattr(bars, "patches", None)
        if not patches:
            continue
        axis = ax.yaxis if getattr(bars, "orientation", "vertical") == "horizontal" else ax.xaxis
        for patch, tick in zip(patches, axis.get_ticklabels(), strict=False):
            style = by_label.get(tick.get_text())
            if style is not None:
                patch.set(facecolor=style.colour, hatch=style.hatch, edgecolor="white")


def move_legend(figure: Any, ax: Any) -> None:
    """Put the legend below the axes, where it covers no line, and make the figure taller by as much.

    Args:
        figure: A figure of matplotlib with the layout ``constrained``.
        ax: Its axes.
    """
    handles, labels = ax.get_legend_handles_labels()
    if ax.get_legend() is None or not labels:
        return
    ax.get_legend().remove()
    widest = max(map(len, labels))
    columns = max(1, min(_ACROSS, len(labels), int(16 * figure.get_figwidth() / (widest + 8))))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, fontsize=8, frameon=False, handlelength=2.6
    )
    figure.set_figheight(figure.get_figheight() + 0.17 * -(-len(labels) // columns))


def swatch(style: Style) -> str:
    """Return a small SVG picture of a method's line and marker, for tables and headings."""
    dash = f' stroke-dasharray="{_STROKES[style.dash]}"' if _STROKES[style.dash] else ""
    return (
        '<svg class="key" viewBox="0 0 26 10" aria-hidden="true">'
        f'<path d="M1 5H25" stroke="{style.colour}" stroke-width="2"{dash}/>'
        f'<path d="{_SHAPES[style.marker]}" fill="{style.colour}"/></svg>'
    )
