from __future__ import annotations

import gzip
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.data.tabular import ADULT_FILE

ROW = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, Cuba"


def test_the_embedded_rows_of_adult() -> None:
    table = hf.data.adult()
    assert (len(table), table.x.shape, table.x.dtype) == (2000, (2000, 43), torch.float64)
    assert table.classes == ("<=50K", ">50K")
    assert table.y.bincount().tolist() == [1513, 487]
    low, high = table.columns.bounds()
    assert ((low <= table.x) & (table.x <= high)).all()
    assert table.columns.domain().contains(table.x, table.x).all()
    assert torch.equal(table.columns.encode(table.columns.decode(table.x)), table.x)
    assert [one.name for one in table.columns if one.fixed] == ["race", "sex"]
    assert [one.name for one in table.columns if one.rising] == ["age", "education"]
    assert table.columns["age"].kind == "integer"
    assert table.columns["education"].categories[-4:] == ("Bachelors", "Masters", "Prof-school", "Doctorate")
    assert table.row(1)["occupation"] == "Exec-managerial"
    with pytest.raises(hf.HoldfastError, match="has the rows 0 to 1999, got 2000"):
        table.row(2000)


def test_the_embedded_files_are_small_and_have_their_licence() -> None:
    folder = files("holdfast.data") / "files"
    sizes = [len((folder / name).read_bytes()) for name in ("adult-2000.csv.gz", "adult-columns.json")]
    assert sum(sizes) < 60 * 1024
    assert "CC BY 4.0" in (folder / "LICENSE-adult.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["data", "test", "csv", "gz"])
def test_files_of_adult_in_every_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"adult.{form}"
    end = "." if form == "test" else ""
    lines = [f"{ROW}, <=50K{end}", f"{ROW.replace('State-gov', '?')}, >50K{end}"]
    if form == "test":
        lines.insert(0, "|1x3 Cross validator")
    if form in ("csv", "gz"):
        lines.insert(0, ",".join((*ADULT_FILE[:-1], "class")).replace("_", "-"))
    text = "\n".join(lines).encode() + b"\n"
    path.write_bytes(gzip.compress(text) if form == "gz" else text)
    table = hf.data.adult(path)
    assert table.y.tolist() == [0, 1]
    assert table.row(0)["workclass"] == "State-gov"
    assert table.row(1)["workclass"] == "unknown"
    assert table.row(1)["capital_gain"] == 2174


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "it has no column of incomes"),
        ("age,income\n39,<=50K\n", "it has no column 'workclass'"),
        (f"{ROW}, rich\n", "classes must be <=50K or >50K, got 'rich' in row 0"),
        (f"{ROW.replace('39', '3')}, >50K\n", "column 'age' ranges from 17 to 90, got 3 in row 0"),
        (f"{ROW}\n", "line 2 has 14 values, and 15 columns are named"),
    ],
)
def test_malformed_files_of_adult_are_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "adult.data"
    path.write_text(content)
    with pytest.raises(hf.HoldfastError, match=message) as raised:
        hf.data.adult(path)
    assert str(path) in str(raised.value)
    with pytest.raises(hf.HoldfastError, match=r"cannot read .*none\.csv"):
        hf.data.adult(tmp_path / "none.csv")


def test_tables_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    cells, wine = hf.data.breast_cancer(), hf.data.wine()
    assert (cells.x.shape, cells.classes) == ((569, 30), ("malignant", "benign"))
    assert cells.row(0)["mean radius"] == 17.99
    assert (wine.x.shape, wine.y.bincount().tolist()) == ((178, 13), [59, 71, 48])


def test_california_housing_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "houses.csv"
    heading = "MedInc,HouseAge,AveRooms,AveBedrms,Population,AveOccup,Latitude,Longitude,MedHouseVal"
    rows = ["8.3252,41.0,6.98,1.02,322.0,2.55,37.88,-122.23,4.526", "8.3,21.0,6.2,0.97,2401.0,2.1,37.86,-122.2,3.585"]
    path.write_text("\n".join([heading, *rows]))
    table = hf.data.california_housing(path)
    assert (len(table), table.y.tolist(), table.row(0)["MedInc"]) == (2, [1, 0], 8.3252)
    path.write_text("\n".join([heading, rows[0].replace("4.526", "high")]))
    with pytest.raises(hf.HoldfastError, match="column 'MedHouseVal' must hold numbers"):
        hf.data.california_housing(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(hf.HoldfastError, match="it has no column 'MedInc'"):
        hf.data.california_housing(path)


def test_the_embedded_trees_score_as_xgboost_does(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    table, model = hf.data.adult(), hf.data.adult_trees()
    assert model.classes == table.classes
    file = files("holdfast.data") / "files" / "adult-trees.json"
    booster = xgboost.Booster(model_file=str(file))
    matrix = table.columns.matrix(table.columns.decode(table.x))
    theirs = torch.from_numpy(booster.predict(xgboost.DMatrix(matrix), output_margin=True))
    scores = model(table.x)
    assert torch.equal(scores[:, 1] - scores[:, 0], theirs.double())
    assert (scores.argmax(1) == table.y).double().mean() == pytest.approx(0.8655)
    assert len(file.read_bytes()) < 150_000


def test_the_embedded_trees_keep_the_columns_that_they_were_trained_on() -> None:
    columns = hf.data.adult().columns
    freer = hf.Columns(tuple(replace(one, fixed=False, rising=False) for one in columns))
    model = hf.data.adult_trees(freer)
    assert model.domain is not None
    assert model.domain.rising is not None
    assert not bool(model.domain.rising.any())
    with pytest.raises(hf.HoldfastError, match=r"^the trees for Adult read its columns .* got age, workclass\.$"):
        hf.data.adult_trees(hf.Columns(columns.columns[:2]))
