from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import holdfast as hf
from people import ORDER, ROWS, STATED, people


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
        (b"a,b\n1,2\n2,NaN\n", "column 'b' has no value in row 1"),
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


def test_no_library_of_tables_is_imported_unless_it_is_used() -> None:
    code = """
import sys
import holdfast as hf
table = hf.data.adult()
table.columns.decode(table.x[:2])
print([name for name in ("pandas", "polars", "pyarrow", "sklearn", "narwhals") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_columns_left_out_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(CSV)
    with pytest.raises(hf.HoldfastError, match="did you mean code"):
        hf.Columns.read_csv(path, without=["cod"])
    with pytest.raises(hf.HoldfastError, match=r"people\.csv: categories of column 'job' must be a list, got 3"):
        hf.Columns.read_csv(path, without=["code"], categories={"job": 3})
