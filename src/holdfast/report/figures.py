"""Figures of a report, as data URLs."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from holdfast.curve import Curve, draw_curves
from holdfast.errors import HoldfastError
from holdfast.experiment.results import Results
from holdfast.figures import move_legend, paint, plain, shorten
from holdfast.modalities import photograph
from holdfast.modalities.photograph import Panel, PhotographModality, panels_figure
from holdfast.modalities.pixels import address
from holdfast.prose import visible
from holdfast.ranking import size_text
from holdfast.report.painting import Styles
from holdfast.table import number

_SIZE = (4.8, 3.2)  # inches; small, so that letters are large enough on a phone


def curves(results: Results, styles: Styles) -> dict[str, str]:
    """Draw the mean curve of every method, and return one data URL for each criterion of the tables, by title.

    Args:
        results: The results of an experiment.
        styles: The style of each method.
    """
    figures = {}
    for measure in results.measures("table"):
        by = {name: results.curve(name, measure) for name in [results.main, *results.methods("table", "ablation")]}
        known = {name: curve for name, curve in by.items() if curve is not None}
        if known:
            better = "higher is better" if measure.higher else "lower is better"
            draw = partial(_curves, by=known, styles=styles, label=visible(measure.name))
            figures[f"{measure.name}: {better}"] = _figure(draw, styles)
    return figures


def analyses(results: Results, styles: Styles) -> dict[str, dict[str, str]]:
    """Draw the figures of analyses, and return data URLs by section key, then by title.

    Args:
        results: The results of an experiment.
        styles: The style of each method.
    """
    return {
        cls.name: {title: _figure(draw, styles) for title, draw in cls.figures(result).items()}
        for cls, result in results.analyses.items()
    }


def _curves(ax: Any, by: Mapping[str, Curve], styles: Styles, label: str) -> None:
    draw_curves(ax, by, styles, main=next(iter(by)), banded=1)  # bands of all methods would hide each other
    ax.set_ylabel(plain(label))
    ax.legend()


def _figure(draw: Callable[[Any], None], styles: Styles) -> str:
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "holdfast",
        "font.family": "sans-serif",
        "font.size": 9,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the browser has a font with the letter
        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        paint(axes, styles)
        shorten(axes)
        move_legend(figure, axes)
        out = io.BytesIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return address("svg+xml", out.getvalue())


def draw_gallery(results: Results, path: Path) -> None:
    """Draw the explanations of every photograph by every method side by side, as in the paper's figures.

    Args:
        results: The results of an experiment on photographs.
        path: The picture to write.

    Raises:
        HoldfastError: The results hold no photographs, or the picture cannot be written.
    """
    rows = []
    for _, by_method in sorted(results.explanations().items() if has_photographs(results) else ()):
        one = next(iter(by_method.values()))
        row = [Panel(photograph.plain(one.x.numpy()), one.classes[one.label], f"{one.probability:.0%}")]
        for method, explanation in by_method.items():
            if method in results.methods("table"):
                moved, fixed = ("none" if math.isinf(radius) else number(radius) for radius in explanation.radius)
                pixels = photograph.outlined(explanation.x.numpy(), explanation.relevant_mask.numpy())
                row.append(Panel(pixels, method, f"only {moved}   held {fixed}"))
        rows.append(row)
    if not rows:
        raise HoldfastError(f"{results.path} holds no photographs to draw side by side.")
    share = f"top {size_text(results.study.top or 0)} of the features"
    panels_figure(rows, f"{share}; smallest change when only they move, and when they are held").save(path)


def has_photographs(results: Results) -> bool:
    """Return whether the results hold explanations of photographs, for ``draw_gallery``."""
    return results.study.modality == PhotographModality.name and bool(results.explanations())
