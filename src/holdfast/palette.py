"""Colours, lines and markers: one style for each method, and one colour for each direction of a change.

Colours are distinguishable in grey and with each of the three kinds of colour blindness. ``tests/test_palette.py``
measures this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

COLOURS = ("#c2410c", "#121282", "#21ace4", "#852044", "#669d4d", "#5543d0", "#eb0ba8", "#5c1b5c")
"""Colours of methods, for a white background; the main method has the first one for itself."""

DASHES = ("-", "--", ":", "-.")
"""Line styles of matplotlib: each is used with all colours of the other methods before the next one begins."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
"""Markers of matplotlib, one beside each colour. They move on by one with each line style."""

HATCHES = ("", "///", "...", "xxx")
"""Patterns of bars, one beside each line style."""

RAISED, LOWERED, UNMOVED = "#e8710a", "#1d4ed8", "#fde047"
"""Coordinates that a change raises or lowers, and relevant ones that it leaves as they are."""

RELEVANT, OTHER = "#0f766e", "#a3a8b0"
"""Bars of relevant features, and of all others."""

INK, SOFT, LINE = "#1c1917", "#57534e", "#d6d3d1"
"""Text, less important text, and thin lines."""


class Style(NamedTuple):
    """How one method is drawn, wherever it appears.

    Attributes:
        colour: The colour of its line, markers and bars.
        dash: Its line style, as matplotlib calls it.
        marker: Its marker, as matplotlib calls it.
        hatch: The pattern of its bars, as matplotlib calls it.
    """

    colour: str
    dash: str
    marker: str
    hatch: str


def style(place: int) -> Style:
    """Return the style of one method. Styles of others than the main method repeat after 28 of them.

    >>> style(0)
    Style(colour='#c2410c', dash='-', marker='o', hatch='')
    >>> style(8).colour == style(1).colour, style(1).dash, style(8).dash, style(8).marker
    (True, '-', '--', '^')

    Args:
        place: The place of the method among all methods, from 0 for the main one.
    """
    if place == 0:
        return Style(COLOURS[0], DASHES[0], MARKERS[0], HATCHES[0])
    turn, other = divmod(place - 1, len(COLOURS) - 1)
    colour, line = other + 1, turn % len(DASHES)
    return Style(COLOURS[colour], DASHES[line], MARKERS[(colour + line) % len(MARKERS)], HATCHES[line])


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Return one style for each method, by name.

    Args:
        names: Names of all methods of a page or figure, the main method first. A name that comes again keeps its style.
    """
    return {name: style(place) for place, name in enumerate(dict.fromkeys(names))}
