"""The result of ``compare``: text, HTML, frames, JSON and figures, whatever the names are."""

from __future__ import annotations

import json
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.palette import COLOURS
from toys import small_net

HOSTILE = "$x^2$ <script>alert('x')</script>\x1b[31m \u202e_a_ & \\frac{"


@cache
def _evaluation(name: str = "mine", others: int = 1, cases: int = 6) -> hf.Evaluation:
    model = hf.TorchModel(small_net(), (0, 1))
    x = torch.rand(cases, 12, generator=torch.Generator().manual_seed(0))
    more = {f"other {number}": hf.Random(seed=number) for number in range(others)}
    criteria = {"Robustness-S̄r": hf.RobustnessRest(hf.MinNorm(steps=5)), HOSTILE: "insertion"}
    return hf.compare(model, x, {name: x, **more}, criteria=criteria, sizes=range(1, 12))


class _Tags(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_text_has_a_row_for_each_method_and_the_verdicts() -> None:
    text = repr(_evaluation())
    assert text.startswith("2 methods on 6 cases: areas under the curves (mean, * best mean)\n\nmethod")
    lines = text.splitlines()
    assert lines[3].startswith("mine ")
    assert lines[4].startswith("other 0 ")
    assert "Robustness-S̄r ↑" in lines[2]
    assert "Robustness-S̄r: " in text
    assert "with Holm's correction over 2 comparisons: " in text
    assert "So few cases can show only large differences." in text


def test_the_best_mean_is_marked() -> None:
    result = _evaluation()
    rows = {row["method"]: row["area"] for row in result.table() if row["criterion"] == "Robustness-S̄r"}
    best = max(rows, key=lambda name: rows[name])
    [line] = [line for line in repr(result).splitlines() if line.startswith(best)]
    assert "*" in line


def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    result = _evaluation(HOSTILE)
    text, page = repr(result), result._repr_html_()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b[31m" in text
    parsed = _Tags(page)
    assert parsed.tags == {"p", "b", "div", "table", "tr", "th", "td", "img"}
    assert "<script>alert('x')</script>" in parsed.text
    assert "\x1b" not in page
    result.plot().save(tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text()
    assert "<script" not in drawn
    assert "$x^2$" in drawn


def test_frames_have_one_row_for_each_item() -> None:
    result = _evaluation()
    assert len(result.to_frame()) == 2 * 2
    assert len(result.to_frame("tests")) == 2
    assert len(result.to_frame("curves")) == 2 * 2 * 11
    assert result.to_frame()["area"].notna().all()
    with pytest.raises(hf.HoldfastError, match="there is no part 'other' of an evaluation"):
        result.to_frame("other")  # type: ignore[arg-type]


def test_without_pandas_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(hf.HoldfastError, match="a data frame requires pandas: pip install pandas"):
        _evaluation().to_frame()


def test_the_dict_is_json_without_nan() -> None:
    result = _evaluation(HOSTILE)
    read = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert read["methods"] == [HOSTILE, "other 0"]
    assert read["cases"] == 6
    assert len(read["areas"]) == 4
    assert set(read["verdicts"]) == set(result.criteria)


def test_one_case_is_measured_and_not_tested() -> None:
    result = _evaluation(cases=1)
    assert set(result.verdicts.values()) == {"too few cases to compare."}
    assert "Paired" not in repr(result)
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.plot()._repr_png_()


def test_a_figure_has_a_panel_for_each_criterion_and_a_line_for_each_method() -> None:
    result = _evaluation(others=9)
    plot = result.plot()
    panels = [ax for ax in plot.axes if ax.axison]
    assert [ax.get_title(loc="left").partition(":")[2] for ax in panels] == [" higher is better"] * 2
    for ax in panels:
        lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
        assert len(lines) == 10
        assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 10
    [legend] = plot.legends
    assert {text.get_text() for text in legend.get_texts()} >= {"mine", "other 8"}


def test_a_method_has_the_same_style_in_every_panel_and_the_main_one_stands_out() -> None:
    model = hf.TorchModel(small_net(), (0, 1))
    x = torch.rand(4, 12, generator=torch.Generator().manual_seed(0))
    result = hf.compare(model, x, {"a": x, "b": -x}, main="b", criteria=["insertion", "deletion"])
    widths = {line.get_label(): line.get_linewidth() for line in result.plot().axes[0].lines}
    assert widths["b"] > widths["a"]
    colours = [{line.get_label(): line.get_color() for line in ax.lines} for ax in result.plot().axes]
    assert colours[0] == colours[1]
    assert colours[0]["b"] == COLOURS[0]
