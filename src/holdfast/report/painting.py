"""One style for each method in all figures and tables of a page, whoever drew them."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.palette import Style

Styles = Mapping[str, Style]
"""Styles by the name of the method."""

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


def swatch(style: Style) -> str:
    """Return a small SVG picture of a method's line and marker, for tables and headings."""
    dash = f' stroke-dasharray="{_STROKES[style.dash]}"' if _STROKES[style.dash] else ""
    return (
        '<svg class="key" viewBox="0 0 36 10" aria-hidden="true">'
        f'<path d="M0 5H36" stroke="{style.colour}" stroke-width="2"{dash}/>'
        f'<path d="{_SHAPES[style.marker]}" fill="{style.colour}"/></svg>'
    )
