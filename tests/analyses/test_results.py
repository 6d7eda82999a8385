"""Tables and plots of all analyses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import holdfast as hf
from analyses.small import small_cases
from holdfast import analyses
from holdfast.analyses.agreement import Marks, agreement
from holdfast.analyses.diagnostics import diagnostics
from holdfast.analyses.reference_values import reference_values
from holdfast.analyses.result import Row, bars
from holdfast.analyses.runtime import runtime
from holdfast.analyses.sanity import sanity
from holdfast.analyses.sensitivity import sensitivity
from holdfast.palette import COLOURS


def test_rows_of_a_result_have_the_same_columns_and_no_nan() -> None:
    cases = small_cases()
    two = {"Grad": hf.Grad(), "Random": hf.Random()}
    rankings = {name: explainer(cases) for name, explainer in two.items()}
    areas = {"S̄r": {name: hf.trace(cases, ranking, hf.Insertion(0.0)).auc() for name, ranking in rankings.items()}}
    marks = Marks({str(case): {"x": frozenset({case})} for case in range(4)})
    results: list[analyses.Result] = [
        analyses.significance(areas, "Grad", {"S̄r": True}),
        analyses.significance({"S̄r": {name: area[:1] for name, area in areas["S̄r"].items()}}, "Grad", {"S̄r": True}),
        reference_values(cases, rankings, [0.0]),
        sanity(cases, two),
        sensitivity(cases, two, samples=2),
        agreement(rankings, list("0123"), marks),
        runtime(cases, two, repeats=1),
        diagnostics(
            cases, rankings["Grad"], sizes=(0.1, 0.3), judge=hf.MinNorm(), search=hf.MinNorm(steps=10), seeds=2
        ),
    ]
    kinds = [kind for kind in vars(analyses).values() if isinstance(kind, type) and issubclass(kind, analyses.Result)]
    assert {type(result) for result in results} == set(kinds) - {analyses.Result}
    for result in results:
        rows = result.table()
        assert len({tuple(row) for row in rows}) == 1
        assert not any(isinstance(value, float) and math.isnan(value) for row in rows for value in row.values())
        result.draw(Figure().add_subplot())
        assert result.plot()._repr_png_()
        assert repr(result).splitlines()[0] == type(result).__name__
        assert "tensor(" not in repr(result)
        assert max(map(len, repr(result).splitlines())) < 130


@dataclass(frozen=True)
class _Named(analyses.Result):
    """A result with hostile names, and one that a dataclass would print whole."""

    names: tuple[str, ...]
    numbers: torch.Tensor

    def table(self) -> list[Row]:
        pairs = zip(self.names, self.numbers.tolist(), strict=True)
        return [{"method": name, "number": number, "sure": True, "unknown": None} for name, number in pairs]

    def draw(self, ax: Any) -> None:
        values = self.numbers.tolist()
        bars(ax, list(self.names), values, values, values, "number")


def test_the_text_of_a_result_is_a_short_table() -> None:
    result = _Named(("<script>\x1b", "b" * 200), torch.tensor([1.0, 2.0]))
    assert "\x1b" not in repr(result)
    assert "numbers=" not in repr(result)
    assert repr(_Named(("a",), torch.ones(1))).splitlines() == [
        "_Named",
        "method  number  sure  unknown",
        "a       1.00    True",
    ]
    many = _Named(tuple(map(str, range(40))), torch.arange(40.0))
    assert repr(many).splitlines()[-1] == "… 28 more rows"
    assert repr(_Named((), torch.ones(0))) == "_Named\nno rows"


def test_a_figure_of_a_result_gives_each_method_its_style(tmp_path: Path) -> None:
    result = _Named(("$a$", "<script>", "_c"), torch.tensor([1.0, 2.0, 3.0]))
    plot = result.plot()
    assert [patch.get_facecolor() for patch in plot.axes[0].patches] == [to_rgba(COLOURS[n]) for n in range(3)]
    plot.save(tmp_path / "figure.svg")
    assert "<script>" not in (tmp_path / "figure.svg").read_text()
