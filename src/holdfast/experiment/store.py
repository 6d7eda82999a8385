"""The store of results: one SQLite file of units of work, each under a key of its content.

A unit is written in one transaction, so a run that is killed loses at most the unit it is writing. Arrays are stored as
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

from holdfast.errors import HoldfastError, first_line

_APPLICATION = 0x686F6C64  # "hold": SQLite files state the program that they belong to
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
    """A unit of work and its result.

    Attributes:
        kind: The kind of work, such as ``"ranking"``.
        made_of: The settings and inputs that determine the result, as JSON values. They make the key.
        arrays: The result, by name.
        seconds: How long it took.
        forward: Rows put through the model.
        gradient: Rows that were also differentiated.
        machine: Where it was computed.
        notes: What a reader must know.
    """

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
        """A hash of ``kind`` and ``made_of``: the same for the same work on every machine."""
        return key_of(self.kind, self.made_of)


def key_of(kind: str, made_of: Mapping[str, Any]) -> str:
    """Return the key of a unit.

    Args:
        kind: The kind of work.
        made_of: The settings and inputs that determine the result, as JSON values. Their order does not matter.

    Returns:
        32 hexadecimal digits.
    """
    return hashlib.sha256(f"{kind}\n{_json(made_of)}".encode()).hexdigest()[:32]


class Store:
    """A file of units: ``with Store.open(path) as store`` writes, ``Store.read(path)`` reads.

    There is one writer at a time. A second one is refused and told which process writes. Readers never wait.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: IO[str] | None):
        self.path, self._connection, self._lock = path, connection, lock

    @classmethod
    def open(cls, path: Path | str) -> Store:
        """Open a file to write. It is created if it does not exist.

        Raises:
            HoldfastError: The file cannot be written, is not a store, or is being written by another process.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise HoldfastError(f"the folder {path.parent} for {path.name} does not exist.")
        lock = _locked(path)
        try:
            with _readable_errors(path):
                new = not path.exists() or path.stat().st_size == 0
                connection = sqlite3.connect(path, isolation_level=None)
                if not new:
                    _check(path, connection)
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")  # a unit that was reported as stored survives a power cut
                connection.execute("PRAGMA foreign_keys=ON")
                if new:
                    _make(connection)
        except BaseException:
            lock.close()
            raise
        return cls(path, connection, lock)

    @classmethod
    def read(cls, path: Path | str) -> Store:
        """Open a file to read.

        Raises:
            HoldfastError: There is no such file, or it is not a store.
        """
        path = Path(path)
        path = path / "results.db" if path.is_dir() else path
        if not path.is_file():
            raise HoldfastError(f"there are no results {path}.")
        address = f"{path.resolve().as_uri()}?mode=ro"
        if not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
            address += "&immutable=1"  # SQLite cannot open a file in WAL mode in a folder that is read-only
        with _readable_errors(path):
            connection = sqlite3.connect(address, uri=True, isolation_level=None)
            _check(path, connection)
        return cls(path, connection, None)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. A writer also merges the log into it, so that it can be read in a read-only folder."""
        if self._lock is not None:
            with suppress(sqlite3.Error):  # a reader has it open: the next writer merges the log
                self._connection.execute("PRAGMA journal_mode=DELETE")
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    # ------------------------------------------------------------------ units

    def __len__(self) -> int:
        with _readable_errors(self.path):
            return int(self._connection.execute("SELECT count(*) FROM units").fetchone()[0])

    def __contains__(self, key: str) -> bool:
        with _readable_errors(self.path):
            return self._connection.execute("SELECT 1 FROM units WHERE key = ?", (key,)).fetchone() is not None

    def put(self, *units: Unit) -> None:
        """Store units, all or none of them. A unit whose key is already there is not replaced.

        Args:
            *units: The units.

        Raises:
            HoldfastError: An array has a type that cannot be stored, or the file cannot be written.
        """
        packed = [
            (unit, [(unit.key, name, *_packed(name, array)) for name, array in sorted(unit.arrays.items())])
            for unit in units
        ]
        with _readable_errors(self.path), _transaction(self._connection):
            for unit, rows in packed:
                self._put(unit, rows)

    def _put(self, unit: Unit, rows: list[tuple[str, str, str, str, bytes]]) -> None:
        """Write a unit and the rows of its arrays, unless it is there."""
        cost = (unit.seconds, unit.forward, unit.gradient, unit.machine)
        values = (unit.key, unit.kind, _json(unit.made_of), *cost, _json(list(unit.notes)))
        fresh = self._connection.execute("INSERT OR IGNORE INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        if fresh.rowcount:
            self._connection.executemany("INSERT INTO arrays VALUES (?, ?, ?, ?, ?)", rows)

    def get(self, key: str) -> Unit:
        """Return the unit under a key.

        Raises:
            HoldfastError: There is none, or the file is damaged.
        """
        with _readable_errors(self.path):
            row = self._connection.execute("SELECT * FROM units WHERE key = ?", (key,)).fetchone()
            if row is None:
                raise HoldfastError(f"{self.path} holds no unit {key}.")
            return self._unit(row)

    def units(self, kind: str | None = None) -> Iterator[Unit]:
        """Yield all units in the order of their keys, which does not depend on when they were computed.

        Args:
            kind: Yield the units of this kind only. None: all of them.

        Raises:
            HoldfastError: The file is damaged.
        """
        query = "SELECT * FROM units WHERE ?1 IS NULL OR kind = ?1 ORDER BY kind, key"
        with _readable_errors(self.path):
            for row in self._connection.execute(query, (kind,)).fetchall():
                yield self._unit(row)

    def keys(self) -> set[str]:
        """Return the keys of all units."""
        with _readable_errors(self.path):
            return {key for (key,) in self._connection.execute("SELECT key FROM units")}

    def note_study(self, content: Mapping[str, Any]) -> None:
        """Store the plan of a run as the latest study.

        Args:
            content: What the run will compute, as JSON values. A study with the same content is replaced.
        """
        text = _json(content)
        with _readable_errors(self.path), _transaction(self._connection):
            self._connection.execute("DELETE FROM studies WHERE content = ?", (text,))
            self._connection.execute("INSERT INTO studies SELECT coalesce(max(number), 0) + 1, ? FROM studies", (text,))

    def study(self) -> dict[str, Any]:
        """Return the plan of the latest run.

        Raises:
            HoldfastError: No run has begun.
        """
        with _readable_errors(self.path):
            row = self._connection.execute("SELECT content FROM studies ORDER BY number DESC LIMIT 1").fetchone()
            if row is None:
                raise HoldfastError(f"{self.path} holds no study: no run has begun in it.")
            content: dict[str, Any] = json.loads(row[0])
            return content

    def _unit(self, row: tuple[Any, ...]) -> Unit:
        """Return a unit from its row, with its arrays."""
        key, kind, made_of, seconds, forward, gradient, machine, notes = row
        cursor = self._connection.execute(
            "SELECT name, dtype, shape, data FROM arrays WHERE key = ? ORDER BY name", (key,)
        )
        arrays = {name: _unpacked(dtype, shape, data) for name, dtype, shape, data in cursor.fetchall()}
        return Unit(kind, json.loads(made_of), arrays, seconds, forward, gradient, machine, tuple(json.loads(notes)))


# ---------------------------------------------------------------------- the file


def _make(connection: sqlite3.Connection) -> None:
    """Create the tables."""
    with _transaction(connection):
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA}")


def _check(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file of another program or of a newer holdfast, before anything in it is changed."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if owner != _APPLICATION:
        raise HoldfastError(f"{path} is not a file of holdfast's results: name another one.")
    if version > _SCHEMA:
        raise HoldfastError(
            f"{path} was written by a newer holdfast (schema {version}, this one knows {_SCHEMA}): update holdfast."
        )


def _locked(path: Path) -> IO[str]:
    """Lock ``path.lock`` while the file is written. The system releases the lock when the process ends."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        lock = lock_path.open("a+", encoding="utf-8")
    except OSError as error:
        raise HoldfastError(f"cannot write results to {path}: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        writer = lock.read().strip() or "another run"
        lock.close()
        raise HoldfastError(f"{path} is being written by {writer}: wait for it, or name another folder.") from error
    lock.seek(0)
    lock.truncate()
    lock.write(f"process {os.getpid()} on {socket.gethostname()}")
    lock.flush()
    return lock


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block does, or nothing if it fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite, and of stored values that cannot be read, as a ``HoldfastError``."""
    try:
        yield
    except sqlite3.Error as error:
        raise HoldfastError(f"cannot use the results {path}: {first_line(error)}") from error
    except (zlib.error, json.JSONDecodeError) as error:
        raise HoldfastError(f"the results {path} are damaged: {first_line(error)}") from error


# ---------------------------------------------------------------------- bytes


def _json(value: Any) -> str:
    """Return JSON that is the same for equal content."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _packed(name: str, array: np.ndarray) -> tuple[str, str, bytes]:
    """Return the type, the shape and the compressed bytes of an array."""
    if array.dtype.name not in _TYPES:
        raise HoldfastError(
            f"array {name!r} is of {array.dtype.name}, which results do not hold: use {', '.join(sorted(_TYPES))}."
        )
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return array.dtype.name, json.dumps(array.shape), zlib.compress(little.tobytes(), 6)


def _unpacked(dtype: str, shape: str, data: bytes) -> np.ndarray:
    """Return the array that ``_packed`` has packed."""
    if dtype not in _TYPES:
        raise HoldfastError(f"results hold an array of unknown type {dtype!r}.")
    kind = np.dtype(dtype).newbyteorder("<")
    return np.frombuffer(zlib.decompress(data), kind).reshape(json.loads(shape)).astype(np.dtype(dtype))
