"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import HoldfastError


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of ``path`` that replaces ``path`` if the block succeeds.

    Args:
        path: The file to write. Its folder is created if needed.

    Yields:
        The temporary file. It is deleted if the block fails.

    Raises:
        HoldfastError: The file or its folder cannot be written, or the path is a device, a pipe or a folder.
    """
    if path.exists() and not path.is_file():
        raise HoldfastError(f"cannot write {path}: it is not a regular file.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The suffix is kept because some writers choose the format by it.
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix, delete=False
        ) as part:
            pass
        try:
            yield Path(part.name)
            os.chmod(part.name, 0o666 & ~_umask())
            os.replace(part.name, path)
        finally:
            Path(part.name).unlink(missing_ok=True)
    except OSError as error:
        raise HoldfastError(f"cannot write {path}: {error.strerror or error}.") from error


def _umask() -> int:
    """Return the permissions that new files do not get. Reading them means setting them for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


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
