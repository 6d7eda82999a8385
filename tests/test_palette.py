"""Methods are told apart by colour, in grey, with colour blindness, and by line and marker where colours repeat."""

from __future__ import annotations

from itertools import combinations

import pytest

from colour_vision import VISION, contrast, nearest, nearest_in_grey
from holdfast import palette
from holdfast.palette import COLOURS, DASHES, HATCHES, MARKERS, style, styles

DISTINCT = 20  # in CIELAB; 2 is just noticeable side by side, thin lines need far more
DISTINCT_IN_GREY = 6
DIRECTIONS = [palette.RAISED, palette.LOWERED, palette.UNMOVED]


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_methods_are_distinct(vision: str) -> None:
    assert nearest(list(COLOURS), vision) >= DISTINCT


@pytest.mark.parametrize("vision", VISION)
def test_directions_of_a_change_are_distinct(vision: str) -> None:
    assert nearest(DIRECTIONS, vision) >= DISTINCT
    assert nearest([palette.RELEVANT, palette.OTHER], vision) >= DISTINCT


def test_colours_are_distinct_in_grey() -> None:
    assert nearest_in_grey(list(COLOURS)) >= DISTINCT_IN_GREY
    assert nearest_in_grey(DIRECTIONS) >= 2 * DISTINCT_IN_GREY
    assert nearest_in_grey([palette.RELEVANT, palette.OTHER]) >= 2 * DISTINCT_IN_GREY


def test_colours_are_visible_on_white() -> None:
    assert min(contrast(colour) for colour in COLOURS) >= 2.5
    assert contrast(COLOURS[0]) >= 4.5, "the main method, also as text"
    assert min(contrast(colour) for colour in (palette.INK, palette.SOFT, palette.RELEVANT)) >= 4.5


def test_the_check_finds_colours_that_are_too_near() -> None:
    """Red and green of the same lightness, which are the classic mistake."""
    assert nearest(["#c00000", "#6b6b00"], "full") > DISTINCT
    assert nearest(["#c00000", "#6b6b00"], "protanopia") < nearest(["#c00000", "#6b6b00"], "full")
    assert nearest(["#e8710a", "#7f9c1b"], "deuteranopia") < DISTINCT
    assert nearest_in_grey(["#c2410c", "#1d4ed8"]) < 2 * DISTINCT_IN_GREY


def test_methods_that_share_a_colour_differ_in_line_marker_and_pattern() -> None:
    assert len(DASHES) == len(HATCHES)
    assert len(COLOURS) == len(MARKERS)
    every = [style(place) for place in range(1 + (len(COLOURS) - 1) * len(DASHES))]
    assert [one.colour for one in every].count(COLOURS[0]) == 1, "the main method stands out"
    for one, other in combinations(every, 2):
        assert one.colour != other.colour or (
            one.dash != other.dash and one.marker != other.marker and one.hatch != other.hatch
        )


def test_a_method_keeps_its_style_and_the_main_one_is_first() -> None:
    names = ["main", "a", "b", "a", "main"]
    assert styles(names) == {"main": style(0), "a": style(1), "b": style(2)}
    assert styles(["main", "a"])["a"] == styles(names)["a"]
