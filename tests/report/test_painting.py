"""A method has one colour, line and marker, in every figure and table of a page."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from holdfast.analyses.result import bars
from holdfast.experiment.results import Results
from holdfast.figures import move_legend, paint, plain, shorten
from holdfast.palette import COLOURS, INK, OTHER, style, styles
from holdfast.report.painting import swatch

NAMES = ["Main", "Grad", "_b $x$", "Other"]
NEUTRAL = {"#000000", "#ffffff", INK, OTHER}  # axes, letters, and bars of what is no method


def test_lines_and_bars_of_methods_get_their_styles_whoever_drew_them() -> None:
    known = styles(NAMES)
    left, right = Figure().subplots(1, 2)
    for name in reversed(NAMES):
        left.plot([0, 1], [0, 1], label=plain(name))
    left.plot([0, 1], [1, 0], color="#123456", label="no method")
    bars(right, [*NAMES, "all"], [1.0] * 5, [0.5] * 5, [1.5] * 5, "value")
    for axes in (left, right):
        paint(axes, known)
    for line, name in zip(left.lines, reversed(NAMES), strict=False):
        assert (to_hex(line.get_color()), line.get_linestyle(), line.get_marker()) == known[name][:3]
    assert left.lines[-1].get_color() == "#123456"
    colours = [to_hex(patch.get_facecolor()) for patch in right.patches]
    assert colours == [*(known[name].colour for name in NAMES), OTHER]


def test_vertical_bars_are_known_by_the_labels_below_them() -> None:
    axes = Figure().subplots()
    axes.bar(NAMES[:2], [1, 2])
    paint(axes, styles(NAMES))
    assert [to_hex(patch.get_facecolor()) for patch in axes.patches] == [style(0).colour, style(1).colour]


def test_legends_stand_below_the_axes_and_long_names_are_cut() -> None:
    figure = Figure(figsize=(4.8, 3.2), layout="constrained")
    axes = figure.subplots()
    for place in range(9):
        axes.plot([0, 1], [0, place], label=f"a method with a very long name, number {place}")
    axes.legend()
    before = figure.get_figheight()
    move_legend(figure, axes)
    assert axes.get_legend() is None
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == 9
    assert max(map(len, labels)) <= 30
    assert figure.get_figheight() > before, "the axes stay as tall as they were"
    axes.set_yticks([0, 1], ["short", "x" * 500])
    shorten(axes)
    assert [len(tick.get_text()) for tick in axes.get_yticklabels()] == [5, 30]


def test_a_cut_name_does_not_end_in_half_an_escape() -> None:
    axes = Figure().subplots()
    axes.set_yticks([0], [plain("x" * 28 + "$" + "y" * 9)])
    shorten(axes)
    assert axes.get_yticklabels()[0].get_text() == "x" * 28 + "…"


def test_swatches_of_all_styles_differ() -> None:
    every = [swatch(style(place)) for place in range(29)]
    assert len(set(every)) == 29
    assert swatch(style(29)) == every[1], "only then do they repeat"


@pytest.mark.slow
def test_a_page_has_one_colour_a_method_and_no_others(page: Path, small_results: Path) -> None:
    results, text = Results(small_results), page.read_text(encoding="utf-8")
    known = styles([results.main, *results.methods()])
    drawings = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)"', text)
    assert len(drawings) > 6
    drawn = {colour for one in drawings for colour in _colours(base64.b64decode(one).decode())}
    assert drawn <= {*COLOURS, *NEUTRAL}, "no drawing has colours of its own"
    for name, own in known.items():
        keys = re.findall(rf'<svg class="key"[^>]*>((?:(?!</svg>).)*)</svg> (?:<a[^>]*>)?{re.escape(name)}<', text)
        assert len(keys) > 1, name
        assert set().union(*map(_colours, keys)) == {own.colour}, name


def _colours(svg: str) -> set[str]:
    return set(re.findall(r"#[0-9a-f]{6}\b", svg))
