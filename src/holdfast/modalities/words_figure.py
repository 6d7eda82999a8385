"""Pictures of texts: words in lines, relevant ones coloured by their place, with the words that replace them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.explanation import HELD, MOVED, SUBSETS, Explanation
from holdfast.figures import Plot, cut, house, plain
from holdfast.modalities.shown import Stretch
from holdfast.palette import INK, SOFT
from holdfast.templates import shade

_WIDTH = 9.2  # inches
_STEP, _MARGIN = 0.27, 0.2  # inches: from one line to the next, and at the edges
_SIZE = 9.5
_LONGEST = 60  # letters of one word
_LINES = 60  # lines of a text that are shown
_MARK = (0.918, 0.345, 0.047)


def words_figure(explanations: Sequence[Explanation], texts: Sequence[Sequence[Stretch]]) -> Plot:
    """Draw the text as each method explains it, one below the other.

    Args:
        explanations: Explanations of the same text.
        texts: The text of each, split at its relevant words.
    """
    with house():
        wide = Plot(_WIDTH, 1, layout=None)
        lines = [_lines(wide, text) for text in texts]
        heights = [(len(one) + 2.5) * _STEP for one in lines]
        figure = Plot(_WIDTH, sum(heights) + _MARGIN, layout=None)
        axis: Any = figure.add_axes((0, 0, 1, 1))
        axis.set_axis_off()
        axis.set_xlim(0, _WIDTH)
        axis.set_ylim(figure.get_figheight(), 0)  # from the top, in inches
        at = _MARGIN
        for explanation, given, height in zip(explanations, lines, heights, strict=True):
            _panel(axis, at, explanation, given)
            at += height
    return figure


_Line = list[tuple[float, str, Stretch | None]]  # where each piece begins, in inches, and what it is


def _panel(axis: Any, at: float, explanation: Explanation, lines: Sequence[_Line]) -> None:
    head = f"{explanation.prediction}, {explanation.question} {explanation.size} words by {explanation.method}"
    _write(axis, _MARGIN, at, cut(plain(head), 110), INK, weight="bold")
    count = sum(stretch is not None for line in lines for _, _, stretch in line)
    for number, line in enumerate(lines):
        for x, text, stretch in line:
            box = None
            if stretch is not None and stretch.place is not None:
                box = {"facecolor": (*_MARK, 0.6 * shade(stretch.place, count)), "edgecolor": "none", "pad": 1.5}
            _write(axis, x, at + (number + 1) * _STEP, text, INK, bbox=box)
    told = [f"{SUBSETS[k]}: {explanation.radius_text(k)}, {explanation.change_text(k)}" for k in (MOVED, HELD)]
    _write(axis, _MARGIN, at + (len(lines) + 1) * _STEP, cut(plain("; ".join(told)), 130), SOFT)


def _lines(figure: Plot, text: Sequence[Stretch]) -> list[_Line]:
    """Break a text into lines that fit the width."""
    lines: list[_Line] = [[]]
    x, space = _MARGIN, _width(figure, "a a") - _width(figure, "aa")
    for word, stretch, apart in _words(text):
        x += space if apart and lines[-1] else 0
        width = _width(figure, word)
        if x + width > _WIDTH - _MARGIN and lines[-1]:
            lines.append([])
            x = _MARGIN
        lines[-1].append((x, word, stretch))
        x += width
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], [(_MARGIN, f"and {len(lines) - _LINES} more lines", None)]]
    return lines


def _words(text: Sequence[Stretch]) -> Iterator[tuple[str, Stretch | None, bool]]:
    """Return the words of a text, each with its stretch if it is relevant, and whether a space is before it."""
    apart = False
    for stretch in text:
        if stretch.place is None:
            for number, word in enumerate(stretch.text.split()):
                apart = apart or number > 0 or stretch.text[:1].isspace()
                for piece in textwrap.wrap(word, _LONGEST):  # very long ones in pieces
                    yield plain(piece), None, apart
                    apart = False
            apart = stretch.text[-1:].isspace()
        else:
            new = f" → {stretch.replacement}" if stretch.replacement else ""
            yield cut(plain(f"{stretch.text}{new}"), _LONGEST), stretch, apart
            apart = False


def _width(figure: Plot, text: str) -> float:
    """Return the width of a text in inches."""
    drawn = figure.text(0, 0, text, fontsize=_SIZE)
    width: float = drawn.get_window_extent().width / figure.dpi
    drawn.remove()
    return width


def _write(axis: Any, x: float, y: float, text: str, colour: str, **more: Any) -> None:
    axis.text(x, y, text, color=colour, fontsize=_SIZE, va="center", **more)
