from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import holdfast as hf
from people import PEOPLE, ROWS, frame_of, people


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
        ({"a": ["x", "y"]}, {"categories": {"a": ["x", "z"]}}, "no category of column 'a' \\(row 1\\) 'y'"),
        ({"a": ["x", "y"]}, {"categories": {"a": ["x", " "]}}, "must not be empty"),
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
    halves = hf.Columns((hf.Column("a"),))
    for like in (frame_of("pandas"), frame_of("polars"), frame_of("arrow")):
        with pytest.raises(hf.HoldfastError, match="like must have the columns a, it has none"):
            halves.to_frame([[0.5]], like)
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    for like in (pandas.DataFrame({"a": [1]}), polars.DataFrame({"a": [1]}), arrow.table({"a": [1]})):
        with pytest.raises(hf.HoldfastError, match="column 'a' of like holds whole numbers"):
            halves.to_frame([[0.5]], like)
    with pytest.raises(hf.HoldfastError, match="like must be a DataFrame"):
        people().to_frame(people().encode(ROWS), like=[1])
