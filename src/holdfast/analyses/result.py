"""Results of analyses: rows for a table, a plot, and means with intervals."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from torch import Tensor

from holdfast.analyses.intervals import Sampled, bootstrap, bootstraps
from holdfast.palette import INK, OTHER, styles
from holdfast.prose import counted
from holdfast.table import Cell, Estimate, Table, text

if TYPE_CHECKING:
    from holdfast.figures import Plot  # imports matplotlib

_ROWS, _WIDTH = 12, 110  # rows and letters of a result as text

Row = dict[str, Any]
"""A row of a table: values by column."""


class Result(ABC):
    """The result of an analysis: a frozen dataclass of tensors.

    ``pandas.DataFrame(result.table())`` makes a data frame of it, ``result.plot()`` a figure.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]  # otherwise dataclass prints whole tensors

    @abstractmethod
    def table(self) -> list[Row]:
        """Return flat rows with the same columns; None where a value is undefined."""

    @abstractmethod
    def draw(self, ax: Any) -> None:
        """Draw the result on axes.

        Args:
            ax: Axes of matplotlib.
        """

    def plot(self) -> Plot:
        """Return a figure of the result: notebooks show it, ``save`` writes it."""
        from holdfast.figures import Plot, house  # imports matplotlib

        plot = Plot()
        with house():
            [ax] = plot.panels()
            self.draw(ax)
            finish(plot, ax, self.table())
        return plot

    def __repr__(self) -> str:
        rows = self.table()
        heads = tuple(rows[0]) if rows else ()
        cells = tuple(tuple(_cell(row[head]) for head in heads) for row in rows[:_ROWS])
        widths = [max(len(text(cell)) for cell in (head, *column)) for head, *column in zip(heads, *cells, strict=True)]
        kept = max(1, sum(end <= _WIDTH for end in accumulate(width + 2 for width in widths)))
        more = [f"… {counted(len(rows) - _ROWS, 'more row')}"] if len(rows) > _ROWS else []
        more += [f"… {counted(len(heads) - kept, 'more column')}: see table()"] if len(heads) > kept else []
        shown = Table("", "", heads[:kept], tuple(row[:kept] for row in cells)).plain() if heads else "no rows"
        return "\n".join([type(self).__name__, shown, *more])


def finish(figure: Plot, ax: Any, rows: Sequence[Row]) -> None:
    """Give methods their styles, and make room for what was drawn.

    Args:
        figure: The figure.
        ax: Its axes, already drawn on.
        rows: The table of the result, whose methods are styled.
    """
    from holdfast.figures import move_legend, paint, shorten  # imports matplotlib

    paint(ax, styles(str(row[key]) for row in rows for key in ("method", "explainer") if key in row))
    bars_drawn = [len(one.patches) for one in ax.containers if getattr(one, "patches", None)]
    if bars_drawn:
        figure.set_figheight(max(1.6, 0.9 + 0.27 * max(bars_drawn)))
    shorten(ax)
    move_legend(figure, ax)


def _cell(value: Any) -> Cell:
    return value if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) else str(value)


def known(value: float | Tensor) -> float | None:
    """Return a value for a table: a float, or None if it is NaN."""
    number = float(value)
    return None if math.isnan(number) else number


def estimate(values: Tensor) -> Estimate | None:
    """Return the mean of ``values [B]`` with its 95 % interval. NaN is left out; None if nothing else is there."""
    values = values[~values.isnan()]
    return Estimate(float(values.double().mean()), *bootstrap(values)) if len(values) else None


def means(values: Tensor) -> tuple[list[float], list[float], list[float]]:
    """Return the means of the rows of ``values [M, B]`` and both ends of their 95 % intervals. NaN is left out."""
    rows = [row[~row.isnan()] for row in values]
    ends = bootstraps([Sampled(row) for row in rows])
    middle = [float(row.mean()) for row in rows]
    return middle, [low for low, _ in ends], [high for _, high in ends]


def bars(ax: Any, names: list[str], values: list[float], low: list[float], high: list[float], label: str) -> None:
    """Draw horizontal bars with intervals, the first one on top. NaN is not drawn.

    Args:
        ax: Axes of matplotlib.
        names: The name of each bar.
        values: The length of each bar.
        low: The lower end of each interval.
        high: The upper end of each interval.
        label: The label of the axis of values.
    """
    from matplotlib.patheffects import withStroke  # whoever has axes has loaded matplotlib

    from holdfast.figures import plain

    places = range(len(names))
    below = [value - least for value, least in zip(values, low, strict=True)]
    above = [most - value for value, most in zip(values, high, strict=True)]
    drawn = ax.barh(places, values, xerr=[below, above], color=OTHER, ecolor=INK, capsize=2)
    for part in drawn.errorbar.get_children():  # visible on dark bars too
        part.set(path_effects=[withStroke(linewidth=3, foreground="white")])
    for cap in drawn.errorbar.lines[1]:
        cap.set(markerfacecolor=INK)
    ax.set_yticks(list(places), [plain(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(label)


def lines(ax: Any, names: Sequence[str], along: Sequence[Any], values: Sequence[Sequence[float]]) -> None:
    """Draw one line for each method, in its own colour, with its own marker.

    Args:
        ax: Axes of matplotlib.
        names: The names of the methods.
        along: The places of the points.
        values: The values of each method at these places.
    """
    from holdfast.figures import plain  # whoever has axes has loaded matplotlib

    for (name, style), row in zip(styles(names).items(), values, strict=True):
        ax.plot(along, row, color=style.colour, linestyle=style.dash, marker=style.marker, label=plain(name))
