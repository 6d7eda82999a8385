from __future__ import annotations

import math
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import holdfast as hf
from people import PEOPLE, ROWS, STATED, frame_of, people


def test_columns_are_found_out_from_values() -> None:
    columns = people()
    kinds = ["numeric", "integer", "categorical", "ordered", "categorical"]
    assert columns.names == tuple(PEOPLE)
    assert [column.kind for column in columns] == kinds
    assert columns["income"] == hf.Column("income", unit="€", low=38_000, high=61_000, scale=10_000)
    assert columns["age"] == hf.Column("age", "integer", low=33, high=60, scale=27, scaled_by="range", rising=True)
    assert columns["job"].categories == ("clerk", "nurse", "pilot")
    assert columns["smokes"].categories == (False, True)
    assert columns["education"].scale == pytest.approx(np.std([0, 1, 2, 1]), rel=1e-5)
    assert str(columns) == "Columns(income, age, job, education, smokes)"


PLAIN = {
    "dict": PEOPLE,
    "arrays": {name: np.array(values) for name, values in PEOPLE.items()},
    "rows": ROWS,
}
DECLARED = ["pandas with categories", "polars with an enum", "arrow with a dictionary"]


@pytest.mark.parametrize("kind", [*PLAIN, "pandas", "polars", "arrow", "stream", *DECLARED])
def test_every_kind_of_table_says_the_same(kind: str) -> None:
    frame = PLAIN[kind] if kind in PLAIN else frame_of(kind)
    columns = hf.Columns.read(frame, **STATED)
    assert columns == people()
    assert torch.equal(columns.encode(frame), people().encode(ROWS))
    assert columns.decode(columns.encode(frame)) == ROWS


@pytest.mark.parametrize("kind", DECLARED)
def test_points_become_the_kind_of_table_that_is_shown(kind: str) -> None:
    frame = frame_of(kind)
    made = people().to_frame(people().encode(ROWS), like=frame)
    assert type(made) is type(frame)
    assert bool(np.all(made == frame)) if kind.startswith("pandas") else made.equals(frame)
    assert people().to_frame(people().encode(ROWS)) == PEOPLE


def test_a_series_is_a_row() -> None:
    row = frame_of("pandas").iloc[2]
    assert people().decode(people().encode(row)) == [ROWS[2]]


def test_tables_of_numbers_need_names() -> None:
    values = np.array([[1.5, 2], [3, 8]])
    by_name = hf.Columns.read({"a": values[:, 0], "b": values[:, 1]})
    structured = np.array([(1.5, 2.0), (3.0, 8.0)], dtype=[("a", float), ("b", float)])
    assert hf.Columns.read(values, names=["a", "b"]) == by_name
    assert hf.Columns.read(torch.tensor(values), names=["a", "b"]) == by_name
    assert hf.Columns.read(structured) == by_name
    assert torch.equal(by_name.encode(values), by_name.encode({"b": [2, 8], "a": [1.5, 3]}))


@pytest.mark.parametrize(
    ("values", "rule", "scale", "by"),
    [
        ([0.0, 2.0, 4.0], "std", 1.63299, "sd"),
        ([0.0, 2.0, 7.0], "mad", 2.0, "mad"),
        ([0.0, 2.0, 7.0], "range", 7.0, "range"),
        ([0.0, 0.0, 0.0, 8.0], "mad", 3.4641, "sd"),
        ([5.0, 5.0], "std", 1.0, ""),
        ([0.1, 0.1, 0.1], "mad", 1.0, ""),
    ],
)
def test_scales(values: list[float], rule: Any, scale: float, by: str) -> None:
    [column] = hf.Columns.read({"a": values}, scale=rule)
    assert column.scale == pytest.approx(scale, rel=1e-5)
    assert column.scaled_by == by


def test_a_column_without_spread_stays_as_it_is() -> None:
    [column] = hf.Columns.read({"a": [5.0, 5.0]})
    assert column.fixed
    assert column.low < 5 < column.high
    [stated] = hf.Columns.read({"a": [5.0, 5.0]}, ranges={"a": (0, 10)})
    assert (stated.fixed, stated.low, stated.high, stated.scale) == (False, 0, 10, 10)


# ---------------------------------------------------------------------- coordinates


def test_features_bounds_and_domain() -> None:
    columns = people(fixed=["job"])
    assert (len(columns), columns.width) == (5, 8)
    low, high = columns.bounds()
    hot = math.sqrt(0.5)
    place = columns["education"].step
    assert low.tolist() == pytest.approx([3.8, 33 / 27, 0, 0, 0, 0, 0, 0])
    assert high.tolist() == pytest.approx([6.1, 60 / 27, hot, hot, hot, 2 * place, hot, hot])
    features = columns.features()
    assert features.ids.tolist() == [[0, 1, -1, -1, -1, 2, 3, 3]]
    assert [features.name(n) for n in range(4)] == list(columns.moving) == ["income", "age", "education", "smokes"]
    domain = columns.domain()
    assert domain.step.tolist() == pytest.approx([0, 1 / 27, 0, 0, 0, place, 0, 0])
    assert [group.tolist() for group in domain.groups] == [[2, 3, 4], [6, 7]]
    assert domain.rising is not None
    assert domain.rising.tolist() == [False, True] + [False] * 6
    x = columns.encode(ROWS)
    assert ((low <= x) & (x <= high)).all()
    assert domain.contains(x, x).all()
    assert torch.equal(domain.nearest(x, x), x)


def test_a_changed_category_has_length_one() -> None:
    x = people().encode([ROWS[0], ROWS[0] | {"job": "nurse"}])
    assert float((x[0] - x[1]).norm()) == pytest.approx(1)


def test_a_model_is_asked_about_rows() -> None:
    columns = people()
    low, high = columns.bounds()
    net = torch.nn.Linear(columns.width, 2).double().eval()
    cases = hf.TorchModel(net, bounds=(low, high)).ask(columns.encode(ROWS), features=columns.features())
    assert cases.features.name(2) == "job"


STEADY = hypothesis.settings(deadline=None, derandomize=True)

floats = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-200)
small_floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
wholes, places = st.integers(-(10**15), 10**15), st.integers(-12, 0)
decimals = st.builds(lambda whole, place: float(f"{whole}e{place}"), wholes, places)
scales = st.floats(1e-3, 1e6)


def of_number(value: float, scale: float) -> hf.Columns:
    return hf.Columns((hf.Column("v", low=min(value, -1) * 2, high=max(value, 1) * 2, scale=scale),))


@STEADY
@hypothesis.given(value=small_floats | decimals, scale=scales)
def test_short_numbers_are_found_again(value: float, scale: float) -> None:
    columns = of_number(value, scale)
    x = columns.encode({"v": value})
    [row] = columns.decode(x)
    assert row["v"] == value
    assert torch.equal(columns.encode(row), x)


@STEADY
@hypothesis.given(value=floats, scale=scales, power=st.integers(-10, 20))
def test_all_numbers_are_found_again_by_powers_of_two_or_near_rows(value: float, scale: float, power: int) -> None:
    columns = of_number(value, 2.0**power)
    assert columns.decode(columns.encode({"v": value})) == [{"v": value}]
    columns = of_number(value, scale)
    x = columns.encode({"v": value})
    assert columns.decode(x, {"v": value}) == [{"v": value}]
    assert columns.decode(x)[0]["v"] == pytest.approx(value, rel=4e-16, abs=0)
    assert torch.equal(columns.encode(columns.decode(x)), x)


@STEADY
@hypothesis.given(value=st.integers(-(2**50), 2**50), scale=scales)
def test_whole_numbers_are_found_again(value: int, scale: float) -> None:
    low, high = max(-(2**50), min(value, 0) * 2), min(2**50, max(value, 1) * 2)
    columns = hf.Columns((hf.Column("v", "integer", low=low, high=high, scale=scale),))
    x = columns.encode({"v": value})
    assert columns.decode(x) == [{"v": value}]
    assert columns.domain().contains(x, x).all()
    assert torch.equal(columns.domain().nearest(x, x), x)
    if abs(value) < 2**20:
        assert columns.decode(x.float()) == [{"v": value}]


texts = st.text().filter(str.strip)
categories = st.lists(texts | st.integers(), min_size=2, max_size=6, unique_by=str)


@STEADY
@hypothesis.given(names=categories, data=st.data(), kind=st.sampled_from(["ordered", "categorical"]))
def test_categories_are_found_again(names: list[Any], data: st.DataObject, kind: Any) -> None:
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1))
    columns = hf.Columns((hf.Column("v", kind, categories=names),))  # type: ignore[arg-type]  # a list becomes a tuple
    x = columns.encode({"v": chosen})
    assert [row["v"] for row in columns.decode(x)] == chosen
    assert [row["v"] for row in columns.decode(x.float())] == chosen
    assert columns.domain().contains(x, x).all()


@STEADY
@hypothesis.given(value=floats, scale=scales)
def test_points_of_single_precision_have_short_values(value: float, scale: float) -> None:
    columns = of_number(value, scale)
    x = columns.encode({"v": value}).float()
    found = float(columns.decode(x)[0]["v"])
    assert found == pytest.approx(value, rel=1e-6, abs=1e-30)
    if abs(value / scale) > 1e-30:
        assert len(f"{found:.17g}".rstrip("0")) > 0
        assert found == float(f"{found:.9g}")


def test_a_point_between_rows_is_read_as_the_nearest() -> None:
    columns = people()
    x = columns.encode(ROWS[0])
    x += torch.tensor([[0, 0.01, -0.1, 0.3, 0.2, 0.1, 0, 0]])
    assert columns.decode(x) == [ROWS[0]]
