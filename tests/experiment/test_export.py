from __future__ import annotations

import csv
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.experiment.export import COLUMNS, export, rows
from holdfast.experiment.results import Results


def test_one_row_a_value_in_a_stable_order(small_results: Path, tmp_path: Path) -> None:
    results = Results(small_results)
    count = export(results, tmp_path / "values.csv")
    with (tmp_path / "values.csv").open(encoding="utf-8", newline="") as file:
        head, *lines = list(csv.reader(file))
    assert tuple(head) == COLUMNS
    assert len(lines) == count == len(list(rows(results)))
    # 2 single methods and 2 of two rankings meet 11 criteria, the probe meets 2; 3 examples at 2 sizes.
    assert count == (6 * 11 + 2) * 3 * 2
    found = [row for row in lines if row[1:4] == ["Greedy-AS", "rest", "Robustness-S̄r"]]
    assert [row[0] for row in found] == [f"mnist #{number}" for number in (10, 10, 11, 11, 12, 12)]
    curve = results.curve("Greedy-AS", results.measures()[0])
    assert curve is not None
    for row, value, censored in zip(
        found, curve.values.flatten().tolist(), curve.censored.flatten().tolist(), strict=True
    ):
        assert row[7] == ("true" if censored else "false")
        assert row[5] == ("" if censored else repr(value))
        assert row[6] == "upper"
    assert {row[6] for row in lines if row[3].startswith("Insertion")} == {"exact"}
    export(results, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "values.csv").read_bytes()


def test_parquet_holds_the_same(small_results: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    results = Results(small_results)
    export(results, tmp_path / "values.parquet")
    table = parquet.read_table(tmp_path / "values.parquet")
    assert tuple(table.column_names) == COLUMNS
    assert [tuple(row.values()) for row in table.to_pylist()] == list(rows(results))


def test_other_files_are_refused(small_results: Path, tmp_path: Path) -> None:
    with pytest.raises(hf.HoldfastError, match=r"must end in .csv or .parquet"):
        export(Results(small_results), tmp_path / "values.xlsx")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(hf.HoldfastError, match="cannot write"):
        export(Results(small_results), tmp_path / "file" / "values.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
