"""One style for each method in all figures and tables of a page, whoever drew them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.analyses.result import plain
from holdfast.palette import Style

Styles = Mapping[str, Style]
"""Styles by the name of the method."""

_ACROSS = 3  # columns of a legend
_LONGEST = 30  # letters of a label
_ESCAPE = "\\"  # half of an escaped dollar must not be left at the end
_STROKES = {"-": "", "--": "4.5 2.5", ":": "1.5 2", "-.": "5 2 1.5 2"}
_SHAPES = {
    "o": "M14 5a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "s": "M14.5 1.5h7v7h-7z",
    "^": "M18 .8L22.5 8.8H13.5z",
    "D": "M18 .2L22.8 5L18 9.8L13.2 5z",
    "v": "M18 9.2L22.5 1.2H13.5z",
    "P": "M16.5 .8h3v2.7h2.7v3h-2.7v2.7h-3V6.5H13.8v-3h2.7z",
    "X": "M13.8 2.6L15.6 .8L18 3.2L20.4 .8L22.2 2.6L19.8 5L22.2 7.4L20.4 9.2L18 6.8L15.6 9.2L13.8 7.4L16.2 5z",
    "<": "M13.8 5L21.8 .5V9.5z",
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
    labels = [_cut(label, _LONGEST - 4) for label in labels]
    if ax.get_legend() is None or not labels:
        return
    ax.get_legend().remove()
    widest = max(map(len, labels))
    columns = max(1, min(_ACROSS, len(labels), int(16 * figure.get_figwidth() / (widest + 8))))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, fontsize=8, frameon=False, handlelength=2.6
    )
    figure.set_figheight(figure.get_figheight() + 0.17 * -(-len(labels) // columns))


def shorten(ax: Any) -> None:
    """Cut long labels of ticks and axes, which would leave no room for what is drawn.

    Args:
        ax: Axes of matplotlib, already drawn on and painted.
    """
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_label_text(_cut(axis.get_label_text(), _LONGEST + 10))
        labels = [tick.get_text() for tick in axis.get_ticklabels()]
        if max(map(len, labels), default=0) > _LONGEST:
            axis.set_ticks(axis.get_ticklocs(), [_cut(label) for label in labels])


def _cut(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip(_ESCAPE)}…"


def swatch(style: Style) -> str:
    """Return a small SVG picture of a method's line and marker, for tables and headings."""
    dash = f' stroke-dasharray="{_STROKES[style.dash]}"' if _STROKES[style.dash] else ""
    return (
        '<svg class="key" viewBox="0 0 36 10" aria-hidden="true">'
        f'<path d="M0 5H36" stroke="{style.colour}" stroke-width="2"{dash}/>'
        f'<path d="{_SHAPES[style.marker]}" fill="{style.colour}"/></svg>'
    )
