"""Files of tree ensembles: all formats, pickles, damage."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import skops.io
import torch
import xgboost
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import holdfast as hf
from tree_fits import FITS, catboost_record
from tree_models import Array, fitted, library_scores, table

SAFE = (
    "save XGBoost as .json or .ubj, LightGBM as .txt, CatBoost as .json, and scikit-learn with skops.io.dump as .skops."
)
PICKLED = f"it is a pickle, which can run any code when it is opened: {SAFE}"


def _saved(folder: Path, name: str) -> tuple[Any, Path]:
    model = FITS[name](*table())
    kind = {"xgboost": "ubj", "lightgbm": "txt"}.get(name, "skops")
    path = folder / f"model.{kind}"
    if kind == "ubj":
        model.save_model(path)
    elif kind == "txt":
        model.booster_.save_model(path)
    else:
        skops.io.dump(model, path)
    return model, path


def _refusal(path: Path) -> str:
    with pytest.raises(hf.HoldfastError) as caught:
        hf.trees(path)
    said = str(caught.value)
    assert said.startswith(f"cannot read the trees {path}: ")
    assert said.endswith(".")
    return said.removeprefix(f"cannot read the trees {path}: ")


FILES = ["tree", "forest", "extra trees", "gradient boosting", "histograms", "xgboost", "lightgbm"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_scores_of_its_classifier(name: str, tmp_path: Path) -> None:
    model, path = _saved(tmp_path, name)
    rows = np.random.default_rng(0).normal(size=(50, 3))
    made = hf.trees(path)
    np.testing.assert_array_equal(made(torch.from_numpy(rows)), hf.trees(model)(torch.from_numpy(rows)))
    np.testing.assert_allclose(made(torch.from_numpy(rows)).numpy(), library_scores(model, rows), atol=1e-5)
    assert hf.trees(str(path), classes=["a", "b", "c"]).classes == ("a", "b", "c")


@pytest.mark.parametrize("kind", ["json", "ubj"])
def test_early_stopping_is_read_as_the_writer_predicts(kind: str, tmp_path: Path) -> None:
    x = table()[0]
    model, rows = FITS["xgboost stopped"](*table()), torch.from_numpy(x)
    model.save_model(tmp_path / f"a.{kind}")
    model.get_booster().save_model(tmp_path / f"b.{kind}")
    every = model.get_booster().predict(xgboost.DMatrix(x), output_margin=True)
    np.testing.assert_allclose(hf.trees(tmp_path / f"a.{kind}")(rows), library_scores(model, x), atol=1e-5)
    np.testing.assert_allclose(hf.trees(tmp_path / f"b.{kind}")(rows), every, atol=1e-5)
    assert not np.allclose(every, library_scores(model, x))


def test_a_pipeline_is_read_from_its_file(tmp_path: Path) -> None:
    x, y = table()
    pipe = make_pipeline(StandardScaler(), FITS["forest"](x, y)).fit(x, y)
    skops.io.dump(pipe, tmp_path / "a.skops")
    rows = np.random.default_rng(0).normal(size=(50, 3))
    expected = pipe.predict_proba(rows)
    np.testing.assert_allclose(hf.trees(tmp_path / "a.skops")(torch.from_numpy(rows)), expected, atol=1e-12)


@pytest.mark.parametrize("suffix", ["pkl", "pickle", "joblib", "sav", "json", "ubj", "txt", "skops"])
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickles_are_refused_whatever_they_are_called(suffix: str, protocol: int, tmp_path: Path) -> None:
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(pickle.dumps(fitted("tree"), protocol))
    assert _refusal(path) == PICKLED
    joblib = pytest.importorskip("joblib")
    joblib.dump(fitted("tree"), path)
    assert _refusal(path) == PICKLED


def test_other_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    assert _refusal(path) == f"its name must end in .json, .ubj, .txt or .skops: {SAFE}"
    path = tmp_path / "a.json"
    path.write_text(json.dumps(lightgbm.LGBMClassifier(n_estimators=1, verbose=-1).fit(*table()).booster_.dump_model()))
    assert _refusal(path) == "expected the JSON of an XGBoost or a CatBoost model; LightGBM saves its models as .txt."
    path.write_text("[" * 100_000)
    assert "recursion" in _refusal(path)
    path.write_text('{"learner": ' + "9" * 10_000 + "}")
    _refusal(path)
    path.unlink()
    os.mkfifo(path)
    assert _refusal(path) == "it is not a regular file."
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\xfe\x00")
    _refusal(path)
    path.write_text("tree\nversion=v4\n")
    assert "has no line 'end of trees'" in _refusal(path)
    path = tmp_path / "b.skops"
    skops.io.dump(LogisticRegression().fit(*table()), path)
    assert _refusal(path) == "it holds a LogisticRegression: expected a tree classifier of scikit-learn."
    skops.io.dump(fitted("xgboost"), path)
    assert _refusal(path) == f"it holds xgboost.core.Booster, which skops does not trust: {SAFE}"


def test_skops_is_named_when_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, path = _saved(tmp_path, "tree")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    assert _refusal(path) == "reading .skops requires skops: pip install skops."


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    _, path = _saved(tmp_path, "tree")
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\x01\x02")
    content[place + 24 : place + 28] = (2**31 - 1).to_bytes(4, "little")  # the size that is claimed
    path.write_bytes(content)
    assert _refusal(path) == "it unpacks to more than 1 GiB."


Change = Callable[[Any], Any]


def _set(record: Any, value: Any, *names: Any) -> None:
    for name in names[:-1]:
        record = record[name]
    record[names[-1]] = value


MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 0)
PARAMETERS = ("learner", "learner_model_param")
HOSTILE: list[tuple[tuple[Any, ...], Any, str]] = [
    ((*TREE, "left_children", 0), 0, "a node has several parents"),
    ((*TREE, "left_children", 1), 0, "a node has several parents"),
    ((*TREE, "left_children", 0), 10**6, "a child that its tree does not have"),
    ((*TREE, "left_children", 0), -7, "a child that its tree does not have"),
    ((*TREE, "left_children", 0), 10**30, "damaged"),
    ((*TREE, "left_children", 0), 1.5, "damaged"),
    ((*TREE, "left_children"), [], "damaged"),
    ((*TREE, "left_children"), {}, "damaged"),
    ((*TREE, "split_indices", 0), 3, "splits column 3, and rows have 3 columns"),
    ((*TREE, "split_indices", 0), -1, "several parents, or none"),
    ((*TREE, "split_indices", 0), 2**31 - 1, "damaged"),
    ((*TREE, "split_conditions", 0), float("nan"), "a threshold is NaN"),
    ((*TREE, "split_conditions"), ["0.5"] * 99, "damaged"),
    ((*TREE, "split_conditions", -1), float("inf"), "the value of a leaf is not finite"),
    ((*TREE, "split_conditions", -1), 1e300, "the value of a leaf is not finite"),
    ((*TREE, "split_conditions", -1), "0.5", "damaged"),
    ((*TREE, "split_conditions", -1), None, "damaged"),
    ((*TREE, "split_type"), "x", "damaged"),
    (TREE, {}, "damaged"),
    ((*MODEL, "trees"), [], "has 3 classes and 0 trees"),
    ((*MODEL, "trees"), None, "damaged"),
    ((*MODEL, "tree_info"), [0], "damaged"),
    ((*MODEL, "tree_info", 0), 3, "adds to class 3 of 3"),
    ((*MODEL, "tree_info", 0), -1, "adds to class -1 of 3"),
    ((*PARAMETERS, "num_class"), "1000000000", "has 1000000000 classes and 18 trees"),
    ((*PARAMETERS, "num_feature"), "1000000000000", "from 1 to 1048576 are read"),
    ((*PARAMETERS, "num_feature"), "0", "has 0 columns"),
    ((*PARAMETERS, "base_score"), "[" * 100_000, "damaged"),
    ((*PARAMETERS, "base_score"), "NaN", "finite first score"),
    ((*PARAMETERS, "base_score"), "[1, 2]", "damaged"),
    (("learner", "feature_names"), ["a"], "it names 1 columns and has 3"),
    (("learner", "attributes"), {"scikit_learn": "", "best_iteration": "99"}, "damaged"),
    (("learner",), [], "damaged"),
]


@pytest.fixture(scope="module")
def record() -> Any:
    return json.loads(fitted("xgboost").get_booster().save_raw("json"))


@pytest.mark.parametrize(("place", "value", "said"), HOSTILE)
def test_a_hostile_model_of_xgboost_is_refused(
    place: tuple[Any, ...], value: Any, said: str, record: Any, tmp_path: Path
) -> None:
    changed = copy.deepcopy(record)
    _set(changed, value, *place)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(changed))
    assert said in _refusal(path)


LINES = [
    ("threshold=", "threshold=nan ", "damaged"),
    ("threshold=", "threshold=x", "damaged"),
    ("split_feature=", "split_feature=7 ", "damaged"),
    ("split_feature=", "split_feature=-1 ", "damaged"),
    ("left_child=", "left_child=0 ", "damaged"),
    ("num_leaves=", "num_leaves=9", "damaged"),
    ("leaf_value=", "leaf_value=inf ", "damaged"),
    ("num_class=", "num_class=7", "damaged"),
    ("num_class=", "num_class=0", "damaged"),
    ("num_class=", "num_class=-3", "damaged"),
    ("max_feature_idx=", "max_feature_idx=0", "damaged"),
    ("max_feature_idx=", "max_feature_idx=99999999999", "damaged"),
    ("end of trees", "", "no line 'end of trees'"),
    ("tree_sizes=", "tree_sizes=1", "trees are missing"),
    ("objective=", "objective=lambdarank", "predicts lambdarank"),
]


@pytest.mark.parametrize(("old", "new", "said"), LINES)
def test_a_hostile_model_of_lightgbm_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    _, path = _saved(tmp_path, "lightgbm")
    lines = path.read_text().split("\n")
    place = next(number for number, line in enumerate(lines) if line.startswith(old))
    rest = lines[place].split(" ", 1)[1] if new.endswith(" ") else ""  # the first number is replaced
    lines[place] = new + rest
    path.write_text("\n".join(lines))
    assert said in _refusal(path)


def test_lightgbm_with_a_tree_fewer_is_refused(tmp_path: Path) -> None:
    _, path = _saved(tmp_path, "lightgbm")
    head, *trees = path.read_text().split("Tree=")
    path.write_text("Tree=".join([head, *trees[1:]]))
    assert "trees are missing" in _refusal(path)


def test_a_hostile_file_of_skops_is_refused(tmp_path: Path) -> None:
    _, path = _saved(tmp_path, "tree")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    found = {name: np.load(io.BytesIO(data)) for name, data in members.items() if name.endswith(".npy")}
    [name] = [name for name, array in found.items() if array.dtype.names]
    for field, value, said in [
        ("left_child", 0, "several parents"),
        ("left_child", 10**9, "a child that its tree does not have"),
        ("feature", 9, "splits column 9"),
        ("feature", -1, "damaged"),
        ("threshold", np.nan, "a threshold is NaN"),
    ]:
        nodes = found[name].copy()
        nodes[field][0] = value
        assert said in _refusal(_zipped(path, members | {name: _npy(nodes)}))
    assert "damaged" in _refusal(_zipped(path, members | {name: _npy(found[name][:3])}))
    assert "damaged" in _refusal(_zipped(path, members | {name: _npy(np.zeros(5))}))
    deep = b"[" * 100_000
    assert "recursion" in _refusal(_zipped(path, members | {"schema.json": deep}))


def _npy(array: Array) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_record_of_catboost_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(catboost_record([[1.0, 2.0, 3.0, 4.0]], [0.25], "Logloss")))
    assert hf.trees(path)(torch.tensor([[0.6, 2.1]], dtype=torch.float64)).tolist() == [[-4.125, 4.125]]
