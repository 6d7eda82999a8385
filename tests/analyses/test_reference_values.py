"""Areas of Insertion and Deletion under several reference values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

import holdfast as hf
from analyses.small import small_cases
from holdfast import analyses
from holdfast.analyses.reference_values import reference_values


def test_reference_values_are_the_areas_of_the_criteria() -> None:
    cases = small_cases()
    rankings: Any = {"grad": hf.Grad()(cases), "pair": (hf.Random(1)(cases), hf.Random(2)(cases))}
    result = reference_values(cases, rankings, [0.0, "uniform"], draws=2)
    assert result.areas.shape == (2, 2, 2, 4)
    expected = hf.trace(cases, rankings["pair"][1], hf.Deletion("uniform", draws=2)).auc()
    torch.testing.assert_close(result.areas[1, 1, 1], expected)
    rows = result.table()
    assert len(rows) == 8
    assert rows[0]["draws"] == 2
    assert {row["rank"] for row in rows if row["reference"] == "0" and row["criterion"] == "Insertion"} == {1, 2}
    for criterion in (0, 1):
        result.draw(Figure().add_subplot(), criterion)


def test_the_best_insertion_is_high_and_the_best_deletion_low() -> None:
    areas = torch.tensor([[[[3.0], [3.0]]], [[[1.0], [1.0]]], [[[3.0], [2.0]]]])
    ranks = analyses.ReferenceValues(("a", "b", "c"), ("0",), areas, 1).ranks()
    assert ranks[:, 0, 0].tolist() == [1, 3, 1]
    assert ranks[:, 0, 1].tolist() == [3, 1, 2]


def test_one_case_has_no_standard_error() -> None:
    cases = small_cases(1)
    assert reference_values(cases, {"grad": hf.Grad()(cases)}, [0.0]).table()[0]["standard error"] is None


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="at least one ranking"):
        reference_values(small_cases(), {})
    with pytest.raises(hf.HoldfastError, match="a reference is named twice: 0, blur, 0"):
        reference_values(small_cases(), {"grad": hf.Grad()(small_cases())}, [0.0, "blur", 0.0])
    with pytest.raises(hf.HoldfastError, match="the ranking orders"):
        reference_values(small_cases(2), {"grad": hf.Grad()(small_cases())})
