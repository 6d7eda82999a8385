from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.modalities.photograph import Panel, amplified, heated, outlined, panels_figure, plain

X = np.random.default_rng(0).random((3, 64, 64))
SQUARE = np.zeros((1, 64, 64), dtype=bool)
SQUARE[:, 16:32, 16:32] = True


def test_relevant_features_keep_their_colours_inside_a_line() -> None:
    shown = outlined(X, SQUARE)
    inner = np.s_[18:30, 18:30]
    np.testing.assert_allclose(shown[inner], plain(X)[inner])
    outside = shown[40:, 40:]
    np.testing.assert_allclose(outside[..., 0], outside[..., 1])
    line = shown[16, 16:32]
    assert bool((line == line[0]).all()), "one colour all along"
    assert line[0, 0] > line[0, 2], "orange"


def test_scattered_pixels_get_no_lines() -> None:
    scattered = np.random.default_rng(1).random((1, 64, 64)) < 0.2
    shown = outlined(X, scattered)
    np.testing.assert_allclose(shown[scattered[0]], plain(X)[scattered[0]])


def test_heat_rises_with_the_order() -> None:
    heat = np.linspace(0, 1, 64 * 64).reshape(1, 64, 64)
    grey = np.full((3, 64, 64), 0.5)
    light = heated(grey, heat).sum(-1)
    assert light[-1, -1] > light[32, 32] > light[0, 0] - 0.5
    assert light.min() >= 0
    assert light.max() <= 3


def test_small_changes_are_made_large_enough_to_see_by_a_round_number() -> None:
    move = np.zeros((3, 64, 64))
    move[:, :8, :8] = 0.003
    move[:, 8:16, :8] = -0.003
    pixels, times = amplified(move)
    assert times == 100
    np.testing.assert_allclose(pixels[:8, :8], 0.8)
    np.testing.assert_allclose(pixels[8:16, :8], 0.2)
    np.testing.assert_allclose(pixels[32:, 32:], 0.5)
    still, once = amplified(np.zeros((3, 64, 64)))
    assert once == 1
    assert bool((still == 0.5).all())


def test_bad_figures_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(hf.HoldfastError, match="no pictures"):
        panels_figure([])
    with pytest.raises(hf.HoldfastError, match=r"cannot write .*its suffix"):
        panels_figure([[Panel(plain(X))]]).save(tmp_path / "x.nothing")
