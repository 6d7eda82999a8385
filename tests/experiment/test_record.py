"""The record of a study: stored as JSON, read back as it was, and refused in one sentence if it is damaged."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.experiment import Gallery, Store, plan_of
from holdfast.experiment.record import StudyRecord
from holdfast.experiment.results import Results
from studies import small_study, toy_study


def _stored(record: StudyRecord, path: Path) -> StudyRecord:
    with Store.open(path) as store:
        store.note_study(record.plain())
    return Results(path).study


def test_a_study_comes_back_as_it_was(tmp_path: Path) -> None:
    for name, study in (("small", small_study()), ("toy", toy_study({"Grad": hf.Grad()}))):
        record = plan_of(study).record
        again = _stored(record, tmp_path / f"{name}.db")
        assert again == record
        texts = [json.dumps(one.plain(), sort_keys=True) for one in (again, record)]
        assert texts[0] == texts[1], "types too: 1 is not 1.0"
        assert again.units == record.units
        assert StudyRecord.parse(json.loads(json.dumps(record.plain())), "x") == record


def test_numbers_keep_their_kind(tmp_path: Path) -> None:
    base = toy_study({"Grad": hf.Grad()})
    counted = replace(base, sizes=(1, 2), gallery=Gallery(1, top=1, targets=0))
    shares = replace(base, sizes=(0.25, 1.0), gallery=Gallery(1, top=1.0, targets=0))
    for number, study in enumerate((counted, shares)):
        record = _stored(plan_of(study).record, tmp_path / f"{number}.db")
        kind = type(study.sizes[0])
        assert {type(size) for size in record.sizes} == {type(record.top)} == {kind}


def test_what_is_in_a_record() -> None:
    study = small_study()
    record = plan_of(study).record
    assert (record.name, record.title, record.main) == ("small", "A small experiment", "Greedy-AS")
    assert (record.feature_count, record.modality, record.published) == (16, "image", "mnist")
    assert record.classes == tuple("0123456789")
    assert record.examples == ("mnist #10", "mnist #11", "mnist #12")
    assert record.blocks == ((0, 2), (2, 3))
    assert record.settings.keys() == {"references", "sanity", "sensitivity", "diagnostics", "gallery"}
    greedy = next(method for method in record.methods if method.name == "Greedy-AS")
    assert greedy.explainers.keys() == {"rest", "relevant"}
    first = record.measures[0]
    assert (first.family, first.side, first.higher, first.bound) == ("Robustness", "rest", True, "upper")
    assert first.judge == repr(hf.MinNorm(steps=12))
    probe = next(measure for measure in record.measures if measure.group == "probe")
    assert (probe.name, probe.judge, probe.why) == ("Insertion, margin", "", "is it the margin?")
    extra = [measure.variant for measure in record.measures if measure.group == "extra"]
    assert extra == ["uniform", "uniform", "0", "0", "1", "1"]
    assert {measure.analysis for measure in record.measures} == {"", "references"}


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        (lambda record: record.pop("main"), "main"),
        (lambda record: record.update(sizes="all"), "sizes"),
        (lambda record: record["units"][0]["role"].update(block="first"), "units.0.role.block"),
        (lambda record: record["methods"].append(3), "methods.1"),
    ],
)
def test_a_damaged_record_is_one_sentence(damage: Callable[[dict[str, Any]], Any], where: str, tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    content = json.loads(json.dumps(plan_of(toy_study({"Grad": hf.Grad()})).record.plain()))
    damage(content)
    with Store.open(path) as store:
        store.note_study(content)
    with pytest.raises(hf.HoldfastError) as caught:
        Results(path)
    message = str(caught.value)
    assert message.startswith(f"{path} holds a study that this version of holdfast cannot read (at {where}")
    assert message.endswith("): run the experiment again.")
    assert "\n" not in message


def test_a_study_that_is_no_record_at_all_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        store.note_study([1, 2])  # type: ignore[arg-type]  # what another program may have stored
    with pytest.raises(hf.HoldfastError, match=r"cannot read \(at "):
        Results(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE studies SET content = '{not json'")
    with pytest.raises(hf.HoldfastError, match="a study is not what was written"):
        Results(path)
