"""Damaged stores: what is sound is kept, what is damaged is named, and nothing is lost without a word."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import holdfast as hf
from holdfast.cli.app import app
from holdfast.experiment import Results, Store, Unit, database, repair, run
from holdfast.experiment.export import rows
from holdfast.experiment.repair import check
from studies import toy_study

SCHEMA_1 = """
CREATE TABLE units (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, made_of TEXT NOT NULL, seconds REAL NOT NULL,
    forward INTEGER NOT NULL, gradient INTEGER NOT NULL, machine TEXT NOT NULL, notes TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE arrays (
    key TEXT NOT NULL REFERENCES units(key) ON DELETE CASCADE, name TEXT NOT NULL,
    dtype TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE TABLE studies (number INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE);
PRAGMA application_id = 1752132708;
PRAGMA user_version = 1;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of three units."""
    with Store.open(tmp_path / "results.db") as store:
        store.put(*map(_unit, range(3)))
        store.note_study({"name": "one"})
    return tmp_path / "results.db"


def _unit(number: int) -> Unit:
    return Unit("ranking", {"number": number}, {"order": np.arange(5) + number, "scores": np.ones(3)})


def _sql(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement, (_unit(1).key,) if "?" in statement else ())
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM arrays WHERE key = ? AND name = 'scores'",
        "UPDATE units SET made_of = '{\"number\":7}' WHERE key = ?",
        "UPDATE units SET machine = 'another' WHERE key = ?",
        "UPDATE units SET seconds = 'soon' WHERE key = ?",
        "UPDATE arrays SET dtype = 'int32', shape = '[10]' WHERE key = ? AND name = 'order'",
        "UPDATE arrays SET name = 'renamed' WHERE key = ? AND name = 'order'",
    ],
)
def test_a_changed_unit_is_refused_and_computed_again(path: Path, statement: str) -> None:
    _sql(path, statement)
    with Store.read(path) as store:
        with pytest.raises(hf.HoldfastError, match=f"are damaged .unit {_unit(1).key}.: holdfast check .*results.db"):
            list(store.units())
        assert store.get(_unit(0).key).arrays["order"].tolist() == [0, 1, 2, 3, 4], "others can be read"
    with pytest.warns(hf.HoldfastWarning, match=f"1 damaged unit .{_unit(1).key}.; 2 sound units"):
        store = Store.open(path)
    with store:
        assert store.keys() == {_unit(0).key, _unit(2).key}
        assert store.study() == {"name": "one"}
        store.put(_unit(1))
        assert len(list(store.units())) == 3
    assert path.with_name("results.db.damaged").exists()


def test_a_changed_study_is_refused(path: Path) -> None:
    with Store.open(path) as store:
        store.note_study({"name": "two"})
    _sql(path, "UPDATE studies SET number = 9 WHERE number = 1")  # the older one would become the latest
    with Store.read(path) as store, pytest.raises(hf.HoldfastError, match="a study is not what was written"):
        store.study()
    assert check(path)[0].studies == 1
    assert Store.read(path).study() == {"name": "two"}


def test_arrays_of_no_unit_are_damage(path: Path) -> None:
    _sql(path, "DELETE FROM units WHERE key = ?")
    with pytest.raises(hf.HoldfastError, match="belong to no unit"):
        Store.read(path)
    damage, kept = check(path)
    assert (damage.sound, kept) == (2, path.with_name("results.db.damaged"))
    with Store.open(path) as store:
        store.put(_unit(1))
        assert len(list(store.units())) == 3


def test_a_cut_file_keeps_the_units_that_are_left(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    noise = np.random.default_rng(0)
    units = [Unit("big", {"number": number}, {"values": noise.random(2000)}) for number in range(60)]
    with Store.open(path) as store:
        store.note_study({"units": [{"key": unit.key} for unit in units]})
        store.put(*units)
    os.truncate(path, path.stat().st_size * 9 // 10)
    before = path.read_bytes()
    damage, _ = check(path, dry_run=True)
    assert path.read_bytes() == before, "a dry run changes nothing"
    assert damage.file
    assert 0 < damage.sound < 60
    assert check(path)[0].sound == damage.sound
    assert not check(path)[0], "it is repaired"
    assert len(list(Store.read(path).units())) == damage.sound


def test_stores_of_the_first_schema_are_read_and_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA_1)
    for number in range(2):
        unit = _unit(number)
        row = (unit.key, unit.kind, f'{{"number":{number}}}', 0.5, 1, 2, "m", '["note"]')
        connection.execute("INSERT INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        for name, array in unit.arrays.items():
            packed = (array.dtype.name, json.dumps(array.shape), zlib.compress(array.tobytes()))
            connection.execute("INSERT INTO arrays VALUES (?, ?, ?, ?, ?)", (unit.key, name, *packed))
    connection.execute('INSERT INTO studies VALUES (1, \'{"name":"old"}\')')
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with Store.read(path) as store:
        assert len(list(store.units())) == 2
        assert store.study() == {"name": "old"}
    assert path.read_bytes() == before, "reading changes nothing"
    with Store.open(path) as store:
        assert [unit.notes for unit in store.units()] == [("note",), ("note",)]
        assert store.study() == {"name": "old"}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["results.db", "results.db.lock"], "nothing was damaged"
    _sql(path, "UPDATE units SET machine = 'n'")
    assert len(check(path)[0].units) == 2, "units have checksums now"


def test_a_second_damage_does_not_replace_the_first_copy(path: Path) -> None:
    for number in range(2):
        _sql(path, f"UPDATE units SET machine = 'x{number}' WHERE key = (SELECT min(key) FROM units)")
        check(path)
    assert sorted(one.name for one in path.parent.glob("*.damaged*")) == ["results.db.damaged", "results.db.damaged1"]


@pytest.mark.parametrize("make", [lambda lock, other: lock.symlink_to(other), lambda lock, _: os.mkfifo(lock)])
def test_a_lock_is_a_regular_file(tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    other = tmp_path / "precious.txt"
    other.write_text("precious")
    make(tmp_path / "results.db.lock", other)
    with pytest.raises(hf.HoldfastError, match="cannot lock the results"):
        Store.open(tmp_path / "results.db")
    assert other.read_text() == "precious"


def test_paths_that_are_no_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    for name in ("x" * 300, "a\0b", "pipe.db"):
        for way in (Store.open, Store.read, check):
            with pytest.raises(hf.HoldfastError, match="results"):
                way(tmp_path / name)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a regular file that cannot be read is Linux's")
@pytest.mark.parametrize("way", [Store.open, Store.read, check, lambda path: check(path, dry_run=True)])
def test_a_regular_file_that_cannot_be_read_is_refused(way: Callable[[str], object]) -> None:
    with pytest.raises(hf.HoldfastError, match=r"cannot (read|lock) the results"):
        way("/proc/self/mem")
    told = CliRunner().invoke(app, ["check", "/proc/self/mem"])
    assert isinstance(told.exception, hf.HoldfastError)


def test_an_array_that_grows_out_of_proportion_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        for number in range(20):
            store.put(Unit("zeros", {"number": number}, {"a": np.zeros(5_000_000)}))
    assert path.stat().st_size < 2**20
    with Store.read(path) as store, pytest.raises(hf.HoldfastError, match="far more than the file could hold"):
        sum(1 for _ in store.units())


def test_a_damaged_unit_is_computed_to_the_same_bits(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    study = toy_study({"grad": hf.Grad(), "random": hf.Random()})
    with Store.open(path) as store:
        run(study, store)
    before = list(rows(Results(path)))
    with Store.read(path) as store:
        curve = next(store.units("curve"))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM arrays WHERE key = ? AND name = 'values'", (curve.key,))
    connection.close()
    with pytest.raises(hf.HoldfastError, match="are damaged"):
        Results(path)
    told = CliRunner().invoke(app, ["check", str(path), "--dry-run"])
    assert told.exit_code == 1
    assert f"({curve.key})" in told.output
    assert "damaged: curve, " in told.output
    repaired = CliRunner().invoke(app, ["check", str(tmp_path), "--json"])
    assert (repaired.exit_code, json.loads(repaired.output)["damaged"]) == (1, [curve.key])
    assert Results(path).missing == 1
    with Store.open(path) as store:
        assert run(study, store).made == 1
    assert list(rows(Results(path))) == before
    assert CliRunner().invoke(app, ["check", str(path)]).exit_code == 0


def test_a_store_is_repaired_behind_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "user" / "results.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with Store.open(path), pytest.raises(hf.HoldfastError, match="is being written by"):
        Store.open(link)
    _sql(path, "UPDATE units SET machine = 'another' WHERE key = ?")
    damaged = path.read_bytes()
    assert check(link)[1] == path.with_name("results.db.damaged")
    assert path.with_name("results.db.damaged").read_bytes() == damaged
    assert link.is_symlink()
    assert len(Store.read(link)) == 2


def test_a_store_that_another_run_made_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.db"
    lock = database.lock

    def late(place: Path) -> Any:
        monkeypatch.setattr(database, "lock", lock)
        with Store.open(place) as store:
            store.put(_unit(0))
        return lock(place)

    monkeypatch.setattr(database, "lock", late)
    with Store.open(path) as store:
        assert store.keys() == {_unit(0).key}


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk I/O error"), MemoryError()])
def test_what_cannot_be_read_now_is_not_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: sqlite3.OperationalError | MemoryError
) -> None:
    if isinstance(error, sqlite3.Error):
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ

    def fails(*_: object) -> None:
        raise error

    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(repair, "unit_checksum", fails)
        for way in (Store.open, check):
            with pytest.raises(hf.HoldfastError, match="cannot use the results"):
                way(path)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.damaged*"))
    assert not check(path)[0]


@pytest.mark.filterwarnings("ignore:the results .* were damaged")
def test_a_repaired_store_computes_lost_units_in_their_batches(tmp_path: Path) -> None:
    study = toy_study({"grad": hf.Grad(), "random": hf.Random(), "other": hf.Random(1)})
    for name in ("run", "check"):
        path = tmp_path / f"{name}.db"
        with Store.open(path) as store:
            run(study, store)
        before = list(rows(Results(path)))
        with Store.read(path) as store:
            curve = next(store.units("curve"))
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE units SET machine = 'x' WHERE key = ?", (curve.key,))
            connection.execute("DELETE FROM studies")
        connection.close()
        if name == "check":
            check(path)
        computed: set[str] = set()
        with Store.open(path) as store:
            run(study, store, notify=lambda at, seen=computed: seen.update(j.key for b in at.out for j in b))  # type: ignore[misc]
        assert len(computed) > 1, "the unit was computed with its batch"
        assert list(rows(Results(path))) == before
