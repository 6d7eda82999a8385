"""Figures: shown by notebooks, saved whole or not at all, in one style whatever the caller has set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import holdfast as hf
from holdfast.figures import Plot, cut, house, plain


def _drawn(title: str = "a title") -> Plot:
    plot = Plot(3, 2)
    with house():
        [axes] = plot.panels()
        axes.plot([0, 1], [1, 2])
        axes.set_title(plain(title))
    return plot


def test_a_notebook_shows_it() -> None:
    assert _drawn()._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "jpg", "PNG"])
def test_it_is_saved_in_the_format_of_the_suffix_and_twice_the_same(suffix: str, tmp_path: Path) -> None:
    files = [tmp_path / "new" / f"{number}.{suffix}" for number in (1, 2)]
    for file in files:
        _drawn().save(str(file))
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "jpg": b"\xff\xd8"}[suffix.lower()]
    assert files[0].read_bytes().startswith(begins)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("figure", "cannot write figure: its suffix must be a format of a figure, one of .*png"),
        ("figure.html", "cannot write figure.html: its suffix must be a format"),
        ("", "its suffix must be a format"),
        ("a\nb.txt", r"cannot write 'a\\nb.txt': its suffix"),
        ("a\0b.png", "cannot write"),
        ("/dev/null/figure.png", "cannot write /dev/null/figure.png"),
        (7, "a figure is saved to a path, such as 'figure.png', got int"),
        (b"figure.png", "got bytes"),
    ],
)
def test_a_bad_path_is_one_sentence(path: Any, said: str) -> None:
    with pytest.raises(hf.HoldfastError, match=said):
        _drawn().save(path)


def test_a_folder_is_refused_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "figure.png").mkdir()
    with pytest.raises(hf.HoldfastError, match="not a regular file"):
        _drawn().save(tmp_path / "figure.png")
    assert [one.name for one in tmp_path.iterdir()] == ["figure.png"]


def test_a_figure_that_is_too_large_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(hf.HoldfastError, match=r"cannot draw .*figure.png: Image size"):
        Plot(width=100_000).save(tmp_path / "figure.png")
    assert list(tmp_path.iterdir()) == []


def test_settings_of_the_caller_change_nothing_and_are_left_as_they_were() -> None:
    expected = _drawn()._repr_png_()
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "text.color": "white", "savefig.facecolor": "black"}):
        assert _drawn()._repr_png_() == expected
        assert mpl.rcParams["font.size"] == 30


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    _drawn("$x^2$ <script>alert(1)</script> \x1b[31m _a_ \\frac{")
    plot = _drawn("$x^2$ <script> \x1b[31m")
    plot.save(tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "$x^2$" in text
    assert r"\x1b[31m" in text


def test_letters_that_the_font_lacks_give_no_warning() -> None:
    assert _drawn("年齢")._repr_png_()


def test_long_names_are_cut() -> None:
    assert cut("a" * 40) == "a" * 29 + "…"
    assert cut("a" * 28 + r"\$b") == "a" * 28 + "…", "no half of an escaped dollar is left"


def test_pyplot_is_not_imported() -> None:
    code = "import sys, holdfast.figures as f; f.Plot()._repr_png_(); print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
