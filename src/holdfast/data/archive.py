"""Files in a folder, a .zip or a .tar, read without unpacking anything to disk."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from holdfast.files import MEGABYTE, reading, shown, too_large

MOST_OF_ONE = 16 * MEGABYTE  # bytes of one file, decompressed; a post or review has some kilobytes
MOST_OF_ALL = 128 * MEGABYTE  # bytes of all files that are read; those of 20 Newsgroups have 35 MB
_MOST_OF_TAR = 1024 * MEGABYTE  # bytes of a .tar, decompressed


def read_files(root: str | Path, wanted: Callable[[str], bool], most: int = MOST_OF_ALL) -> Iterator[tuple[str, bytes]]:
    """Read some of the files in a folder or an archive.

    Args:
        root: A folder, a .zip file or a .tar file, compressed or not.
        wanted: Returns whether to read the file of a path. Paths are relative to ``root``, with slashes.
        most: The most bytes of all files that are wanted, decompressed.

    Yields:
        The path and the content of each file that is wanted.

    Raises:
        HoldfastError: The folder or archive cannot be read, or has more than ``MOST_OF_ONE`` bytes in one file or
            ``most`` in all that are wanted.
    """
    root, total = Path(root), 0
    with reading(root):
        is_folder = root.is_dir()
    with reading(root, most=None if is_folder else MOST_OF_ALL):
        for name, file in _opened(root, is_folder, wanted):
            with file:
                content = file.read(MOST_OF_ONE + 1)  # what a header claims is not asked
            total += len(content)
            if len(content) > MOST_OF_ONE:
                raise too_large(f"{shown(name)} in {shown(root)}", MOST_OF_ONE)
            if total > most:
                raise too_large(shown(root), most)
            yield name, content


def _opened(root: Path, is_folder: bool, wanted: Callable[[str], bool]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name of each file that is wanted, and the file, open."""
    if is_folder:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and wanted(name):
                yield name, path.open("rb")
    elif zipfile.is_zipfile(root):
        with zipfile.ZipFile(root) as archive:
            for name in archive.namelist():
                if not name.endswith("/") and wanted(name):
                    yield name, archive.open(name)
    else:
        with tarfile.open(root) as packed:
            skipped = 0
            for member in packed:
                skipped += member.size  # a tar is decompressed to its end to find the next file
                if skipped > _MOST_OF_TAR:
                    raise too_large(shown(root), _MOST_OF_TAR)
                file = packed.extractfile(member) if member.isfile() and wanted(member.name) else None
                if file is not None:
                    yield member.name, file
                packed.members = []  # type: ignore[attr-defined]  # otherwise every header is kept
