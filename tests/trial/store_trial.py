"""Damaged stores: flip bits or cut bytes, then read, repair, run again, and compare everything bit for bit.

Allowed: a reader refuses in one sentence or sees exactly what was written; a run computes what is damaged again, to the
same bits, or refuses a file whose header does not say that it is a store.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

import holdfast as hf
from holdfast.experiment import Results, Store, Study, run
from holdfast.experiment.export import Row, rows
from holdfast.experiment.repair import check
from studies import small_study, toy_study
from trial.tally import Tally

SHORT, LONG = 40, 2_000
_PASSES = 4  # of this many attempts, one is on the small experiment with all kinds of units; it takes longer
Content = Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, bytes], tuple[str, ...]]]


@cache
def _studies() -> tuple[Study, Study]:
    toys = toy_study({"grad": hf.Grad(), "random": hf.Random(), "ig": hf.IntegratedGradients(0.5)})
    return toys, small_study(limit=1)


def trial(count: int, seed: int) -> Tally:
    """Damage ``count`` copies of two stores."""
    tally = Tally(seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        sound = []
        for number, study in enumerate(_studies()):
            path = folder / f"sound{number}.db"
            with Store.open(path) as store:
                run(study, store)
            sound.append((path, _content(path), list(rows(Results(path)))))
        for attempt in range(count):
            draw = random.Random(f"{seed} {attempt}")
            number = int(attempt % _PASSES == 0)
            place = folder / f"attempt{attempt}"
            place.mkdir()
            try:
                tally.count(_attempt(place / "results.db", _studies()[number], *sound[number], draw))
            except Exception as error:
                tally.fail(f"attempt {attempt}: {type(error).__name__}: {error}")
            shutil.rmtree(place)
    return tally


def _attempt(path: Path, study: Study, source: Path, content: Content, exported: list[Row], draw: random.Random) -> str:
    """Damage one copy and see that nothing is lost; return what happened."""
    shutil.copy(source, path)
    damage = _damage(path, draw)
    try:
        seen = list(rows(Results(path)))
        assert seen == exported, f"{damage}: {len(seen)} rows were read, {len(exported)} were written, without a word"
        read = "read"
    except hf.HoldfastError as error:
        _check_sentence(error, damage)
        read = "refused"
    try:
        if draw.random() < 0.5:
            check(path)
        with Store.open(path) as store:
            summary = run(study, store)
    except hf.HoldfastError as error:
        _check_sentence(error, damage, "is not a file of holdfast's results", "newer holdfast")
        return "header refused"
    assert (summary.missing, summary.failed) == (0, {}), f"{damage}: {summary}"
    assert read == "refused" or summary.made == 0, (
        f"{damage}: {summary.made} units were missing, and readers said nothing"
    )
    assert _content(path) == content, f"{damage}: values differ after the run"
    assert list(rows(Results(path))) == exported, f"{damage}: exported values differ after the run"
    return f"{read}, {'repaired' if summary.made else 'nothing to compute'}"


def _damage(path: Path, draw: random.Random) -> str:
    """Damage a file in one of several ways; mostly flip one bit."""
    data = bytearray(path.read_bytes())
    way = draw.choices(["flip", "flips", "zero", "cut", "row"], [70, 10, 8, 4, 8])[0]
    if way == "row":
        return _lose_a_row(path, draw)
    if way in ("flip", "flips"):
        bits = [draw.randrange(8 * len(data)) for _ in range(1 if way == "flip" else draw.randrange(2, 50))]
        for bit in bits:
            data[bit // 8] ^= 1 << bit % 8
        what = f"{way} {bits[:5]}"
    else:
        start = draw.randrange(len(data))
        stop = min(len(data), start + draw.randrange(1, 8192))
        if way == "zero":
            data[start:stop] = bytes(stop - start)
        else:
            del data[start:]
        what = f"{way} {start} {stop}"
    path.write_bytes(data)
    return what


def _lose_a_row(path: Path, draw: random.Random) -> str:
    """Change a store by SQL, so that the file itself is sound."""
    statement = draw.choice(
        [
            "DELETE FROM arrays WHERE rowid_ = ?",
            "UPDATE arrays SET data = zeroblob(length(data)) WHERE rowid_ = ?",
            "UPDATE arrays SET shape = '[1]' WHERE rowid_ = ?",
            "UPDATE units SET made_of = replace(made_of, '0', '1') WHERE rowid_ = ?",
            "UPDATE units SET seconds = seconds + 1 WHERE rowid_ = ?",
            "UPDATE units SET kind = 'ranking ' WHERE rowid_ = ?",
            "UPDATE studies SET content = replace(content, 'rest', 'tser') WHERE rowid_ = ?",
            "DELETE FROM units WHERE rowid_ = ?",
        ]
    )
    table = next(name for name in ("arrays", "units", "studies") if f" {name} " in statement)
    columns = {"arrays": "key || name", "units": "key", "studies": "number"}[table]
    with sqlite3.connect(path) as connection:
        keys = [key for (key,) in connection.execute(f"SELECT {columns} FROM {table}")]
        connection.execute(statement.replace("rowid_", columns), (draw.choice(keys),))
    connection.close()
    return statement


def _content(path: Path) -> Content:
    """Return all units but for what they cost."""
    with Store.read(path) as store:
        return {
            unit.key: (
                unit.kind,
                unit.made_of,
                {
                    name: array.tobytes() + str((array.dtype, array.shape)).encode()
                    for name, array in unit.arrays.items()
                },
                unit.notes,
            )
            for unit in store.units()
        }


def _check_sentence(error: Exception, damage: str, *expected: str) -> None:
    text = str(error)
    assert "\n" not in text, f"{damage}: {text}"
    assert text.endswith("."), f"{damage}: {text}"
    assert not expected or any(part in text for part in expected), f"{damage}: {text}"
