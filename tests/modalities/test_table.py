"""Rows of tables for readers: sentences that claim what is proven and no more, pictures, and the gallery."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.columns import Cell, Column
from holdfast.explaining import explain_cases
from holdfast.explanation import HELD, MOVED, Explanation
from holdfast.modalities.bars import bars_figure
from holdfast.modalities.modality import Modality
from holdfast.modalities.rows import described, plain_cells, sentence
from holdfast.modalities.shown import Shown
from holdfast.modalities.source import RowSource, Source
from holdfast.templates import kept, templates


@cache
def _explained(row: int = 17, top: int = 3) -> Explanation:
    table, model = hf.data.adult(), hf.data.adult_trees()
    cases = model.ask(table.x[row : row + 1], features=table.columns.features())
    return explain_cases(cases, "random", hf.Random(0), hf.Judge(), top)[0]


def _said(explanation: Explanation) -> str:
    return sentence(explanation, hf.data.adult().columns, hf.data.adult_trees())


def test_a_bracket_is_said_as_one() -> None:
    one = replace(_explained(), proven=(True, False), lower=(1.0, 1.25))
    assert one.radius[HELD] == pytest.approx(1.45, abs=0.01)
    assert _said(one).endswith("the other five columns must change by a length of 1.25 to 1.45 scales.")
    assert one.bound_text(MOVED) == "exact"
    assert one.bound_text(HELD) == "upper bound, at least 1.25"
    assert _said(replace(one, lower=(0.0, 0.0))).endswith("by a length of at most 1.45 scales.")


def test_no_proof_is_claimed_where_there_is_none() -> None:
    lost = replace(_explained(), radius=(math.inf, math.inf), new_class=(-1, -1), proven=(False, False))
    lost = replace(lost, lower=(0.0, 0.0))
    said = _said(lost)
    assert said.startswith(
        "<=50K; no change of workclass, education and capital gain alone, within their ranges, was found"
    )
    assert said.endswith("no change of the other five columns was found that makes it >50K, which is no proof.")
    assert "longer than 2 scales, which" in _said(replace(lost, lower=(0.0, 2.0)))
    proven = _said(replace(lost, proven=(True, True)))
    assert "was found" not in proven
    assert proven.endswith("no change of the other five columns within their ranges makes it >50K.")


def test_a_target_is_named_and_several_classes_are_not_confused() -> None:
    one = _explained()
    assert _said(replace(one, target=1, radius=(1.0, math.inf), proven=(True, True))).endswith("makes it >50K.")
    three = replace(one, classes=("<=50K", ">50K", "other"), radius=(1.0, math.inf), proven=(True, True))
    assert _said(three).endswith("changes the class.")


def test_round_numbers_lead_to_the_same_class() -> None:
    table, model = hf.data.adult(), hf.data.adult_trees()
    for row in (1, 3, 5, 17):
        cases = model.ask(table.x[row : row + 1], features=table.columns.features())
        one = explain_cases(cases, "random", hf.Random(0), hf.Judge(), 8)[0]
        assert one.witness is not None
        assert float((one.witness[MOVED] - one.x).norm()) == pytest.approx(one.radius[MOVED])
        assert int(model(one.witness[:1]).argmax()) == one.new_class[MOVED]
        assert _said(one).endswith(("Nothing else changes.", "There are no other columns that could change."))


def test_cells_are_the_columns_in_order() -> None:
    one = described(_explained(), hf.data.adult().columns, hf.data.adult_trees())
    assert [cell.rank for cell in one.cells] == [*range(1, 9), None, None]
    assert [cell.name for cell in one.cells[:3]] == ["workclass", "education", "capital_gain"]
    by_name = {cell.name: cell for cell in one.cells}
    assert (by_name["capital_gain"].text, by_name["age"].text) == ("$0", "26 years")
    assert by_name["capital_gain"].after_text == "$8,614"
    assert by_name["marital_status"].amount_text == "another category"
    assert by_name["marital_status"].plain["becomes"]["scales"] is None
    lengths = [cell.amount or 0.0 for cell in one.cells if cell.rank and cell.rank > one.size]
    length = math.sqrt(sum(1.0 if math.isnan(one) else one**2 for one in lengths))
    assert length == pytest.approx(one.radius[HELD])


def test_pictures_of_odd_rows(tmp_path: Path) -> None:
    one = described(_explained(), hf.data.adult().columns, hf.data.adult_trees())
    long = replace(
        one.cells[0], name="a name that goes on and on" * 3, text="$x_1$ \\frac " * 9, after_text="y" * 99, amount=0.1
    )
    many = replace(one, cells=(long, *one.cells[1:], *(replace(one.cells[-1], rank=9 + n) for n in range(60))))
    still = replace(one, cells=one.cells[-2:], extra=())
    bars_figure([one, many, still], "row 1 of $a$").save(tmp_path / "rows.png")
    assert (tmp_path / "rows.png").stat().st_size > 20_000


def test_the_gallery_shows_rows_even_without_columns() -> None:
    modality = Modality.registry.make("table")
    one = _explained()
    for given in (one, described(one, hf.data.adult().columns, hf.data.adult_trees())):
        shown = modality.shown(given, "Greedy <1>")
        assert len([cell for cell in shown.cells if cell.rank]) == 8
        example = {"name": "row 17", "label": "<=50K", "image": "", "explanations": [shown]}
        module = templates().get_template(modality.template).make_module({"modality": modality})
        html = str(module.example(example))  # type: ignore[attr-defined]
        assert html.count('class="relevant"') == 3
        assert html.count('class="other"') == 5
        assert "Greedy &lt;1&gt;" in html
        widths = [float(width) for width in re.findall(r'<i style="width: ([0-9.]+)%">', html)]
        lengths = [cell.length for cell in shown.cells if cell.amount is not None]
        assert widths == [round(100 * length / max(lengths), 1) for length in lengths], "bars as long as the changes"
        assert max(widths) == 100
        card = str(module.picture(shown, "row 17"))  # type: ignore[attr-defined]
        assert card.count("<li class=") < html.count("<li class=")
    assert plain_cells(one)[2].amount == pytest.approx(8614 / 7451.94)
    assert plain_cells(replace(one, moves=None))[2].amount is None


def test_columns_that_do_not_change_are_counted() -> None:
    cells = [Cell(f"c{rank}", rank, 0.0, "0") for rank in range(1, 11)]
    for place in (1, 8):
        cells[place] = replace(cells[place], after_text="1", amount=math.nan)
    cells.append(Cell("fixed", None, 0.0, "0"))
    assert [cell.rank for cell in kept(cells, 1, 3)] == [1, 2, 3, 4, 5, 9]
    assert [cell.rank for cell in kept(cells, 1, 0)] == [1, 2, 9]
    assert [cells[place].length for place in (0, 1)] == [0.0, 1.0], "another category counts as 1"
    module = templates().get_template("row.html").make_module({})
    shown = Shown("t", (), cells=tuple(cells), top=1)
    assert "and 5 more that do not change" in str(module.bars(shown, 3))  # type: ignore[attr-defined]
    assert "and 1 more that does not change" in str(module.bars(shown, 7))  # type: ignore[attr-defined]


def test_options_find_their_modality() -> None:
    row = Source(rows=RowSource(row=1), model="adult-trees")
    assert Modality.of(row).name == "table"
    assert Modality.of(Source(digit=1)).name == "image"
    with pytest.raises(hf.HoldfastError, match="--photo and --row name different inputs"):
        Modality.of(Source(photo=1, rows=RowSource(row=1)))


def test_values_and_amounts_for_readers() -> None:
    size = Column("size", "ordered", categories=("S", "M", "L"), scale=0.8, scaled_by="sd")
    columns = hf.Columns((size, Column("income", low=0, high=9e4, scale=1e4, unit="€")))
    x = columns.encode({"size": "S", "income": 38_123.456789})
    changes = columns.changes(x, columns.encode({"size": "L", "income": 40_000}))
    assert [one.scales_text for one in changes] == ["+2.5 sd (+2 places)", "+0.19 × 10,000"]
    cases = columns.decode(x)[0]
    assert torch.isfinite(x).all()
    assert cases["size"] == "S"
