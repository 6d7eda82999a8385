"""Damage: what of a store is still what was written, and a new store of it.

Every unit and study has a checksum. A unit whose checksum is right is sound, whatever else in the file is damaged, so a
repaired store holds nothing but what was written.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, first_line
from holdfast.experiment import database
from holdfast.experiment.unit import ArrayRow, DamagedError, UnitRow, checksum, plain_json, unit_checksum, unpack
from holdfast.files import atomic

_COLUMNS = ("key", "kind", "made_of", "seconds", "forward", "gradient", "machine", "notes")
_LATER_COLUMNS = ("batch", "checksum")  # which the first schema did not have
Study = tuple[int, str]
"""The number and the content of a study."""


@dataclass(frozen=True)
class Damage:
    """What is wrong in a store.

    Attributes:
        sound: The number of units that are what was written.
        units: Keys of units that are damaged or cannot be read.
        studies: The number of studies that are damaged.
        file: What SQLite says is wrong with the file; empty if nothing is.
    """

    sound: int
    units: tuple[str, ...] = ()
    studies: int = 0
    file: str = ""

    def __bool__(self) -> bool:
        return bool(self.units or self.studies or self.file)

    def __str__(self) -> str:
        shown = ", ".join(self.units[:5]) + (", …" if len(self.units) > 5 else "")
        parts = [f"{counted(len(self.units), 'damaged unit')} ({shown})"] if self.units else []
        parts += ["1 damaged study" if self.studies == 1 else f"{self.studies} damaged studies"] if self.studies else []
        parts += [f"SQLite: {self.file}"] if self.file else []
        return f"{'; '.join(parts) or 'nothing is damaged'}; {counted(self.sound, 'sound unit')}"


def counted(number: int, noun: str) -> str:
    """Return a number and a noun: 1 unit, 2 units."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Reader:
    """Reads the rows of a store and compares them with their checksums.

    Args:
        connection: The open file.
    """

    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection
        columns = [column for _, column, *_ in connection.execute("PRAGMA table_info(units)")]
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        self._checked = version > 1 or "checksum" in columns  # the first schema had none
        self._columns = ", ".join((*_COLUMNS, *_LATER_COLUMNS) if self._checked else (*_COLUMNS, "''", "NULL"))

    def file_damage(self) -> str:
        """Return what is wrong with the structure of the file; empty if nothing is."""
        try:
            for (message,) in self._connection.execute("PRAGMA integrity_check(1)"):
                if message != "ok":
                    return " ".join(str(message).split())
            if not database.has_tables(self._connection):
                return "its tables are not those of a store"
            query = "SELECT key FROM arrays WHERE key NOT IN (SELECT key FROM units) LIMIT 1"
            orphan = self._connection.execute(query).fetchone()
            return "" if orphan is None else f"the arrays of {orphan[0]} belong to no unit"
        except database.UNREADABLE as error:
            if not database.is_damage(error):
                raise
            return first_line(error).rstrip(".")

    def rows(self, key: str) -> tuple[UnitRow, list[ArrayRow]]:
        """Return the rows of a unit.

        Raises:
            KeyError: There is none.
            DamagedError: They are not what was written.
        """
        query = "SELECT name, dtype, shape, data FROM arrays WHERE key = ? ORDER BY name"
        try:
            row = self._connection.execute(f"SELECT {self._columns} FROM units WHERE key = ?", (key,)).fetchone()
            arrays = self._connection.execute(query, (key,)).fetchall()
        except database.UNREADABLE as error:  # also a damaged key
            if not database.is_damage(error):
                raise
            raise DamagedError(f"unit {_shown(key)}") from error
        if row is None:
            raise KeyError(key)
        *columns, stored = row
        if not self._checked:
            unpack(columns, arrays)  # the key is a hash of part of the unit, and arrays have a checksum of zlib's
            plain_json(columns).encode()  # a damaged text cannot be written
        elif unit_checksum(columns, arrays) != stored:
            raise DamagedError(f"unit {key}")
        return tuple(columns), arrays

    def batches(self) -> dict[str, str]:
        """Return the batch of every unit by its key; an empty text where it is not known."""
        batch = "batch" if self._checked else "''"
        return dict(self._connection.execute(f"SELECT key, {batch} FROM units"))

    def studies(self) -> Iterator[Study | None]:
        """Yield every study in their order; None for a damaged one."""
        columns = "number, content, checksum" if self._checked else "number, content, NULL"
        for number, content, stored in self._connection.execute(f"SELECT {columns} FROM studies ORDER BY number"):
            sound = stored == checksum((number, content)) if self._checked else _is_json(content)
            yield (number, content) if sound else None

    def keys(self, kind: str | None = None) -> list[str]:
        """Return the keys of all units in the order of kind and key."""
        query = "SELECT key FROM units WHERE ? IS NULL OR kind = ? ORDER BY kind, key"
        return [key for (key,) in self._connection.execute(query, (kind, kind))]

    def reachable_keys(self) -> list[str]:
        """Return the keys that can still be read, from both ends of a damaged table and from the studies."""
        keys: dict[str, None] = {}
        for order in ("ASC", "DESC"):
            with database.damage_suppressed():
                for (key,) in self._connection.execute(f"SELECT key FROM units ORDER BY key {order}"):
                    keys[key] = None
        for _, content in self.reachable_studies():
            keys |= _keys_in(content)
        return list(keys)

    def reachable_studies(self) -> list[Study]:
        """Return every sound study that can still be read."""
        sound: list[Study] = []
        with database.damage_suppressed():
            for study in self.studies():
                sound += [] if study is None else [study]
        return sound

    def damage(self) -> Damage:
        """Verify everything."""
        file = self.file_damage()
        sound, damaged = 0, []
        for key in self.reachable_keys() if file else self.keys():
            try:
                self.rows(key)
                sound += 1
            except KeyError:
                pass  # a study that is not complete
            except DamagedError:
                damaged.append(_shown(key))
        studies = 0
        with database.damage_suppressed():  # then ``file`` says it
            studies = sum(study is None for study in self.studies())
        return Damage(sound, tuple(damaged), studies, file)


def check(path: Path | str, *, dry_run: bool = False) -> tuple[Damage, Path | None]:
    """Verify every unit and study of a store, and repair it if something is damaged.

    Args:
        path: The file, or the folder of ``results.db``.
        dry_run: Change nothing.

    Returns:
        What is or was damaged, and the file that keeps the damaged store, if it was repaired.

    Raises:
        HoldfastError: There is no such file, it is not a store, cannot be written, or is being written.
    """
    path = database.existing(path)
    if dry_run:
        return survey(path), None
    database.schema_of(path)  # no lock is left beside somebody else's file
    with database.lock(path):
        return repair(path)


def survey(path: Path) -> Damage:
    """Verify a store without changing it.

    Args:
        path: The file.

    Raises:
        HoldfastError: It is not a store, or cannot be read.
    """
    database.schema_of(path)
    with database.readable_errors(path), closing(database.open_to_read(path)) as connection:
        return _damage(connection)


def sound_study(path: Path) -> dict[str, Any] | None:
    """Return the latest study that is sound, also of a damaged store; None if there is none.

    Raises:
        HoldfastError: It is not a store, or cannot be read.
    """
    database.schema_of(path)
    with (
        database.readable_errors(path),
        database.damage_suppressed(),
        closing(database.open_to_read(path)) as connection,
    ):
        studies = Reader(connection).reachable_studies()
        if studies:
            content: dict[str, Any] = json.loads(studies[-1][1])
            return content
    return None


def repair(path: Path) -> tuple[Damage, Path | None]:
    """Replace a store that is damaged, or of an older schema, by a new one of all that is sound.

    The caller holds the lock of the store.

    Args:
        path: The file.

    Returns:
        What was damaged, and the file that keeps the damaged store; None if nothing was damaged.

    Raises:
        HoldfastError: It is not a store, or cannot be read or written.
    """
    version = database.schema_of(path)
    with database.readable_errors(path):
        with closing(database.open_to_write(path)) as connection:
            damage = _damage(connection)
            if not damage and version == database.SCHEMA:
                return damage, None
            with atomic(path) as part:
                copied = _copy(connection, part)
                if copied < damage.sound:  # a disk that fails now and then
                    raise HoldfastError(
                        f"cannot repair the results {path}: only {copied:,} of {damage.sound:,} sound units could be "
                        "read a second time."
                    )
                # A log that is left would be applied to the new file.
                connection.close()
                kept = _keep(path) if damage else None
                for suffix in ("-wal", "-shm", "-journal"):
                    Path(f"{path}{suffix}").unlink(missing_ok=True)
        return damage, kept


def _damage(connection: sqlite3.Connection) -> Damage:
    """Verify everything, also in a file that SQLite refuses at first."""
    try:
        damage = Reader(connection).damage()
    except database.UNREADABLE as error:
        if not database.is_damage(error):
            raise
        damage = Damage(0, file=first_line(error).rstrip("."))
    if not damage.file:
        return damage
    connection.execute("PRAGMA writable_schema=ON")  # SQLite then reads a file that is shorter than it should be
    with database.damage_suppressed():
        return replace(Reader(connection).damage(), file=damage.file)
    return damage


def _copy(connection: sqlite3.Connection, part: Path) -> int:
    """Write all sound units and studies to a new file; return the number of units."""
    count = 0
    with closing(database.create(part)) as new, database.transaction(new), database.damage_suppressed():
        reader = Reader(connection)
        for key in reader.reachable_keys():
            with suppress(KeyError, DamagedError):
                insert(new, *reader.rows(key))
                count += 1
        for study in reader.reachable_studies():
            insert_study(new, study)
    return count


def insert(connection: sqlite3.Connection, row: UnitRow, arrays: list[ArrayRow]) -> None:
    """Write a unit and its checksum, unless a unit of this key is there."""
    values = (*row, unit_checksum(row, arrays))
    places = ", ".join("?" * len(values))
    fresh = connection.execute(f"INSERT OR IGNORE INTO units VALUES ({places})", values)
    if fresh.rowcount:
        rows = [(row[0], *array) for array in arrays]
        connection.executemany("INSERT INTO arrays VALUES (?, ?, ?, ?, ?)", rows)


def insert_study(connection: sqlite3.Connection, study: Study) -> None:
    """Write a study and its checksum."""
    connection.execute("INSERT INTO studies VALUES (?, ?, ?)", (*study, checksum(study)))


def _keys_in(content: str) -> dict[str, None]:
    """Return the keys of the units that a study names."""
    study = json.loads(content)
    units = study.get("units", ()) if isinstance(study, dict) else ()
    return {unit["key"]: None for unit in units if isinstance(unit, dict) and "key" in unit}


def _shown(key: object) -> str:
    """Return a key, which may be damaged, as text that can be printed."""
    return str(key).encode("ascii", "backslashreplace").decode()


def _is_json(text: object) -> bool:
    try:
        json.loads(str(text))
    except (ValueError, RecursionError):
        return False
    return True


def _keep(path: Path) -> Path:
    """Keep the damaged file under a name that is free."""
    names = (path.with_name(f"{path.name}.damaged{number or ''}") for number in range(10_000))
    kept = next(name for name in names if not os.path.lexists(name))
    try:
        os.link(path, kept)  # so that there is always a file of this name
    except OSError:
        try:
            shutil.copy2(path, kept)
        except OSError as error:
            raise HoldfastError(f"cannot keep the damaged results as {kept}: {first_line(error)}") from error
    return kept
