"""Pictures of rows of tables: a line for each column, with its value and a bar for its change."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from holdfast.columns import Cell
from holdfast.explanation import HELD, MOVED, Explanation
from holdfast.figures import Plot
from holdfast.modalities.rows import plain_cells
from holdfast.palette import INK, LINE, OTHER, RELEVANT, SOFT

_WIDTH = 9.2  # inches
_STEP = 0.25  # inches from one line to the next
_NAME, _VALUE, _BARS, _LONGEST = 0.045, 0.245, 0.445, 0.27  # shares of the width
_WORDS, _LABEL = 25, 36  # letters of a value and of a label that fit
_LEGEND = "Bars: the length of a change in scales, such as standard deviations; another category counts as 1."
_UNITS = "Bars: the length of a change in the units of the input."
_UNCHANGED = 8  # columns that do not change and are shown all the same


def bars_figure(explanations: Sequence[Explanation], title: str) -> Plot:
    """Draw one panel for each explanation, one below the other.

    Args:
        explanations: Explanations of the same row.
        title: The row, for the heading.
    """
    panels = [_lines(one) for one in explanations]
    panels[-1].append((_UNITS if explanations[0].witness is None else _LEGEND, SOFT, "normal"))
    largest = max((cell.length for one in explanations for cell in _cells(one)), default=0) or 1
    height = sum(len(lines) for lines in panels) * _STEP + 0.3
    figure = Plot(_WIDTH, height, layout=None)
    axis: Any = figure.add_axes((0, 0, 1, 1))
    axis.set_axis_off()
    axis.set_xlim(0, 1)
    axis.set_ylim(height, 0)  # from the top, in inches
    at = 0.3
    for explanation, lines in zip(explanations, panels, strict=True):
        for line in lines:
            if isinstance(line, Cell):
                _draw_cell(axis, at, line, explanation, largest)
            else:
                text, colour, weight = line
                _write(axis, _NAME - 0.025, at, text.replace("{title}", title), colour, weight=weight, size=9)
            at += _STEP
    return figure


_Heading = tuple[str, str, str]


def _cells(explanation: Explanation) -> tuple[Cell, ...]:
    return explanation.cells or plain_cells(explanation)


def _lines(explanation: Explanation) -> list[Cell | _Heading]:
    """Return the lines of a panel: headings with their colour and weight, and columns."""
    cells, top = _cells(explanation), explanation.size
    relevant = [cell for cell in cells if cell.rank is not None and cell.rank <= top]
    others = [cell for cell in cells if cell.rank is not None and cell.rank > top]
    fixed = [cell for cell in cells if cell.rank is None]
    head = f"{{title}}: {explanation.prediction}, {explanation.question}"
    lines: list[Cell | _Heading] = [(_cut(head, 110), INK, "bold")]
    lines += [
        (
            f"{len(relevant)} relevant by {explanation.method}. Only these move: {_told(explanation, MOVED)}",
            RELEVANT,
            "bold",
        ),
        *relevant,
    ]
    if others:
        lines += [(f"all others, with the relevant ones held: {_told(explanation, HELD)}", SOFT, "bold")]
        kept = [cell for cell in others if cell.amount is not None]
        kept += [cell for cell in others if cell.amount is None][:_UNCHANGED]
        lines += [cell for cell in others if cell in kept]
        lines += _more(len(others) - len(kept), "do not change")
    if fixed:
        lines += [("fixed: never change", SOFT, "bold"), *fixed[:_UNCHANGED], *_more(len(fixed) - _UNCHANGED, "")]
    for name, words in explanation.extra:
        wrapped = textwrap.wrap(words if name == "in words" else f"{name}: {words}", 118)
        lines += [("", INK, "normal"), *((part, INK, "normal") for part in wrapped)]
    return [*lines, ("", INK, "normal")]


def _more(count: int, what: str) -> list[_Heading]:
    return [(f"    and {count:,} more {what}".rstrip(), SOFT, "normal")] if count > 0 else []


def _told(explanation: Explanation, which: int) -> str:
    """Return a radius and the class that it leads to, in words."""
    new = explanation.new_class[which]
    if new < 0:
        return "proven that no change does it" if explanation.proven[which] else "no change found"
    radius = f"{explanation.radius[which]:.3g} ({explanation.bound_text(which)})"
    return f"{radius} → {explanation.classes[new]} ({explanation.new_probability[which]:.0%})"


def _draw_cell(axis: Any, at: float, cell: Cell, explanation: Explanation, largest: float) -> None:
    relevant = cell.rank is not None and cell.rank <= explanation.size
    colour = RELEVANT if relevant else OTHER
    axis.plot([_NAME - 0.025, 0.985], [at + _STEP / 2] * 2, color=LINE, linewidth=0.5, zorder=0)
    ink = SOFT if cell.rank is None else INK
    _write(axis, _NAME - 0.007, at, "" if cell.rank is None else str(cell.rank), SOFT, ha="right")
    _write(axis, _NAME, at, _cut(cell.title, _WORDS), ink)
    _write(axis, _VALUE, at, _cut(cell.text, _WORDS), ink)
    if cell.amount is None:
        return
    width = _LONGEST * cell.length / largest
    axis.barh([at], [width], height=0.62 * _STEP, left=_BARS, color=colour, zorder=2)
    amount = f"  {cell.amount_text}" if cell.amount_text else ""
    _write(axis, _BARS + width + 0.008, at, f"→ {_cut(cell.after_text, _LABEL - len(amount))}{amount}", INK)


def _write(axis: Any, x: float, y: float, text: str, colour: str, *, size: float = 8.5, **more: Any) -> None:
    """Write text as it is: dollars begin no formula."""
    axis.text(x, y, text, color=colour, fontsize=size, va="center", parse_math=False, **more)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"
