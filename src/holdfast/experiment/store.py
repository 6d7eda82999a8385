"""One SQLite file that keeps units of work, each under a key made of what made it.

A unit is written in one transaction: a run that is killed loses the unit in flight and no other. Arrays are stored as
plain bytes with their type and shape; nothing is unpickled.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from holdfast.errors import HoldfastError

_APPLICATION = 0x686F6C64  # "hold": how SQLite files say whose they are
_SCHEMA = 1
_TABLES = """
CREATE TABLE units (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, made_of TEXT NOT NULL, seconds REAL NOT NULL,
    forward INTEGER NOT NULL, gradient INTEGER NOT NULL, machine TEXT NOT NULL, notes TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE arrays (
    key TEXT NOT NULL REFERENCES units(key) ON DELETE CASCADE, name TEXT NOT NULL,
    dtype TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE TABLE studies (number INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE);
"""
_TYPES = {"bool", "int16", "int32", "int64", "float32", "float64"}


@dataclass(frozen=True, eq=False)
class Unit:
    """A piece of work: its ``kind``, what it was ``made_of`` (JSON; its key), arrays, and what it cost on a machine."""

    kind: str
    made_of: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]
    seconds: float = 0.0
    forward: int = 0
    gradient: int = 0
    machine: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        """The content of what made it: the same for the same work, whoever does it and whenever."""
        return key_of(self.kind, self.made_of)


def key_of(kind: str, made_of: Mapping[str, Any]) -> str:
    """The key of the unit of this kind that would be made of this."""
    return hashlib.sha256(f"{kind}\n{_json(made_of)}".encode()).hexdigest()[:32]


class Store:
    """Units in a file: ``with Store.open(path) as store`` to write, ``Store.read(path)`` to look.

    One writer at a time; whoever comes second is told who holds the file. Readers never wait.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: IO[str] | None):
        self.path, self._connection, self._lock = path, connection, lock

    @classmethod
    def open(cls, path: Path | str) -> Store:
        """Open to write; made if it is not there."""
        path = Path(path)
        if not path.parent.is_dir():
            raise HoldfastError(f"the folder {path.parent} for {path.name} does not exist.")
        lock = _locked(path)
        try:
            with _told(path):
                new = not path.exists() or path.stat().st_size == 0
                connection = sqlite3.connect(path, isolation_level=None)
                if not new:
                    _check(path, connection)
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")  # a unit that was said to be kept survives a power cut
                connection.execute("PRAGMA foreign_keys=ON")
                if new:
                    _make(connection)
        except BaseException:
            lock.close()
            raise
        return cls(path, connection, lock)

    @classmethod
    def read(cls, path: Path | str) -> Store:
        """Open to look only."""
        path = Path(path)
        if not path.is_file():
            raise HoldfastError(f"there are no results {path}.")
        address = f"{path.resolve().as_uri()}?mode=ro"
        if not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
            address += "&immutable=1"  # a log left in WAL mode could not be opened where nothing may be written
        with _told(path):
            connection = sqlite3.connect(address, uri=True, isolation_level=None)
            _check(path, connection)
        return cls(path, connection, None)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back, in one piece: a reader then needs no right to write beside it."""
        if self._lock is not None:
            with suppress(sqlite3.Error):  # a reader is looking: the next writer tries again
                self._connection.execute("PRAGMA journal_mode=DELETE")
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    # ------------------------------------------------------------------ units

    def __len__(self) -> int:
        with _told(self.path):
            return int(self._connection.execute("SELECT count(*) FROM units").fetchone()[0])

    def __contains__(self, key: str) -> bool:
        with _told(self.path):
            return self._connection.execute("SELECT 1 FROM units WHERE key = ?", (key,)).fetchone() is not None

    def put(self, *units: Unit) -> None:
        """Keep units, all of them whole or none at all; one that is there already stays as it is."""
        packed = [
            (unit, [(unit.key, name, *_packed(name, array)) for name, array in sorted(unit.arrays.items())])
            for unit in units
        ]
        with _told(self.path), _transaction(self._connection):
            for unit, rows in packed:
                self._put(unit, rows)

    def _put(self, unit: Unit, rows: list[tuple[str, str, str, str, bytes]]) -> None:
        cost = (unit.seconds, unit.forward, unit.gradient, unit.machine)
        values = (unit.key, unit.kind, _json(unit.made_of), *cost, _json(list(unit.notes)))
        fresh = self._connection.execute("INSERT OR IGNORE INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        if fresh.rowcount:
            self._connection.executemany("INSERT INTO arrays VALUES (?, ?, ?, ?, ?)", rows)

    def get(self, key: str) -> Unit:
        """The unit under a key."""
        with _told(self.path):
            row = self._connection.execute("SELECT * FROM units WHERE key = ?", (key,)).fetchone()
            if row is None:
                raise HoldfastError(f"{self.path} holds no unit {key}.")
            return self._unit(row)

    def units(self, kind: str | None = None) -> Iterator[Unit]:
        """All units, or those of a kind, in the order of their keys: the same however they were computed."""
        query = "SELECT * FROM units WHERE ?1 IS NULL OR kind = ?1 ORDER BY kind, key"
        with _told(self.path):
            for row in self._connection.execute(query, (kind,)).fetchall():
                yield self._unit(row)

    def keys(self) -> set[str]:
        """The keys of all units."""
        with _told(self.path):
            return {key for (key,) in self._connection.execute("SELECT key FROM units")}

    def note_study(self, content: Mapping[str, Any]) -> None:
        """Write down what a run set out to compute; it is then the latest, also where it was there before."""
        text = _json(content)
        with _told(self.path), _transaction(self._connection):
            self._connection.execute("DELETE FROM studies WHERE content = ?", (text,))
            self._connection.execute("INSERT INTO studies SELECT coalesce(max(number), 0) + 1, ? FROM studies", (text,))

    def study(self) -> dict[str, Any]:
        """What the latest run set out to compute."""
        with _told(self.path):
            row = self._connection.execute("SELECT content FROM studies ORDER BY number DESC LIMIT 1").fetchone()
            if row is None:
                raise HoldfastError(f"{self.path} holds no study: no run has begun in it.")
            content: dict[str, Any] = json.loads(row[0])
            return content

    def _unit(self, row: tuple[Any, ...]) -> Unit:
        key, kind, made_of, seconds, forward, gradient, machine, notes = row
        found = self._connection.execute(
            "SELECT name, dtype, shape, data FROM arrays WHERE key = ? ORDER BY name", (key,)
        )
        arrays = {name: _unpacked(dtype, shape, data) for name, dtype, shape, data in found.fetchall()}
        return Unit(kind, json.loads(made_of), arrays, seconds, forward, gradient, machine, tuple(json.loads(notes)))


# ---------------------------------------------------------------------- the file


def _make(connection: sqlite3.Connection) -> None:
    with _transaction(connection):
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA}")


def _check(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that is not ours, or of a newer holdfast, before anything in it is touched."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if owner != _APPLICATION:
        raise HoldfastError(f"{path} is not a file of holdfast's results: name another one.")
    if version > _SCHEMA:
        raise HoldfastError(
            f"{path} was written by a newer holdfast (schema {version}, this one knows {_SCHEMA}): update holdfast."
        )


def _locked(path: Path) -> IO[str]:
    """Hold ``path.lock`` while the file is written; the system lets go of it when the process ends, however it ends."""
    beside = path.with_name(path.name + ".lock")
    try:
        lock = beside.open("a+", encoding="utf-8")
    except OSError as error:
        raise HoldfastError(f"cannot write results to {path}: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "another run"
        lock.close()
        raise HoldfastError(f"{path} is being written by {holder}: wait for it, or name another folder.") from error
    lock.seek(0)
    lock.truncate()
    lock.write(f"process {os.getpid()} on {socket.gethostname()}")
    lock.flush()
    return lock


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What SQLite reports, in one sentence; so too what is stored and cannot be read."""
    try:
        yield
    except sqlite3.Error as error:
        raise HoldfastError(f"cannot use the results {path}: {error}.") from error
    except (zlib.error, json.JSONDecodeError) as error:
        raise HoldfastError(f"the results {path} are damaged: {error}.") from error


# ---------------------------------------------------------------------- bytes


def _json(value: Any) -> str:
    """One spelling for equal content."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _packed(name: str, array: np.ndarray) -> tuple[str, str, bytes]:
    if array.dtype.name not in _TYPES:
        raise HoldfastError(f"array {name!r} is of {array.dtype.name}, which results do not hold.")
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return array.dtype.name, json.dumps(array.shape), zlib.compress(little.tobytes(), 6)


def _unpacked(dtype: str, shape: str, data: bytes) -> np.ndarray:
    if dtype not in _TYPES:
        raise HoldfastError(f"results hold an array of unknown type {dtype!r}.")
    kind = np.dtype(dtype).newbyteorder("<")
    return np.frombuffer(zlib.decompress(data), kind).reshape(json.loads(shape)).astype(np.dtype(dtype))
