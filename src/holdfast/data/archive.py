"""Files in a folder, a .zip or a .tar, read without unpacking anything to disk."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.errors import HoldfastError, first_line


def read_files(root: str | Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Read some of the files in a folder or an archive.

    Args:
        root: A folder, a .zip file or a .tar file, compressed or not.
        wanted: Returns whether to read the file of a path. Paths are relative to ``root``, with slashes.

    Yields:
        The path and the content of each file that is wanted.

    Raises:
        HoldfastError: The folder or archive cannot be read.
    """
    root = Path(root)
    try:
        if root.is_dir():
            for path in sorted(root.rglob("*")):
                name = path.relative_to(root).as_posix()
                if path.is_file() and wanted(name):
                    yield name, path.read_bytes()
        elif root.is_file() and zipfile.is_zipfile(root):
            with zipfile.ZipFile(root) as archive:
                for name in archive.namelist():
                    if not name.endswith("/") and wanted(name):
                        yield name, archive.read(name)
        else:
            with tarfile.open(root) as archive:
                for member in archive:
                    file = archive.extractfile(member) if member.isfile() and wanted(member.name) else None
                    if file is not None:
                        yield member.name, file.read()
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, RuntimeError) as error:
        # zipfile raises RuntimeError for archives with a password or an unknown compression.
        raise HoldfastError(f"cannot read {root}: {first_line(error)}") from error
