"""Figures in one style: shown by notebooks, saved in any format of matplotlib, drawn without pyplot.

Importing this module imports matplotlib, so other rooms import it inside the functions that draw.
"""

from __future__ import annotations

import base64
import io
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from holdfast.errors import HoldfastError, first_line
from holdfast.files import shown, write_bytes
from holdfast.palette import INK, LINE, SOFT, Style
from holdfast.prose import listed, visible

WIDTH, HEIGHT = 6.4, 4.0
"""The size of a figure in inches."""

_DPI = 130
_ACROSS = 3  # columns of a legend
_LONGEST = 30  # letters of a label
_ESCAPE = "\\"  # half of an escaped dollar must not be left at the end
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "holdfast",  # the same figure gives the same file
}
_FONTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Noto Sans Devanagari",
    "Nirmala UI",
    "Noto Sans Thai",
)
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "ps": {"CreationDate": None}}


class Plot(Figure):
    """A figure of matplotlib that notebooks show and that ``save`` writes to a file.

    Draw inside ``with house():``, so that the caller's settings of matplotlib change nothing.

    Args:
        width: The width in inches.
        height: The height in inches.
        layout: None if axes are placed by hand.
    """

    def __init__(
        self, width: float = WIDTH, height: float = HEIGHT, layout: Literal["constrained"] | None = "constrained"
    ):
        super().__init__(figsize=(width, height), facecolor="white", layout=layout)
        FigureCanvasAgg(self)

    def panels(self, rows: int = 1, columns: int = 1) -> list[Axes]:
        """Add axes in the style of the house, and return them row by row.

        Args:
            rows: The number of rows.
            columns: The number of columns.
        """
        with house():
            return list(self.subplots(rows, columns, squeeze=False).flat)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the figure to a file, whole or not at all.

        Args:
            path: The file to write. Its suffix is the format: ``.png``, ``.svg``, ``.pdf`` or another of matplotlib.

        Raises:
            HoldfastError: The format is not known, or the file cannot be written.
        """
        if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
            raise HoldfastError(f"a figure is saved to a path, such as 'figure.png', got {type(path).__name__}.")
        target, known = Path(path), sorted(self.canvas.get_supported_filetypes())
        suffix = target.suffix[1:].lower()
        if suffix not in known:
            raise HoldfastError(
                f"cannot write {shown(target)}: its suffix must be a format of a figure, one of {listed(known, 'or')}."
            )
        try:
            content = self._encoded(suffix)
        except (ValueError, RuntimeError, OSError, MemoryError) as error:
            raise HoldfastError(f"cannot draw {shown(target)}: {first_line(error)}") from error
        write_bytes(target, content)

    @property
    def address(self) -> str:
        """The figure as a PNG picture in a data URL."""
        return f"data:image/png;base64,{base64.b64encode(self._encoded('png')).decode()}"

    def _repr_png_(self) -> bytes:
        return self._encoded("png")

    def _encoded(self, suffix: str) -> bytes:
        out = io.BytesIO()  # matplotlib hides a full disk behind errors of its own
        with house(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks is drawn as a box
            self.savefig(out, format=suffix, dpi=_DPI, metadata=_UNDATED.get(suffix))
        return out.getvalue()


@contextmanager
def house() -> Iterator[None]:
    """Use the style of the house inside the block, whatever the caller's settings of matplotlib are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | {"font.family": ["sans-serif", *_other_scripts()]})
        yield


@cache
def _other_scripts() -> tuple[str, ...]:
    """Return the fonts of this machine that have letters which matplotlib's own font lacks."""
    installed = {font.name for font in fontManager.ttflist}
    return tuple(name for name in _FONTS if name in installed)


def plain(name: str) -> str:
    """Return a name that matplotlib shows as it is, in one line.

    ``$`` would start a formula, a first ``_`` would hide the name, and control characters are not allowed in SVG.
    """
    name = visible(" ".join(name.split()))
    return ("\u200b" + name if name.startswith("_") else name).replace("$", r"\$")


def cut(text: str, most: int = _LONGEST) -> str:
    """Return a plain text with at most so many letters; a longer one ends in an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip(_ESCAPE)}…"


def paint(ax: Any, styles: Mapping[str, Style]) -> None:
    """Give lines and bars that are named after methods the styles of these methods.

    Args:
        ax: Axes of matplotlib, already drawn on. Lines are known by their labels, bars by the labels of their ticks.
        styles: The style of each method, by name.
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
        ax: Its axes, or those of its axes that have a legend.
    """
    handles, labels = ax.get_legend_handles_labels()
    labels = [cut(label) for label in labels]
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
        axis.set_label_text(cut(axis.get_label_text(), 2 * _LONGEST))
        labels = [tick.get_text() for tick in axis.get_ticklabels()]
        if max(map(len, labels), default=0) > _LONGEST:
            axis.set_ticks(axis.get_ticklocs(), [cut(label) for label in labels])
