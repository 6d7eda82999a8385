"""Rows of tables in the command."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from xgboost import XGBClassifier, XGBRegressor

import holdfast as hf
from test_cli import Call, call

__all__ = ["call"]
JOBS = ["clerk", "nurse", "pilot"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with its class, what its columns are, and trees for them."""
    folder, drawn = tmp_path_factory.mktemp("people"), random.Random(0)
    rows = [(drawn.randint(20, 60), drawn.choice(JOBS), round(drawn.uniform(1e3, 9e3), 2)) for _ in range(80)]
    granted = [income / 3000 + (job == "pilot") + age / 60 > 2.6 for age, job, income in rows]
    lines = [f"{a},{j},{i},{'granted' if g else 'refused'}" for (a, j, i), g in zip(rows, granted, strict=True)]
    (folder / "people.csv").write_text("\n".join(["age,job,income,decision", *lines]))
    columns = hf.Columns.read_csv(folder / "people.csv", without=["decision"], units={"income": "€"})
    columns.save(folder / "columns.json")
    matrix = columns.matrix([dict(zip(("age", "job", "income"), row, strict=True)) for row in rows])
    XGBClassifier(n_estimators=6, max_depth=3).fit(matrix, granted).save_model(folder / "model.json")
    XGBRegressor(n_estimators=2).fit(matrix, granted).save_model(folder / "regressor.json")
    XGBClassifier(n_estimators=2).fit(matrix[:, :3], granted).save_model(folder / "narrow.json")
    named = XGBClassifier(n_estimators=2).fit(matrix, granted).get_booster()
    named.feature_names = ["age", "clerk", "nurse", "pilot", "wage"]
    named.save_model(folder / "renamed.json")
    return folder


def _own(folder: Path, *more: object) -> list[object]:
    return ["--table", folder / "people.csv", "--model", folder / "model.json", "--label-column", "decision", *more]


def _flat(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_a_row_alone_is_of_the_embedded_table(call: Call, tmp_path: Path) -> None:
    picture = tmp_path / "why.png"
    told = _flat(call("explain", "--row", 17, "--out", picture)[0])
    for part in (
        "row 17 of Adult, embedded",
        "<=50K (99%)",
        "why <=50K?",
        "3 of 8 columns, by greedy",
        "0.9608 (exact)",
    ):
        assert part in told
    assert "<=50K; >50K if capital gain were $4,700 instead of $0 (+0.63 sd) and hours per week were 49 hours" in told
    assert "the other five columns must change by a length of 4.05 scales." in told
    assert "fixed race White" in told
    assert "was used" not in told
    assert picture.stat().st_size > 10_000


def test_the_answer_as_json_is_the_librarys(call: Call, tmp_path: Path) -> None:
    whole = json.loads(call("explain", "--row", 3, "--json", "--out", tmp_path / "why.png")[0])
    (answer,) = whole["explanations"]
    table, model = hf.data.adult(), hf.data.adult_trees()
    cases = model.ask(table.x[3:4], features=table.columns.features())
    ranking = hf.Greedy(budget=1.0)(cases)
    relevant = ranking.top([3])
    radii = hf.ExactTrees()(cases, torch.cat([relevant, ~relevant], 1))
    order = [table.columns.moving[number] for number in ranking.order[0].tolist()]
    assert [one["name"] for one in answer["columns"]] == [*order, "race", "sex"]
    assert [one["rank"] for one in answer["columns"]] == [*range(1, 9), None, None]
    assert answer["radius"]["only these move"] == pytest.approx(float(radii.radius[0, 0]))
    assert answer["radius"]["these are held"] is None
    assert answer["proven"] == {"only these move": True, "these are held": True}
    assert answer["at least"] == {"only these move": pytest.approx(float(radii.radius[0, 0])), "these are held": None}
    gain = answer["columns"][0]
    assert (gain["name"], gain["value"]) == ("capital_gain", 3908)
    assert gain["becomes"]["scales"] == pytest.approx((gain["becomes"]["value"] - 3908) / 7451.94)
    assert answer["relevant"][0]["replacement"] == f"${gain['becomes']['value']:,}"
    assert "no change of the other five columns within their ranges makes it >50K." in answer["in words"]
    assert (whole["input"], whole["label"]) == (3, "<=50K")


def test_the_last_sentence_is_about_what_is_proven(call: Call, tmp_path: Path) -> None:
    out = ("--json", "--out", tmp_path / "why.png")
    told = json.loads(call("explain", "--row", 3, "--fixed", "education,capital_loss", "--top", 1, *out)[0])
    words = told["explanations"][0]["in words"]
    assert told["explanations"][0]["radius"]["these are held"] is None
    assert words.endswith("Nothing else changes. No change of the other five columns within their ranges does it.")
    told = json.loads(call("explain", "--row", 0, "--top", 1, *out)[0])["explanations"][0]
    assert told["radius"]["only these move"] is None
    start = "<=50K; no change of capital gain alone, within its range, makes it >50K. If capital gain stays as it is, "
    assert told["in words"] == f"{start}the other seven columns must change by a length of 1.77 scales."


def test_a_table_of_ones_own(call: Call, folder: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "why.pdf", "--classes", "refused,granted")
    told = _flat(call("explain", *_own(folder, "--row", 4, "--columns", folder / "columns.json", *out))[0])
    assert "refused; granted if" in told or "granted; refused if" in told
    assert "no columns are left to move" in told
    assert "€" in told
    plain = json.loads(call("explain", *_own(folder, "--row", 4, "--fixed", "age,job", "--json", *out))[0])
    assert [one["name"] for one in plain["explanations"][0]["columns"]] == ["income", "age", "job"]


def test_rising_columns_only_rise(call: Call, folder: Path) -> None:
    own = ("--row", 4, "--subset", "income", "--json")
    free = json.loads(call("robustness", *_own(folder, *own))[0])["rows"][0]
    up, down = (
        json.loads(call("robustness", *_own(folder, *own, option, "income"))[0])["rows"][0]
        for option in ("--rising", "--falling")
    )
    assert free["radius"] in (up["radius"], down["radius"])
    assert {up["radius"], down["radius"]} == {free["radius"], None}, "two classes, divided by income"


def test_robustness_says_what_moves(call: Call) -> None:
    told = _flat(call("robustness", "--row", 17, "--subset", "capital_gain, age")[0])
    assert "2 of 8 columns" in told
    assert "1.019 (exact)" in told
    assert "<=50K; >50K if age were 37 years instead of 26 years" in told
    assert "proven that nothing in the bounds changes it" in _flat(
        call("robustness", "--row", 17, "--subset", "workclass")[0]
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--row", 5000], "the table has the rows 0 to 1999, got 5000"),
        (["--row", -1], "--row must be the number of a row, counted from 0, got -1."),
        (["--row", 1, "--digit", 3], "--digit and --row name different inputs: leave one of them out"),
        (["--table", "people.csv", "--digit", 3], "--digit and --table name different inputs"),
        (["--table", "people.csv", "--text", "a"], "--text and --table name different inputs"),
        (["--digit", 3, "--fixed", "age"], "--digit and --fixed name different inputs"),
        (["--fixed", "age"], "--fixed is about a row of a table: name the row with --row"),
        (["--table", "people.csv", "--row", 1], "name their file with --model"),
        (["--table", "none.csv", "--row", 1, "--model", "model.json"], "cannot read the table none.csv"),
        (["--row", 1, "--model", "none.json"], "cannot read the trees none.json"),
        (
            ["--row", 1, "--model", "model.pkl"],
            "is a pickle, which can run any code when it is opened: save XGBoost as",
        ),
        (["--row", 1, "--model", "trees"], "--model must be adult-trees, a file of trees"),
        (["--row", 1, "--columns", "columns.json"], "the trees for Adult read its columns"),
        (["--row", 1, "--columns", "none.json"], "cannot read columns from none.json"),
        (["--row", 1, "--target", "rich"], "there is no class 'rich': use one of <=50K, >50K"),
        (["--row", 1, "--target", ">50K"], "its own label >50K"),
        (["--row", 1, "--target", "7"], "target must be a class from 0 to 1"),
        (["--row", 1, "--fixed", "agee"], "there is no column of --fixed 'agee': did you mean age"),
        (["--row", 1, "--rising", "occupation"], "can neither rise nor fall"),
        (["--row", 1, "--falling", "age"], "cannot be both rising and falling"),
        (["--row", 1, "--label-column", "income"], "leave it out for the embedded table"),
        (["--row", 1, "--classes", "a,b"], "leave --classes out"),
        (["--row", 1, "--device", "meta"], "cannot be used here"),
        (["--row", 1, "--resize"], "--resize is not for tables"),
        (["--row", 1, "--features", "pixels"], "features of tables must be columns, got 'pixels'"),
        (["--row", 1, "--method", "grad"], "needs gradients"),
        (["--row", 1, "--out", "why.html"], "must end in a kind of picture"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(
    call: Call, folder: Path, arguments: list[object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    _refused(call, arguments, says)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--row", 80], "has the rows 0 to 79: there is no row 80"),
        (["--row", 1, "--classes", "a,b,c"], "classes"),
        (["--row", 1, "--label-column", "decisions"], "there is no column 'decisions': did you mean decision"),
        (["--row", 1, "--model", "regressor.json"], "predicts reg:squarederror: expected a classifier"),
        (["--row", 1, "--model", "narrow.json"], "trained on 3 columns, and columns.matrix gives 5"),
        (["--row", 1, "--model", "renamed.json"], "has 'wage' where the table has the column 'income'"),
        (["--row", 1, "--model", "columns.json"], "expected the JSON of an XGBoost or a CatBoost model"),
        (["--row", 1, "--model", "people.csv"], "must end in .json, .ubj, .txt or .skops"),
        (["--row", 1, "--fixed", "age,job,income"], "all columns are fixed"),
    ],
)
def test_wrong_models_are_refused_in_one_sentence(
    call: Call, folder: Path, more: list[object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    _refused(call, [*_own(Path()), *more], says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("age,job\n33,nurse\n", "there is no column 'income'"),
        ("age,job,wage\n33,nurse,2000\n", "there is no column 'income'"),
        ("age,job,income\n33,wizard,2000\n", "row 0 of odd.csv: there is no category of column 'job' 'wizard'"),
        ("age,job,income\n33,nurse,NaN\n", "column 'income' must hold numbers, got 'NaN' in row 0"),
        ("age,job,income\n33,nurse,\n", "column 'income' has no value in row 0"),
        (
            "age,job,income\n330,nurse,2000\n",
            "row 0 of odd.csv: column 'age' ranges from 20 to 60, got 330: correct it",
        ),
        ("age,job,income\n33.5,nurse,2000\n", "row 0 of odd.csv: column 'age' must hold whole numbers, got 33.5."),
    ],
)
def test_wrong_rows_are_refused_in_one_sentence(
    call: Call, folder: Path, text: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("odd.csv").write_text(text)
    _refused(call, ["--table", "odd.csv", "--row", 0, "--columns", "columns.json", "--model", "model.json"], says)


def test_a_class_among_the_columns_is_noticed(call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    _refused(call, ["--table", "people.csv", "--row", 0, "--model", "model.json"], "leave its class out of the columns")


def test_pictures_and_masks_are_for_images(call: Call) -> None:
    assert "--out is for images" in _flat(call("robustness", "--row", 1, "--out", "a.png", code=2)[1])
    assert "--mask is for images" in _flat(call("robustness", "--row", 1, "--mask", "a.png", code=2)[1])
    assert "did you mean age" in _flat(call("robustness", "--row", 1, "--subset", "agee", code=2)[1])


def _refused(call: Call, arguments: list[object], says: str) -> None:
    before = set(Path().iterdir())
    printed, said = call("explain", *arguments, code=2)
    assert says in _flat(said)
    assert printed == ""
    assert set(Path().iterdir()) == before, "nothing is written"
