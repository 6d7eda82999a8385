"""The SQLite file behind a store: its tables, its lock, and its errors in words."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from holdfast.errors import HoldfastError, first_line
from holdfast.experiment.unit import DamagedError

SCHEMA = 2
_APPLICATION = 0x686F6C64  # "hold": SQLite files state the program that they belong to
_APPLICATION_AT, _VERSION_AT = slice(68, 72), slice(60, 64)  # where SQLite's header has them
_TABLES = """
CREATE TABLE units (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, made_of TEXT NOT NULL, seconds REAL NOT NULL,
    forward INTEGER NOT NULL, gradient INTEGER NOT NULL, machine TEXT NOT NULL, notes TEXT NOT NULL,
    batch TEXT NOT NULL, checksum TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE arrays (
    key TEXT NOT NULL REFERENCES units(key) ON DELETE CASCADE, name TEXT NOT NULL,
    dtype TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE TABLE studies (number INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE, checksum TEXT NOT NULL);
"""


UNREADABLE = (sqlite3.Error, UnicodeError, OverflowError)
"""What reading a damaged file may raise: also names and lengths may be damaged. See ``is_damage``."""
_PASSING = {
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
    *(
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_AUTH,
    ),
    *(sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_ABORT, sqlite3.SQLITE_NOLFS),
}
"""Error codes that say nothing about the content of a file: it may be read later."""


def create(path: Path) -> sqlite3.Connection:
    """Create an empty file with the tables, and open it to write."""
    connection = _connect(str(path))
    with transaction(connection):
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
    return connection


def has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a file has the tables of its schema. Those of older schemas are not compared."""
    if connection.execute("PRAGMA user_version").fetchone()[0] < SCHEMA:
        return True
    stored = {text for (text,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    return stored == {statement.strip() for statement in _TABLES.split(";") if statement.strip()}


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open an existing file to write."""
    return _connect(str(path))


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open an existing file to read."""
    address = f"{path.resolve().as_uri()}?mode=ro"
    if not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
        address += "&immutable=1"  # SQLite cannot open a file in WAL mode in a folder that is read-only
    return _connect(address)


def _connect(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=address.startswith("file:"), isolation_level=None)
    # A damaged text is compared with its checksum, so it must come through as it is.
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return connection


@contextmanager
def readable_path(path: Path | str) -> Iterator[None]:
    """Raise what the system says against a path, such as an over-long one, as a ``HoldfastError``."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, HoldfastError):
            raise
        raise HoldfastError(f"cannot use the results {path}: {first_line(error)}") from error


def existing(path: Path | str) -> Path:
    """Return the file of results; of a folder, its ``results.db``.

    Raises:
        HoldfastError: There is none.
    """
    path = Path(path)
    with readable_path(path):
        path = path / "results.db" if path.is_dir() else path
        if not path.exists():
            raise HoldfastError(f"there are no results {path}.")
    return real_path(path)


def real_path(path: Path | str) -> Path:
    """Follow all links, so that locks and logs lie beside the file itself."""
    with readable_path(path):
        return Path(os.path.realpath(path))


def is_new(path: Path) -> bool:
    """Return whether there is no file yet, or an empty one."""
    with readable_path(path):
        return not path.exists() or (path.is_file() and path.stat().st_size == 0)


def schema_of(path: Path) -> int:
    """Return the version of a store's tables, from the first bytes of the file.

    Raises:
        HoldfastError: The file is not a store, or a newer holdfast wrote it.
    """
    if not path.is_file():
        raise HoldfastError(f"{path} is not a regular file: name a file of results.")
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise HoldfastError(f"cannot read the results {path}: {first_line(error)}") from error
    if int.from_bytes(header[_APPLICATION_AT], "big") != _APPLICATION:
        raise HoldfastError(
            f"{path} is not a file of holdfast's results, or its beginning is damaged: name another file, or move "
            "this one away and run the experiment again."
        )
    version = int.from_bytes(header[_VERSION_AT], "big")
    if version > SCHEMA:
        raise HoldfastError(
            f"{path} was written by a newer holdfast (schema {version}, this one knows {SCHEMA}): update holdfast."
        )
    return version


def lock(path: Path) -> IO[bytes]:
    """Lock ``path.lock`` while the file is written. The system releases the lock when the process ends.

    Raises:
        HoldfastError: Another process has the lock, or the lock file cannot be written or is a link.
    """
    lock_path = path.with_name(path.name + ".lock")
    try:
        # A link could point to any file of the user's, which the lock would then empty.
        number = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        link = getattr(error, "errno", None) == errno.ELOOP
        raise _no_lock(path, lock_path, "it is a link." if link else first_line(error)) from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise _no_lock(path, lock_path, "it is not a regular file.")
    file = os.fdopen(number, "rb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        writer = file.read(200).decode(errors="replace").strip() or "another run"
        file.close()
        if not isinstance(error, BlockingIOError):
            raise _no_lock(path, lock_path, first_line(error)) from error
        raise HoldfastError(f"{path} is being written by {writer}: wait for it, or name another folder.") from error
    with suppress(OSError):  # who writes is only for messages; a disk may be full
        os.ftruncate(number, 0)
        os.pwrite(number, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
    return file


def _no_lock(path: Path, lock_path: Path, reason: str) -> HoldfastError:
    return HoldfastError(f"cannot lock the results {path} by {lock_path.name}: {reason}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
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
def readable_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite, and damage, as a ``HoldfastError``."""
    try:
        yield
    except DamagedError as error:
        raise HoldfastError(damage_message(path, str(error) or "values are not those that were written")) from error
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise HoldfastError(damage_message(path, first_line(error).rstrip("."))) from error
        raise HoldfastError(f"cannot use the results {path}: {first_line(error)}") from error
    except sqlite3.Error as error:
        raise HoldfastError(f"cannot use the results {path}: {first_line(error)}") from error
    except UNREADABLE as error:
        raise HoldfastError(damage_message(path, type(error).__name__)) from error
    except MemoryError as error:
        raise HoldfastError(f"cannot use the results {path}: the memory is full.") from error


@contextmanager
def damage_suppressed() -> Iterator[None]:
    """Leave the block where the file is damaged. Other errors pass: what cannot be read now is not lost."""
    try:
        yield
    except UNREADABLE as error:
        if not is_damage(error):
            raise


def is_damage(error: BaseException) -> bool:
    """Return whether an error says that the file is damaged, not that it cannot be used now."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is None or code == sqlite3.SQLITE_IOERR_SHORT_READ or code & 0xFF not in _PASSING


def damage_message(path: Path, what: str) -> str:
    """Return the sentence for damaged results."""
    return (
        f"the results {path} are damaged ({what}): holdfast check {path} removes what is damaged, and the command that "
        "computed them computes it again."
    )
