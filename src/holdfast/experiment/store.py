"""The store of results: one SQLite file of units of work, each under a key of its content.

A unit is written in one transaction, so a run that is killed loses at most the unit it is writing. Every unit has a
checksum: a damaged one is never read as if it were sound.
"""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.experiment import database
from holdfast.experiment.database import readable_errors
from holdfast.experiment.repair import Reader, insert, insert_study, repair
from holdfast.experiment.unit import DamagedError, Unit, batch_of, key_of, pack, plain_json, unpack, unpacked_size
from holdfast.files import atomic

__all__ = ["Store", "Unit", "key_of"]

_MEMORY = 2**29  # bytes that arrays of any file may take in memory
_MEMORY_PER_BYTE = 40  # and further bytes for each byte of the file


class Store:
    """A file of units: ``with Store.open(path) as store`` writes, ``Store.read(path)`` reads.

    There is one writer at a time. A second one is refused and told which process writes. Readers never wait.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: IO[bytes] | None):
        self.path, self._connection, self._lock = path, connection, lock
        self._reader = Reader(connection)

    @classmethod
    def open(cls, path: Path | str) -> Store:
        """Open a file to write. It is created if it does not exist.

        Every unit and study is verified. If some are damaged, the file is replaced by one of all that is sound, the
        damaged file is kept beside it, and a ``HoldfastWarning`` names both.

        Raises:
            HoldfastError: The file cannot be written, is not a store, or is being written by another process.
        """
        path = database.real_path(path)
        with database.readable_path(path):
            if not path.parent.is_dir():
                raise HoldfastError(f"the folder {path.parent} for {path.name} does not exist.")
        if not database.is_new(path):
            database.schema_of(path)  # no lock is left beside somebody else's file
        lock = database.lock(path)
        damage = None
        try:
            if database.is_new(path):  # nobody else can make it now
                with readable_errors(path), atomic(path) as part:  # a run that is killed leaves no half of a file
                    database.create(part).close()
            else:
                damage, kept = repair(path)
                if damage:
                    warnings.warn(
                        f"the results {path} were damaged: {damage}. A run computes the damaged units again; {kept} is "
                        "the damaged file.",
                        HoldfastWarning,
                        stacklevel=2,
                    )
            with readable_errors(path):
                connection = database.open_to_write(path)
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")  # a unit that was reported as stored survives a power cut
                connection.execute("PRAGMA foreign_keys=ON")
                return cls(path, connection, lock)
        except BaseException:
            lock.close()
            raise

    @classmethod
    def read(cls, path: Path | str) -> Store:
        """Open a file to read.

        Raises:
            HoldfastError: There is no such file, it is not a store, or it is damaged.
        """
        path = database.existing(path)
        database.schema_of(path)
        with readable_errors(path):
            store = cls(path, database.open_to_read(path), None)
            try:
                wrong = store._reader.file_damage()
                if wrong:  # a row may be out of reach, and nobody would miss it
                    raise DamagedError(wrong)
            except BaseException:
                store.close()
                raise
            return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. A writer also merges the log into it, so that it can be read in a read-only folder."""
        if self._lock is not None:
            with suppress(sqlite3.Error):  # a reader has it open, or the disk is full: the next writer merges the log
                self._connection.execute("PRAGMA journal_mode=DELETE")
        with suppress(sqlite3.Error):
            self._connection.close()
        if self._lock is not None:
            self._lock.close()

    # ------------------------------------------------------------------ units

    def __len__(self) -> int:
        with readable_errors(self.path):
            return int(self._connection.execute("SELECT count(*) FROM units").fetchone()[0])

    def __contains__(self, key: str) -> bool:
        with readable_errors(self.path):
            return self._connection.execute("SELECT 1 FROM units WHERE key = ?", (key,)).fetchone() is not None

    def put(self, *units: Unit) -> None:
        """Store units, all or none of them. A unit whose key is already there is not replaced.

        Args:
            *units: The units of a batch: those that were computed together.

        Raises:
            HoldfastError: An array has a type that cannot be stored, or the file cannot be written.
        """
        batch = batch_of(unit.key for unit in units)
        packed = [pack(unit, batch) for unit in units]
        with readable_errors(self.path), database.transaction(self._connection):
            for row, arrays in packed:
                insert(self._connection, row, arrays)

    def get(self, key: str) -> Unit:
        """Return the unit under a key.

        Raises:
            HoldfastError: There is none, or it is damaged.
        """
        with readable_errors(self.path):
            return self._unit(key, [0])

    def units(self, kind: str | None = None) -> Iterator[Unit]:
        """Yield all units in the order of their keys, which does not depend on when they were computed.

        Args:
            kind: Yield the units of this kind only. None: all of them.

        Raises:
            HoldfastError: A unit is damaged.
        """
        used = [0]
        with readable_errors(self.path):
            keys = self._reader.keys(kind)
        for key in keys:
            with readable_errors(self.path):
                unit = self._unit(key, used)
            yield unit

    def keys(self) -> set[str]:
        """Return the keys of all units."""
        with readable_errors(self.path):
            return set(self._reader.keys())

    def batches(self) -> dict[str, str]:
        """Return the name of the batch that each unit was stored with, by key; see ``unit.batch_of``."""
        with readable_errors(self.path):
            return self._reader.batches()

    def _unit(self, key: str, used: list[int]) -> Unit:
        """Return a unit; ``used`` counts the bytes of the arrays so far."""
        try:
            row, arrays = self._reader.rows(key)
        except KeyError as error:
            raise HoldfastError(f"{self.path} holds no unit {key}.") from error
        used[0] += unpacked_size(arrays)
        if used[0] > _MEMORY + _MEMORY_PER_BYTE * self.path.stat().st_size:
            raise HoldfastError(
                f"the arrays of {self.path} take over {used[0] // 2**20:,} MiB in memory, far more than the file could "
                "hold: it was not written by holdfast."
            )
        return unpack(row, arrays)

    # ------------------------------------------------------------------ studies

    def note_study(self, content: Mapping[str, Any]) -> None:
        """Store the plan of a run as the latest study.

        Args:
            content: What the run will compute, as JSON values. A study with the same content is replaced.
        """
        text = plain_json(content)
        with readable_errors(self.path), database.transaction(self._connection):
            self._connection.execute("DELETE FROM studies WHERE content = ?", (text,))
            (last,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM studies").fetchone()
            insert_study(self._connection, (last + 1, text))

    def study(self) -> dict[str, Any]:
        """Return the plan of the latest run.

        Raises:
            HoldfastError: No run has begun, or a study is damaged.
        """
        with readable_errors(self.path):
            studies = list(self._reader.studies())
            if not studies:
                raise HoldfastError(f"{self.path} holds no study: no run has begun in it.")
            # A damaged study might be the latest one under another number.
            sound = [study for study in studies if study is not None]
            if len(sound) < len(studies):
                raise DamagedError("a study is not what was written")
            content: dict[str, Any] = json.loads(sound[-1][1])
            return content
