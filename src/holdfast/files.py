"""Files read within a limit and written whole or not at all, with one sentence for whatever goes wrong."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import HoldfastError, first_line

MEGABYTE = 2**20


@contextmanager
def reading(path: str | os.PathLike[str], what: str = "", most: int | None = None) -> Iterator[None]:
    """Turn whatever a reader raises into one sentence that names the file.

    Args:
        path: The file or folder that the block reads.
        what: What it is called in the sentence, such as ``"the image"``.
        most: The largest size in bytes; the path must then be a regular file. None: any size, a file or a folder.

    Yields:
        Nothing.

    Raises:
        HoldfastError: The file is too large or not a regular file, or the block failed. A ``HoldfastError`` of the
            block that names the file passes unchanged.
    """
    name = f"{what} {shown(path)}".strip()
    try:
        if most is not None:
            _check_regular(path, most, name)
        yield
    except HoldfastError as error:
        if shown(path) in str(error):
            raise
        raise HoldfastError(f"cannot read {name}: {error}") from error
    except MemoryError as error:
        raise HoldfastError(f"cannot read {name}: it does not fit into memory.") from error
    except Exception as error:  # parsers fail in many ways on a damaged file
        raise HoldfastError(f"cannot read {name}: {first_line(error)}") from error


def _check_regular(path: str | os.PathLike[str], most: int, name: str) -> None:
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise HoldfastError(f"cannot read {name}: it is a folder.")
    if not stat.S_ISREG(status.st_mode):  # a pipe may never end, or never begin
        raise HoldfastError(f"cannot read {name}: it is not a regular file.")
    if status.st_size > most:
        raise too_large(name, most)


def too_large(name: str, most: int) -> HoldfastError:
    """Describe a file that is larger than what is read.

    Args:
        name: The file, or the part of an archive.
        most: The limit in bytes.

    Returns:
        The error to raise.
    """
    limit = f"{most / MEGABYTE:,.0f} MB" if most >= MEGABYTE else f"{most / 1024:,.0f} kB"
    return HoldfastError(f"cannot read {name}: it has more than the {limit} that are read.")


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path for a message. One with line ends or other characters that cannot be printed is quoted."""
    text = os.fspath(path)
    return text if text.isprintable() else repr(text)


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of ``path`` that replaces ``path`` if the block succeeds.

    If ``path`` is a link, the file that it leads to is replaced and the link stays.

    Args:
        path: The file to write. Its folder is created if needed.

    Yields:
        The temporary file. It is deleted if the block fails.

    Raises:
        HoldfastError: The file or its folder cannot be written, or the path is a device, a pipe, a folder or a stream
            such as ``/dev/stdout``.
    """
    try:
        if _is_stream(path):
            raise HoldfastError(f"cannot write {shown(path)}: it is not a regular file.")
        target = Path(os.path.realpath(path))
        if target.is_symlink():
            raise HoldfastError(f"cannot write {shown(path)}: its links lead in a circle.")
        if target.exists() and not target.is_file():
            raise HoldfastError(f"cannot write {shown(path)}: it is not a regular file.")
        target.parent.mkdir(parents=True, exist_ok=True)
        # The name is short: that of the file may already be as long as the disk allows.
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".holdfast-", delete=False) as part:
            pass
        try:
            yield Path(part.name)
            os.chmod(part.name, 0o666 & ~_umask())
            os.replace(part.name, target)
        finally:
            Path(part.name).unlink(missing_ok=True)
    except HoldfastError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise HoldfastError(f"cannot write {shown(path)}: {first_line(error)}") from error


def _is_stream(path: Path) -> bool:
    """Return whether a path leads to an open file through /dev or /proc: it would be replaced for its other readers."""
    for _ in range(40):  # as many links as Linux follows
        folder = os.path.realpath(os.path.dirname(path))
        if folder == "/dev" or folder.startswith("/proc/"):
            return True
        if not os.path.islink(path):
            break
        path = Path(os.path.dirname(path), os.readlink(path))
    return False


def _umask() -> int:
    """Return the permissions that new files do not get. Reading them means setting them for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all.

    Args:
        path: The file to write. Its folder is created if needed.
        content: The bytes.

    Raises:
        HoldfastError: The file cannot be written.
    """
    with atomic(path) as part:
        part.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write a UTF-8 text file, whole or not at all.

    Args:
        path: The file to write. Its folder is created if needed.
        content: The text.

    Raises:
        HoldfastError: The file cannot be written.
    """
    with atomic(path) as part:
        part.write_text(content, encoding="utf-8")
