from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import holdfast as hf

PEOPLE: dict[str, list[Any]] = {
    "income": [38000.0, 52000.5, 61000.0, 41000.0],
    "age": [33, 55, 47, 60],
    "job": ["clerk", "nurse", "clerk", "pilot"],
    "education": ["low", "mid", "high", "mid"],
    "smokes": [True, False, False, True],
}
ORDER = ["low", "mid", "high"]
STATED: dict[str, Any] = {
    "kinds": {"education": "ordered"},
    "categories": {"education": ORDER},
    "units": {"income": "€"},
    "rising": ["age"],
    "scale": {"income": 10_000, "age": "range"},
}
ROWS = [dict(zip(PEOPLE, row, strict=True)) for row in zip(*PEOPLE.values(), strict=True)]


def people(**stated: Any) -> hf.Columns:
    return hf.Columns.read(PEOPLE, **{**STATED, **stated})


# ---------------------------------------------------------------------- what columns are


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
    assert repr(columns) == "Columns(income, age, job, education, smokes)"


def frames() -> dict[str, Any]:
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    frame = pandas.DataFrame(PEOPLE)
    ordered = pandas.DataFrame(PEOPLE | {"education": pandas.Categorical(PEOPLE["education"], ORDER, ordered=True)})
    kinds = {"job": pandas.Series(PEOPLE["job"], dtype="category"), "age": pandas.Series(PEOPLE["age"], dtype="Int64")}
    return {
        "dict": PEOPLE,
        "arrays": {name: np.array(values) for name, values in PEOPLE.items()},
        "rows": ROWS,
        "pandas": frame,
        "pandas with categories": ordered.assign(**kinds),
        "polars": polars.DataFrame(PEOPLE),
        "polars with an enum": polars.DataFrame(PEOPLE).with_columns(
            polars.col("job").cast(polars.Enum(["clerk", "nurse", "pilot"]))
        ),
        "arrow": arrow.table(PEOPLE),
        "arrow with a dictionary": arrow.table(PEOPLE | {"job": arrow.array(PEOPLE["job"]).dictionary_encode()}),
        "a stream": Stream(arrow.table(PEOPLE)),
    }


class Stream:
    def __init__(self, table: Any):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


@pytest.mark.parametrize("name", list(frames()))
def test_every_kind_of_table_says_the_same(name: str) -> None:
    frame = frames()[name]
    columns = hf.Columns.read(frame, **STATED)
    assert columns == people()
    assert torch.equal(columns.encode(frame), people().encode(ROWS))
    assert columns.decode(columns.encode(frame)) == ROWS


@pytest.mark.parametrize("name", ["pandas with categories", "polars with an enum", "arrow with a dictionary"])
def test_points_become_the_kind_of_table_that_is_shown(name: str) -> None:
    frame = frames()[name]
    made = people().to_frame(people().encode(ROWS), like=frame)
    assert type(made) is type(frame)
    assert bool(np.all(made == frame)) if name.startswith("pandas") else made.equals(frame)
    assert people().to_frame(people().encode(ROWS)) == PEOPLE


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
    assert (column.scale, column.scaled_by) == (pytest.approx(scale, rel=1e-5), by)


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


floats = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-200)
small_floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
decimals = st.builds(
    lambda whole, places: float(f"{whole}e{places}"), st.integers(-(10**15), 10**15), st.integers(-12, 0)
)
scales = st.floats(1e-3, 1e6)


def of_number(value: float, scale: float) -> hf.Columns:
    return hf.Columns((hf.Column("v", low=min(value, -1) * 2, high=max(value, 1) * 2, scale=scale),))


@hypothesis.given(value=small_floats | decimals, scale=scales)
def test_short_numbers_are_found_again(value: float, scale: float) -> None:
    columns = of_number(value, scale)
    x = columns.encode({"v": value})
    [row] = columns.decode(x)
    assert row["v"] == value
    assert torch.equal(columns.encode(row), x)


@hypothesis.given(value=floats, scale=scales, power=st.integers(-10, 20))
def test_all_numbers_are_found_again_by_powers_of_two_or_near_rows(value: float, scale: float, power: int) -> None:
    columns = of_number(value, 2.0**power)
    assert columns.decode(columns.encode({"v": value})) == [{"v": value}]
    columns = of_number(value, scale)
    x = columns.encode({"v": value})
    assert columns.decode(x, {"v": value}) == [{"v": value}]
    assert columns.decode(x)[0]["v"] == pytest.approx(value, rel=4e-16, abs=0)
    assert torch.equal(columns.encode(columns.decode(x)), x)


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


categories = st.lists(st.text(min_size=1) | st.integers(), min_size=2, max_size=6, unique_by=str)


@hypothesis.given(names=categories, data=st.data(), kind=st.sampled_from(["ordered", "categorical"]))
def test_categories_are_found_again(names: list[Any], data: st.DataObject, kind: Any) -> None:
    chosen = data.draw(st.lists(st.sampled_from(names).filter(lambda one: str(one).strip()), min_size=1))
    columns = hf.Columns((hf.Column("v", kind, categories=names),))  # type: ignore[arg-type]  # a list becomes a tuple
    x = columns.encode({"v": chosen})
    assert [row["v"] for row in columns.decode(x)] == chosen
    assert [row["v"] for row in columns.decode(x.float())] == chosen
    assert columns.domain().contains(x, x).all()


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


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("frame", "stated", "message"),
    [
        ({}, {}, "the table is empty"),
        ([], {}, "the table is empty"),
        ({"a": []}, {}, "the table is empty: expected rows, got 1 columns"),
        (np.zeros((0, 2)), {"names": ["a", "b"]}, "the table is empty"),
        (np.zeros((3, 2)), {}, "name its 2 columns in names"),
        (np.zeros((3, 2)), {"names": ["a"]}, "1 columns are named, and the array has 2"),
        (np.zeros((3, 2)), {"names": ["a", "a"]}, "two columns called 'a'"),
        (np.zeros(3), {"names": ["a"]}, "an array \\[rows, columns\\], got shape \\(3,\\)"),
        ("people.csv", {}, "read files by Columns.read_csv"),
        (3, {}, "expected a DataFrame, .* got 3"),
        ({"a": [1, 2], "b": [1]}, {}, "as many rows: 'a' has 2, 'b' has 1"),
        ({1: [1, 2]}, {}, "names of columns must be texts that are not empty, got 1"),
        ({"a": [[1, 2], [3, 4]]}, {}, "must hold numbers, texts or truth values, got \\[1, 2\\] in row 0"),
        ({"a": np.zeros((2, 2))}, {}, "column 'a' must be one sequence of values"),
        ([{"a": 1}, {"b": 1}], {}, "rows 0 and 1 differ in 'a'"),
        ({"a": [1, None]}, {}, "column 'a' has no value in row 1: fill it"),
        ({"a": [1.0, math.nan]}, {}, "column 'a' has no value in row 1: fill it"),
        ({"a": ["x", ""]}, {}, "column 'a' has no value in row 1: fill it"),
        ({"a": [1.0, math.inf]}, {}, "must hold finite numbers, got inf in row 1"),
        ({"a": [1, "n/a"]}, {}, "column 'a' mixes texts, such as 'n/a', and numbers, such as 1"),
        ({"a": [1, "n/a"]}, {"kinds": {"a": "numeric"}}, "column 'a' must hold numbers, got 'n/a' in row 1"),
        ({"a": [1, 2.5]}, {"kinds": {"a": "integer"}}, "must hold whole numbers, got 2.5 in row 1"),
        ({"a": [1, 2**60]}, {}, "at most 15 digits, got 1152921504606846976 in row 1"),
        ({"a": [1, 10**400]}, {"kinds": {"a": "integer"}}, "at most 15 digits"),
        ({"a": ["x", "x"]}, {}, "the one category 'x' in all rows"),
        ({"a": list(map(str, range(200)))}, {}, "200 categories in 200 rows, so it looks like an id"),
        ({"a": list(map(str, range(30)))}, {}, "30 categories in 30 rows, so it looks like an id"),
        ({"a": ["x", "y"]}, {"kinds": {"a": "ordered"}}, "the order of column 'a' is unknown: state it"),
        ({"a": ["x", "y"]}, {"categories": {"a": ["x", "x"]}}, "must differ, got 'x' twice"),
        ({"a": ["x", "y"]}, {"categories": {"a": "xy"}}, "must be a list, got 'xy'"),
        ({"a": [1, 2]}, {"kinds": {"b": "integer"}}, "there is no column 'b'"),
        ({"income": [1, 2]}, {"fixed": ["incom"]}, "did you mean income"),
        ({"a": [1, 2]}, {"fixed": "a"}, "fixed must be a list of names"),
        ({"a": [1, 2]}, {"units": ["m"]}, "units must be a dict by name"),
        ({"a": [1, 2]}, {"scale": "sd"}, 'scale must be a dict by column name, or "std"'),
        ({"a": [1, 2]}, {"scale": {"a": 0}}, "the scale of column 'a' must be a finite number > 0"),
        ({"a": [1, 2]}, {"kinds": {"a": "text"}}, "the kind of column 'a' must be one of numeric"),
        ({"a": [1, 2]}, {"ranges": {"a": (2, 1)}}, "must be \\(low, high\\) with low < high"),
        ({"a": [1, 9]}, {"ranges": {"a": (1, 5)}}, "column 'a' ranges from 1 to 5, got 9 in row 1"),
        ({"a": ["x", "y"]}, {"rising": ["a"]}, "can neither rise nor fall"),
        ({"a": [1, 2]}, {"rising": ["a"], "falling": ["a"]}, "make it fixed instead"),
        ({"a": [1, 2]}, {"scale": {"a": 1e-300}}, "cannot be scaled by 1e-300"),
    ],
)
def test_malformed_tables_are_refused(frame: Any, stated: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.HoldfastError, match=message):
        hf.Columns.read(frame, **stated)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": "old"}, "column 'age' must hold numbers, got 'old' in row 0"),
        ({"age": 40.5}, "must hold whole numbers, got 40.5 in row 0"),
        ({"age": 61}, "column 'age' ranges from 33 to 60, got 61 in row 0: correct it or widen the range"),
        ({"income": math.nan}, "column 'income' has no value in row 0"),
        ({"job": None}, "column 'job' has no value in row 0"),
        ({"job": "nurs"}, "there is no category of column 'job' \\(row 0\\) 'nurs': did you mean nurse"),
        ({"job": 3}, "there is no category of column 'job' \\(row 0\\) '3'"),
        ({"smokes": "True"}, "column 'smokes' holds categories of type bool, got 'True'"),
        ({"id": 3}, "the table has a column 'id' that is not one of these columns: leave it out"),
    ],
)
def test_rows_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.HoldfastError, match=message):
        people().encode([ROWS[0] | change])


def test_missing_and_renamed_columns_are_refused() -> None:
    row = {name: value for name, value in ROWS[0].items() if name != "income"}
    with pytest.raises(hf.HoldfastError, match="no column of the table 'income': use one of age, job"):
        people().encode(row)
    with pytest.raises(hf.HoldfastError, match="no column of the table 'income': did you mean incomes"):
        people().encode(row | {"incomes": 40_000})


def test_frames_of_other_libraries_are_refused_in_one_sentence() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(hf.HoldfastError, match="two columns called 'a'"):
        hf.Columns.read(twice)
    with pytest.raises(hf.HoldfastError, match="call collect\\(\\) first"):
        hf.Columns.read(polars.DataFrame(PEOPLE).lazy())
    with pytest.raises(hf.HoldfastError, match="column 'a' has no value in row 1"):
        hf.Columns.read(pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64")}))
    with pytest.raises(hf.HoldfastError, match="column 'a' has no value in row 1"):
        hf.Columns.read(polars.DataFrame({"a": [1, None]}))
    with pytest.raises(hf.HoldfastError, match="column 'a' must hold numbers, texts or truth values, got datetime"):
        hf.Columns.read(pandas.DataFrame({"a": pandas.to_datetime(["2020-01-01", "2021-01-01"])}))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2), "x must be points \\[B, 8\\]"),
        (torch.zeros(2, 7), "x must be points \\[B, 8\\]"),
        (torch.full((1, 8), math.nan), "x holds NaN or infinity"),
        ("a", "x must be points"),
    ],
)
def test_malformed_points_are_refused(x: Any, message: str) -> None:
    with pytest.raises(hf.HoldfastError, match=message):
        people().decode(x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "a column needs a name"),
        ({"name": "a", "kind": "text"}, "Column.kind must be one of"),
        ({"name": "a", "low": 1, "high": 1}, "must be low < high"),
        ({"name": "a", "high": math.inf}, "Column.high must be a number >= -1e.300 and <= 1e.300, got inf"),
        ({"name": "a", "scale": -1}, "Column.scale must be a finite number > 0"),
        ({"name": "a", "categories": ["x", "y"]}, "is numeric and has no categories"),
        ({"name": "a", "kind": "ordered", "categories": ["x"]}, "needs two or more categories"),
        ({"name": "a", "kind": "categorical", "categories": ["x", None]}, "Column.categories must be"),
        ({"name": "a", "kind": "categorical", "categories": ["1", 1]}, "must differ"),
        ({"name": "a", "kind": "integer", "high": 1.5}, "must be whole numbers"),
    ],
)
def test_malformed_columns_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.HoldfastError, match=message):
        hf.Column(**arguments)


def test_malformed_sets_of_columns_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="columns must be one Column or more"):
        hf.Columns(())
    with pytest.raises(hf.HoldfastError, match="two columns called 'a'"):
        hf.Columns((hf.Column("a"), hf.Column("a")))
    with pytest.raises(hf.HoldfastError, match="there is no column 'jobs': did you mean job"):
        people()["jobs"]
    with pytest.raises(hf.HoldfastError, match="all columns are fixed"):
        hf.Columns((hf.Column("a", fixed=True),)).features()
    with pytest.raises(hf.HoldfastError, match="like must be a DataFrame"):
        people().to_frame(people().encode(ROWS), like=[1])


# ---------------------------------------------------------------------- files


def test_columns_are_stored_as_json(tmp_path: Path) -> None:
    columns = people(fixed=["smokes"])
    columns.save(tmp_path / "columns.json")
    assert hf.Columns.load(tmp_path / "columns.json") == columns
    assert json.loads((tmp_path / "columns.json").read_text())["columns"][0]["name"] == "income"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot read columns from"),
        ("[" * 100_000, "cannot read columns from"),
        ("[]", 'it must be an object with "format"'),
        ('{"format": "holdfast columns 1", "columns": []}', "a list of"),
        ('{"format": "holdfast columns 1", "columns": [3]}', "column 0 must be an object with a name"),
        ('{"format": "holdfast columns 1", "columns": [{"name": "a", "lo": 1}]}', "entry of column 0 'lo'"),
        ('{"format": "holdfast columns 1", "columns": [{"name": "a", "low": NaN}]}', "must be finite, got NaN"),
        ('{"format": "holdfast columns 1", "columns": [{"name": "a", "low": "1"}]}', "Column.low must be a number >="),
        ('{"format": "holdfast columns 1", "columns": [{"name": 1}]}', "Column.name must be a text"),
        ('{"format": "holdfast columns 1", "columns": [{"name": "a", "fixed": 1}]}', "Column.fixed must be True"),
    ],
)
def test_malformed_files_of_columns_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "columns.json").write_text(content)
    with pytest.raises(hf.HoldfastError, match=message):
        hf.Columns.load(tmp_path / "columns.json")


CSV = """\
code, income,age,job,education,smokes
007,38000.0,33,clerk,low,True
008,52000.5,55,nurse,mid,False
009,61000.0,47,"clerk",high,False

010,41000.0,60,pilot,mid,True
"""


def test_a_csv_file_says_the_same_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("\ufeff" + CSV, encoding="utf-8")
    stated = {**STATED, "categories": {"education": ORDER, "smokes": [False, True]}}
    columns = hf.Columns.read_csv(path, without=["code"], **stated)
    assert columns == people()
    assert columns.read_rows(path) == ROWS
    assert columns.read_rows(path, 2, 1) == [ROWS[2]]
    assert torch.equal(columns.encode(columns.read_rows(path)), people().encode(ROWS))
    assert hf.Columns.read_csv(path, **stated)["code"].categories == ("007", "008", "009", "010")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the first line must name the columns"),
        (b"a,b\n", "the table is empty"),
        (b"a,a\n1,2\n", "two columns called 'a'"),
        (b"a;b\n1;2\n", "must be separated by commas"),
        (b"a,b\n1,2\n1\n", "line 3 has 1 values, and 2 columns are named"),
        (b"a,b\n1,\xff\n", "it is not a text in UTF-8"),
        (b'a,b\n1,"x\n', "cannot read the table"),
        (b"a,b\n1,2\n,3\n", "column 'a' has no value in row 1"),
        (b"a" * 200_000, "cannot read the table .*field larger"),
    ],
)
def test_malformed_csv_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    with pytest.raises(hf.HoldfastError, match=message):
        hf.Columns.read_csv(path)


@pytest.mark.parametrize(
    ("content", "row", "message"),
    [
        ("income,age\n1,2\n", 0, "there is no column 'job'"),
        (CSV, 4, "has the rows 0 to 3: there is no row 4"),
        (CSV, -1, "first must be a whole number >= 0"),
        (CSV.replace("33", "x"), 0, "column 'age' must hold numbers, got 'x' in row 0"),
        (CSV.replace("33", ""), 0, "column 'age' has no value in row 0"),
    ],
)
def test_malformed_rows_of_csv_files_are_refused(content: str, row: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(content)
    with pytest.raises(hf.HoldfastError, match=message):
        people().read_rows(path, row, 1)
    with pytest.raises(hf.HoldfastError, match="cannot read the table"):
        people().read_rows(tmp_path / "none.csv", row if row > 0 else 0, 1)


def test_columns_left_out_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(CSV)
    with pytest.raises(hf.HoldfastError, match="did you mean code"):
        hf.Columns.read_csv(path, without=["cod"])


# ---------------------------------------------------------------------- answers


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


def test_points_that_are_no_rows_are_not_read_aloud() -> None:
    columns = people()
    x = columns.encode(ROWS[0])
    with pytest.raises(hf.HoldfastError, match="the witness is no row of this table: round it"):
        columns.changes(x, x + 0.1)
    with pytest.raises(hf.HoldfastError, match="the witness is no row"):
        columns.changes(columns.encode(ROWS[1]), moved(columns, income=52000.5, age=54))  # age rises only
    with pytest.raises(hf.HoldfastError, match="must be points \\[8\\]"):
        columns.changes(columns.encode(ROWS), x)
