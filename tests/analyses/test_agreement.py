"""Rankings against the features that people marked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

import holdfast as hf
from analyses.small import ranked
from holdfast.analyses.agreement import Marks, agreement


def _written(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_precision_and_average_precision_by_hand(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "marks.jsonl",
        {"example": "a", "annotator": "x", "features": [0, 2]},
        {"example": "a", "annotator": "y", "features": [0, 3]},
        {"example": "a", "annotator": "z", "features": [0]},
        "",
        {"example": "b", "annotator": "x", "features": [1, 5]},
        {"example": "c", "annotator": "x", "features": []},
    )
    marks = Marks.read(path)
    assert marks.majority("a") == {0}
    assert marks.majority("b") == {1, 5}
    scores = torch.zeros(3, 12)
    scores[0, [2, 0]] = torch.tensor([2.0, 1.0])  # a hit at the second place
    scores[1, [1, 4, 5]] = torch.tensor([3.0, 2.0, 1.0])  # hits at the first and third
    result = agreement({"ours": ranked(scores)}, ["a", "b", "c"], marks, most=3)
    assert result.excluded == ("c",)
    torch.testing.assert_close(result.precision[0], torch.tensor([[0, 1], [1 / 2, 1 / 2], [1 / 3, 2 / 3]]).double())
    torch.testing.assert_close(result.average_precision[0], torch.tensor([1 / 2, (1 + 2 / 3) / 2]).double())
    row = result.table()[0]
    assert row["marked nothing"] == 1
    assert row["p@1"] == 0.5
    assert row["mAP"] == pytest.approx((0.5 + 5 / 6) / 2)
    assert row["F1 between people"] == pytest.approx((0.5 + 2 / 3 + 2 / 3) / 3)
    result.draw(Figure().add_subplot())


def test_more_places_than_features_are_misses(tmp_path: Path) -> None:
    path = _written(tmp_path / "marks.jsonl", {"example": 0, "annotator": "x", "features": list(range(12))})
    found = agreement({"ours": ranked(torch.rand(1, 12))}, [0], Marks.read(path), most=14)  # type: ignore[list-item]  # numbers count as names
    assert found.precision[0, :, 0].tolist() == pytest.approx([1.0] * 12 + [12 / 13, 12 / 14])


def test_of_two_who_disagree_both_count(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "marks.jsonl",
        {"example": 1, "annotator": "x", "features": [0]},
        {"example": 1, "annotator": "y", "features": [7]},
    )
    assert Marks.read(path).majority("1") == {0, 7}
    assert Marks.read(path).between_people() == 0


def test_people_alone_have_nobody_to_agree_with(tmp_path: Path) -> None:
    path = _written(tmp_path / "marks.jsonl", {"example": "a", "annotator": "x", "features": [0]})
    assert Marks.read(path).between_people() is None


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["not json"], "line 1 of"),
        ([{"example": "a", "annotator": "x"}], "line 1 of"),
        ([{"example": "a", "annotator": "x", "features": [1.5]}], "1.5 is not the number of a feature"),
        ([{"example": "a", "annotator": "x", "features": [1]}] * 2, "x has marked a twice"),
        ([], "holds no marks"),
    ],
)
def test_bad_marks_are_named_by_line(tmp_path: Path, lines: list[object], says: str) -> None:
    with pytest.raises(hf.HoldfastError, match=says):
        Marks.read(_written(tmp_path / "marks.jsonl", *lines))


def test_marks_and_rankings_must_match(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "marks.jsonl",
        {"example": "a", "annotator": "x", "features": [30]},
        {"example": "b", "annotator": "x", "features": []},
    )
    marks, ranking = Marks.read(path), ranked(torch.rand(1, 12))
    with pytest.raises(hf.HoldfastError, match="ours, example a: people marked feature 30, which the case does not"):
        agreement({"ours": ranking}, ["a"], marks)
    with pytest.raises(hf.HoldfastError, match="nobody marked 'q'"):
        agreement({"ours": ranking}, ["q"], marks)
    with pytest.raises(hf.HoldfastError, match="no example has a feature"):
        agreement({"ours": ranking}, ["b"], marks)
    with pytest.raises(hf.HoldfastError, match="ours ranks 1 cases, 2 examples are named"):
        agreement({"ours": ranking}, ["a", "b"], marks)
    with pytest.raises(hf.HoldfastError, match="cannot read the marks"):
        Marks.read(tmp_path / "nowhere.jsonl")
