from __future__ import annotations

from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import holdfast as hf
from people import ROWS, people


def moved(columns: hf.Columns, **values: Any) -> torch.Tensor:
    return columns.encode(ROWS[0] | values)


def test_changes_are_read_aloud() -> None:
    columns = people(units={}, scale="std")
    x, witness = columns.encode(ROWS[0]), moved(columns, income=41_187.3, job="nurse")
    changes = columns.changes(x[0], witness[0])
    assert [(one.name, one.before, one.after) for one in changes] == [
        ("income", 38_000.0, 41_187.3),
        ("job", "clerk", "nurse"),
    ]
    assert columns.sentence(changes) == (
        "refused; granted if income were 41,200 instead of 38,000 (+0.35 sd) and job were nurse instead of clerk. "
        "Nothing else changes."
    )
    assert columns.sentence(changes, "no", "yes", proven=True).endswith(
        "No change of the other three columns within their ranges does it."
    )
    assert columns.sentence([]) == "refused; no change was found that makes it granted."


def test_names_and_lengths_are_written_for_readers() -> None:
    hours = hf.Column("hours_per_week", "integer", unit="hours", low=0, high=99, scale=10, scaled_by="sd")
    after = {43: "+0.30", 41: "+0.10", 40 + 59: "+5.9"}
    for value, amount in after.items():
        change = hf.columns.Change(hours, 40, value, (value - 40) / 10)
        assert str(change) == f"hours per week were {value} hours instead of 40 hours ({amount} sd)"


def test_changes_of_single_precision_are_read_aloud() -> None:
    columns = people()
    x = columns.encode(ROWS[0]).float()
    changes = columns.changes(x, moved(columns, age=35, education="high", smokes=False).float())
    assert list(map(str, changes)) == [
        "age were 35 instead of 33 (+7.4 % of the range)",
        "education were high instead of low (+2 places)",
        "smokes were no instead of yes",
    ]
    assert columns.sentence(changes, proven=True).endswith("the other two columns within their ranges does it.")


def test_numbers_are_shortened_while_they_still_change_the_decision() -> None:
    columns = people()
    x, witness = columns.encode(ROWS[0]), moved(columns, income=41_187.3, age=47)
    asked: list[int] = []

    def changed(points: torch.Tensor) -> torch.Tensor:
        asked.append(len(points))
        income = points[:, 0] * 10_000
        return (income >= 41_187) & (income <= 41_195)

    changes = columns.changes(x, witness, changed)
    assert [one.after for one in changes] == [41_190.0, 47]
    assert str(changes[0]) == "income were €41,190 instead of €38,000 (+0.32 × 10,000)"
    assert max(asked) < 20
    with pytest.raises(hf.HoldfastError, match="the witness does not change the decision"):
        columns.changes(x, x + 0, changed)
    with pytest.raises(hf.HoldfastError, match="rounded must return bool \\[1\\]"):
        columns.changes(x, witness, lambda points: points)


@pytest.mark.parametrize(
    ("before", "after", "unit", "text"),
    [
        (38_000.0, 36_812.7, "", "v were 36,800 instead of 38,000"),
        (0.12345678, 0.1236, "", "v were 0.1236 instead of 0.123457"),
        (-1.5, 2.25, "km", "v were 2.3 km instead of -1.5 km"),
        (-100.0, -2000.0, "$", "v were -$2,000 instead of -$100"),
        (6.984126984126984, 7.0, "", "v were 7 instead of 6.9841"),
        (1e-9, 3.456e-9, "", "v were 3.5e-9 instead of 1e-9"),
        (0.0, 99_999.94, "", "v were 99,999.94 instead of 0"),
    ],
)
def test_numbers_have_the_digits_that_matter(before: float, after: float, unit: str, text: str) -> None:
    column = hf.Column("v", unit=unit, low=-5000, high=99_999.94)
    assert str(hf.columns.Change(column, before, after, after - before)) == text


numbers = st.floats(-1e290, 1e290)


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(before=numbers, after=numbers)
def test_all_numbers_can_be_shown(before: float, after: float) -> None:
    hypothesis.assume(before != after)
    column = hf.Column("v", low=-1e291, high=1e291, scale=1e200)
    change = hf.columns.Change(column, before, after, after - before)
    assert str(change).startswith("v were ")
    shown = [float(change.rounded(digits)) for digits in range(17)]
    assert all(one >= after if after > before else one <= after for one in shown)
    assert abs(shown[0] - after) <= 0.11 * abs(after - before)


def test_points_that_are_no_rows_are_not_read_aloud() -> None:
    columns = people()
    x = columns.encode(ROWS[0])
    with pytest.raises(hf.HoldfastError, match="the witness is no row of this table: round it"):
        columns.changes(x, x + 0.1)
    with pytest.raises(hf.HoldfastError, match="the witness is no row"):
        columns.changes(columns.encode(ROWS[1]), moved(columns, income=52000.5, age=54))  # age rises only
    with pytest.raises(hf.HoldfastError, match="must be points \\[8\\]"):
        columns.changes(columns.encode(ROWS), x)
