from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.experiment import Store, Unit
from holdfast.experiment.repair import check
from holdfast.experiment.store import key_of
from speed import slowness

WRITER = """
import sys
import numpy as np
from holdfast.experiment import Store, Unit
with Store.open(sys.argv[1]) as store:
    for number in range(100_000):
        store.put(Unit("count", {"number": number}, {"a": np.full(2000, number), "b": np.full(3, number)}))
        print(number, flush=True)
"""


def _unit(number: int = 0, **extra: Any) -> Unit:
    return Unit("ranking", {"explainer": "Grad()", "example": number}, {"order": np.arange(5) + number}, **extra)


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    arrays: dict[str, np.ndarray] = {
        "order": np.arange(12, dtype=np.int16).reshape(3, 4),
        "values": np.array([1.5, np.inf, np.nan], dtype=np.float64),
        "none": np.zeros((0, 3), dtype=np.float32),
        "yes": np.array([[True], [False]]),
        "one": np.array(7),
    }
    made_of = {"explainer": "S̄r", "sizes": [0.05, 0.1]}
    with Store.open(tmp_path / "results.db") as store:
        store.put(Unit("curve", made_of, arrays, 0.5, 10, 3, "a machine", ("a note",)))
    found = Store.read(tmp_path / "results.db").get(key_of("curve", made_of))
    assert (found.kind, dict(found.made_of), found.seconds, found.forward, found.gradient, found.notes) == (
        "curve",
        made_of,
        0.5,
        10,
        3,
        ("a note",),
    )
    assert set(found.arrays) == set(arrays)
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_a_key_is_the_content_and_not_its_spelling() -> None:
    assert key_of("a", {"x": 1, "y": [2]}) == key_of("a", {"y": [2], "x": 1})
    assert key_of("a", {"x": 1}) != key_of("b", {"x": 1})
    assert key_of("a", {"x": 1}) != key_of("a", {"x": 2})


def test_the_first_stays_and_the_order_does_not_depend_on_when(tmp_path: Path) -> None:
    orders = []
    for place, numbers in enumerate(([0, 1, 2], [2, 0, 1, 0])):
        with Store.open(tmp_path / f"{place}.db") as store:
            for number in numbers:
                store.put(_unit(number, seconds=float(place)))
            assert len(store) == 3
            assert _unit(1).key in store
            assert "nothing" not in store
            orders.append([dict(unit.made_of) for unit in store.units("ranking")])
            assert list(store.units("curve")) == []
    assert orders[0] == orders[1]


def test_a_killed_writer_loses_at_most_the_unit_in_flight(tmp_path: Path) -> None:
    for trial in range(3):
        path = tmp_path / f"{trial}.db"
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said = [int(writer.stdout.readline()) for _ in range(20 + 7 * trial)][-1]
            writer.send_signal(signal.SIGKILL)
            said = max([said, *map(int, writer.stdout.read().split())])
        with Store.open(path) as store:  # nobody holds it any more
            numbers = sorted(unit.made_of["number"] for unit in store.units())
            assert numbers[: said + 1] == list(range(said + 1))
            assert len(numbers) <= said + 2
            for unit in store.units():
                assert (unit.arrays["a"] == unit.made_of["number"]).all()
                assert unit.arrays["b"].shape == (3,)
            store.put(_unit())


def test_whoever_comes_second_is_told_who_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        store.put(_unit())
        with pytest.raises(hf.HoldfastError, match=f"is being written by process {os.getpid()} on "):
            Store.open(path)
        assert len(Store.read(path)) == 1, "readers never wait"
    Store.open(path).close()


def test_files_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "text.db", tmp_path / "other.db"
    text.write_text("not a database, but long enough to be mistaken for one " * 20)
    sqlite3.connect(other).execute("CREATE TABLE mine (x)").connection.close()
    for path, says in ((text, "is not a file of holdfast's results"), (other, "is not a file of holdfast's results")):
        before = path.read_bytes()
        for way in (Store.open, Store.read, check):
            with pytest.raises(hf.HoldfastError, match=says):
                way(path)
        assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [other, text], "no lock is left"


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    Store.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(hf.HoldfastError, match="written by a newer holdfast \\(schema 99, this one knows 2\\)"):
        Store.open(path)
    assert path.read_bytes() == before


def test_places_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    with pytest.raises(hf.HoldfastError, match="does not exist"):
        Store.open(tmp_path / "nowhere" / "results.db")
    with pytest.raises(hf.HoldfastError, match="there are no results"):
        Store.read(tmp_path / "results.db")
    (tmp_path / "results.db.lock").mkdir()
    with pytest.raises(hf.HoldfastError, match=r"cannot lock the results .* Is a directory"):
        Store.open(tmp_path / "results.db")


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        store.put(_unit(0))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")  # what a full disk looks like to SQLite
        noise = np.random.default_rng(0).random(100_000)
        with pytest.raises(hf.HoldfastError, match="database or disk is full"):
            store.put(Unit("big", {"x": 1}, {"noise": noise}))
        assert len(store) == 1
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.put(Unit("big", {"x": 1}, {"noise": noise}))
    assert len(Store.read(path)) == 2


def test_only_plain_arrays_and_plain_numbers_are_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as store:
        with pytest.raises(hf.HoldfastError, match="'o' is of object, which results do not hold"):
            store.put(Unit("x", {}, {"o": np.array([{}])}))
        with pytest.raises(ValueError, match="not JSON compliant"):
            store.put(Unit("x", {"value": float("nan")}, {}))
        with pytest.raises(hf.HoldfastError, match="holds no unit"):
            store.get("nothing")
        assert len(store) == 0


def test_results_are_read_where_nothing_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path / "results.db") as store:
        store.put(_unit())
    assert [path.name for path in tmp_path.iterdir() if "-" in path.name] == [], "no log is left beside it"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert len(Store.read(tmp_path / "results.db")) == 1
    assert [path.name for path in tmp_path.iterdir() if "-" in path.name] == [], "and none is made"


def test_what_is_damaged_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        store.put(_unit())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE arrays SET data = x'00ff'")
    with pytest.raises(hf.HoldfastError, match="are damaged"):
        list(Store.read(path).units())


@pytest.mark.slow
def test_ten_thousand_units_are_small_and_quick_to_read(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        store._connection.execute("PRAGMA synchronous=OFF")  # the test need not survive a power cut
        for number in range(10_000):
            order = generator.permutation(784).astype(np.int16)
            arrays: dict[str, np.ndarray] = {"order": order, "values": generator.random(9).astype(np.float32)}
            store.put(Unit("ranking", {"number": number}, arrays))
    assert path.stat().st_size < 50 * 2**20
    started = time.perf_counter()
    assert sum(1 for _ in Store.read(path).units()) == 10_000
    assert time.perf_counter() - started < 10 * slowness()
