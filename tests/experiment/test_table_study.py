"""Experiments on tables from end to end: the embedded trees, exact radii, and a page with the names of columns."""

from __future__ import annotations

import csv
import math
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.data.dataset import typical_row
from holdfast.data.table_experiments import TableData
from holdfast.experiment import Store, run
from holdfast.experiment.build import build
from holdfast.experiment.export import export
from holdfast.experiment.plan import plan_of
from holdfast.experiment.results import Results
from holdfast.experiment.study import Study
from holdfast.experiment.toml import load, named
from holdfast.reference import RandomRows
from holdfast.report.page import as_markdown, write_page

HEAD = """
title = "A few rows"
main = "Greedy"
block = 2
sizes = [1, 2]
"""
DATA = """
[data]
use = "tables"
count = 3
"""
REST = """
[explainers.LOO]
use = "leave-one-out"
reference = "typical"

[explainers.Random]
use = "random"

[explainers.Greedy]
use = "greedy"
budget = 2
step = 1

[criteria."Robustness-S̄r"]
use = "robustness-rest"

[criteria."Robustness-Sr"]
use = "robustness-relevant"

[criteria.Insertion]
use = "insertion"
reference = { first = 200, count = 50 }
draws = 2

[gallery]
examples = 1
top = 2
targets = 1
judge = "judge"
"""
OPTIONAL = """
[explainers.TreeSHAP]
use = "tree-shap"
references = { others = 20 }
optional = true

[explainers.Grad]
use = "grad"
optional = true

[explainers.Greedy]
use = "greedy"
step = 1

[criteria.Insertion]
use = "insertion"
reference = { others = 2000 }
"""
CHECKS = """
[analyses.diagnostics]
examples = 1
seeds = 2
judge = { use = "judge" }
"""


def _study(folder: Path, data: str = DATA, rest: str = REST, head: str = HEAD) -> Study:
    path = folder / "experiment.toml"
    path.write_text(f"{head}{data}{rest}", encoding="utf-8")
    return build(load(str(path)), "rows", folder)


def _computed(study: Study, path: Path) -> Results:
    with Store.open(path) as store:
        run(study, store)
    return Results(path)


@pytest.mark.slow
def test_an_experiment_on_a_table_ends_in_a_page_with_the_names_of_columns(tmp_path: Path) -> None:
    study = _study(tmp_path, rest=REST)
    assert study.columns is not None
    assert study.cases.features.names == (study.columns.moving,)
    results = _computed(study, tmp_path / "results.db")
    assert results.missing == 0
    measures = {measure.name: measure for measure in results.measures("table")}
    assert [measures[name].bound for name in ("Robustness-S̄r", "Insertion")] == ["exact", "exact"]
    assert measures["Robustness-Sr"].judge.startswith("ExactTrees")
    curve = results.curve("Greedy", measures["Robustness-S̄r"])
    assert curve is not None
    assert bool((curve.capped() <= curve.ceiling).all())
    assert torch.equal(curve.ceiling[:, 0], curve.ceiling[:, 1]), "unreachable counts the same at every size"
    tables = write_page(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>marital status</b>" in page
    assert "<mark>→ " in page
    assert "in words: " in page
    text = as_markdown(results, tables)
    if bool(curve.censored.any()):
        assert "proof that no change within the ranges" in text
    one = results.explanations()[0]["Greedy"]
    assert one.witness is not None
    assert one.cells[0].name == study.columns.moving[one.order[0]]
    assert torch.equal(one.x, study.cases.x[0])
    assert export(results, tmp_path / "values.csv") > 0
    with (tmp_path / "values.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {"row 0", "row 1", "row 2"} == {row["example"] for row in rows}


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped_bit_for_bit(tmp_path: Path) -> None:
    head = HEAD.replace('"Greedy"', '"LOO"')
    few = REST.partition("[explainers.Greedy]")[0] + REST[REST.index('[criteria."Robustness-Sr"]') :]
    study = _study(tmp_path, rest=few + CHECKS, head=head)
    whole = _computed(study, tmp_path / "whole.db")
    assert any(unit.kind == "diagnostics analysis" for unit in whole.units.values())
    with Store.open(tmp_path / "parts.db") as store:
        told: list[object] = []
        run(study, store, notify=told.append, stop=lambda: len(told) > 3)
    again = _computed(_study(tmp_path, rest=few + CHECKS, head=head), tmp_path / "parts.db")
    assert again.missing == 0
    assert again.units.keys() == whole.units.keys()
    for key, unit in whole.units.items():
        for name, array in unit.arrays.items():
            np.testing.assert_array_equal(array, again.units[key].arrays[name], err_msg=f"{unit.kind} {name}")
    with Store.open(tmp_path / "parts.db") as store:
        assert run(study, store).made == 0


def test_two_classes_are_asked_about_the_other_one(tmp_path: Path) -> None:
    study = _study(tmp_path)
    assert torch.equal(study.cases.target, 1 - study.cases.label)
    scores = study.method("LOO").explainers["both"](study.cases).scores
    assert bool((scores != 0).any(1).all()), "the score of the first class alone is always 0"


def test_a_typical_row_is_a_row() -> None:
    table = hf.data.adult()
    row = typical_row(table.columns, table.x)
    values = table.columns.decode(row[None])[0]
    assert values["workclass"] == "Private"
    assert values["capital_gain"] == 0
    assert bool(table.columns.domain().contains(row[None], row[None]).all())


def test_random_rows_are_rows_and_depend_on_the_seed(tmp_path: Path) -> None:
    study = _study(tmp_path)
    insertion = next(measure.criterion for measure in study.measures if measure.name == "Insertion")
    assert isinstance(insertion, hf.Insertion)
    assert isinstance(insertion.reference, RandomRows)
    rows = hf.data.adult().x[200:250]
    drawn = torch.stack([insertion.reference.drawn(study.cases.x, seed)[0] for seed in range(8)])
    assert bool((drawn[:, None] == rows).all(2).any(1).all())
    assert len(drawn.unique(dim=0)) > 1


@pytest.mark.slow
def test_a_forest_is_trained_on_the_other_rows(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    data = DATA.replace("count = 3", 'count = 3\nroot = "wine"') + '[model]\nuse = "table-forest"\n'
    study = _study(
        tmp_path,
        data,
        REST.replace("count = 50", "count = 0").replace("first = 200, count = 0", "first = 9, count = 50"),
    )
    assert study.about["table"] == "wine"
    assert "175 other rows" in study.about["trained on"]
    assert bool((study.cases.target == -1).all()), "three classes have logits or probabilities of their own"
    again = _study(tmp_path, data, REST.replace("first = 200", "first = 9"))
    assert torch.equal(study.cases.model(study.cases.x), again.cases.model(again.cases.x))
    assert math.isfinite(float(study.cases.model(study.cases.x).sum()))


@pytest.mark.parametrize(
    ("data", "rest", "words"),
    [
        (
            'use = "tables"\nroot = "wine"\n[model]\nuse = "table-trees"',
            REST.replace("first = 200", "first = 9"),
            "the embedded trees are for Adult, got wine",
        ),
        ('use = "tables"\nroot = "nowhere.csv"', REST, "nowhere.csv"),
        ('use = "tables"\ncount = 2000\nfirst = 1', REST, "ask for more than the 2000 examples"),
        ('use = "tables"\n[model]\nuse = "table-trees"\nweights = "train"', REST, "table-forest is trained"),
        ('use = "tables"\n[model]\nuse = "table-forest"\nweights = "embedded"', REST, 'should be "train"'),
        ('use = "tables"\n[model]\nuse = "mnist-cnn"', REST, "table-logistic or table-mlp for tables"),
        ('use = "tables"', REST.replace("top = 2", "top = 8"), "gallery.top, 8, should be under the 8 columns"),
        ('use = "tables"\ncount = 2000', REST.replace("first = 200, count = 50", "others = 5"), "and all are: lower"),
        ('use = "tables"', REST.replace("first = 200, count = 50", "others = 0"), "or { others = N }, at most so many"),
        ('use = "tables"', OPTIONAL.replace("step = 1", "optional = true"), "it cannot be optional"),
        (
            'use = "tables"\n[model]\nuse = "table-knn"\nrows = 50',
            OPTIONAL.replace("optional = true", ""),
            "TreeShap explains models that hf.trees made, got a NeighboursModel",
        ),
        (
            'use = "tables"\nroot = "wine"\ncount = 130\n[model]\nuse = "table-logistic"',
            REST.replace("first = 200", "first = 9"),
            "none of the 48 rows that are not explained is of class_0: set data.shuffle",
        ),
        ('use = "mnist"', REST, 'should not be "typical" for mnist: it is no table'),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, data: str, rest: str, words: str) -> None:
    with pytest.raises(hf.HoldfastError, match=re.escape(words)):
        plan_of(_study(tmp_path, f"\n[data]\n{data}\n", rest))


def test_the_named_experiment_loads() -> None:
    assert "paper-tabular" in named()
    made = build(load("paper-tabular"), "paper-tabular", Path("nowhere"), limit=2)
    assert made.main == "Greedy"
    assert made.about["table"] == "Adult"
    assert TableData().title == "Adult"


HOUSES = "MedInc,HouseAge,AveRooms,AveBedrms,Population,AveOccup,Latitude,Longitude,MedHouseVal"


def _houses(folder: Path, rows: int = 150) -> Path:
    """Write a small table of the form of California Housing, whose prices follow the incomes."""
    drawn = np.random.default_rng(0).random((rows, 8))
    lines = [",".join(f"{value:.4f}" for value in (*row, row[0] + 0.1 * row[1])) for row in drawn]
    path = folder / "houses.csv"
    path.write_text("\n".join([HOUSES, *lines]))
    return path


NETWORKS = {
    "table-forest": hf.TreeModel,
    "table-xgboost": hf.TreeModel,
    "table-knn": hf.NeighboursModel,
    "table-logistic": hf.TorchModel,
    "table-mlp": hf.TorchModel,
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("table", ["wine", "houses", "adult"])
def test_every_classifier_is_trained_on_every_table(table: str, name: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("xgboost")
    root = {"wine": 'root = "wine"', "houses": f'root = "{_houses(tmp_path).as_posix()}"', "adult": ""}[table]
    more = ("rows = 300\n" if table == "adult" else "") + ("epochs = 40" if name == "table-mlp" else "")
    data = f'[data]\nuse = "tables"\ncount = 20\nshuffle = 3\n{root}\n[model]\nuse = "{name}"\n{more}\n'
    first, second = (_study(tmp_path, data, OPTIONAL) for _ in range(2))
    model = first.cases.model
    assert isinstance(model, NETWORKS[name])
    assert torch.equal(model(first.cases.x), second.cases.model(second.cases.x)), (
        "the same settings, the same classifier"
    )
    assert model.domain is not None
    assert first.cases.features.names == (first.columns.moving if first.columns else (),)
    trained = first.about["trained on"]
    assert int(trained.partition("; ")[2].partition("%")[0]) >= 70, trained
    has_gradients, is_tree = name in ("table-logistic", "table-mlp"), NETWORKS[name] is hf.TreeModel
    assert ("Grad" in [one.name for one in first.methods]) == has_gradients
    with_shap = is_tree and find_spec("shap") is not None  # an extra
    assert ("TreeSHAP" in [one.name for one in first.methods]) == with_shap
    assert ("Grad: needs gradients" in first.about["left out"]) != has_gradients


def test_rows_are_shuffled_by_a_seed_and_keep_their_numbers() -> None:
    table = hf.data.wine()
    plain, drawn = (TableData(root="wine", shuffle=seed).load(None, None, "cpu") for seed in (None, 4))
    assert torch.equal(plain.x, table.x)
    assert not torch.equal(drawn.x, table.x)
    numbers = [int(name.removeprefix("row ")) for name in drawn.names]
    assert torch.equal(drawn.x, table.x[numbers])
    assert sorted(numbers) == list(range(178))


def test_others_are_those_that_are_not_explained_whatever_the_limit(tmp_path: Path) -> None:
    data = '[data]\nuse = "tables"\nroot = "wine"\nfirst = 10\ncount = 100\nshuffle = 0\n'
    assert TableData(root="wine", first=10, count=100).others(178).tolist() == [*range(10), *range(110, 178)]
    studies = []
    for limit in (2, None):
        (tmp_path / "experiment.toml").write_text(f"{HEAD}{data}{OPTIONAL}", encoding="utf-8")
        studies.append(build(load(str(tmp_path / "experiment.toml")), "rows", tmp_path, limit=limit))
    assert [len(one.cases) for one in studies] == [2, 100]
    assert studies[0].measures == studies[1].measures
    assert studies[0].about == studies[1].about
    insertion = studies[0].measures[0].criterion
    assert isinstance(insertion, hf.Insertion)
    assert isinstance(insertion.reference, RandomRows)
    assert len(insertion.reference.values) == 78
    explained = {tuple(row) for row in studies[1].cases.x.tolist()}
    assert not explained & {tuple(row) for row in insertion.reference.values.tolist()}


@pytest.mark.slow
def test_an_experiment_on_houses_ends_in_tables(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    data = f'[data]\nuse = "tables"\ncount = 4\nshuffle = 0\nroot = "{_houses(tmp_path).as_posix()}"\n'
    study = _study(tmp_path, data, REST.replace("first = 200, count = 50", "others = 30"))
    assert study.about["table"] == "California"
    assert "146 other rows" in study.about["trained on"], "the forest is the default where no embedded trees are"
    results = _computed(study, tmp_path / "results.db")
    assert results.missing == 0
    page = as_markdown(results, write_page(results, tmp_path / "report.html"))
    assert "Robustness-S̄r" in page
