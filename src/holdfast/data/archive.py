"""Files in a folder, a .zip or a .tar, read without unpacking anything to disk."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from holdfast.errors import HoldfastError
from holdfast.files import MEGABYTE, reading, shown, too_large

MOST_OF_ONE = 16 * MEGABYTE  # bytes of one file, decompressed; a post or review has some kilobytes
MOST_OF_ALL = 128 * MEGABYTE  # bytes of all files that are read; those of 20 Newsgroups have 35 MB
_MOST_OF_TAR = 256 * MEGABYTE  # bytes of a .tar, decompressed; a decoder of .xz may keep all of them
_MOST_OF_HEADER = MEGABYTE // 64  # bytes that describe one file of a .tar; a name and some dates have a kilobyte
_DIGITS = re.compile(rb"\d{200}")  # in a header; older Pythons take time that grows with the square of their number
_COMPRESSED: dict[bytes, Callable[[IO[bytes]], Any]] = {  # by their first bytes
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
    b"\x5d\0\0": lzma.LZMAFile,  # without a container
}


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
        with root.open("rb") as opened:
            yield from _members(opened, shown(root), wanted)


def _members(opened: IO[bytes], name: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name of each file of a .tar that is wanted, and the file, open."""
    start = opened.read(8)
    opened.seek(0)
    begin = next((begin for mark, begin in _COMPRESSED.items() if start.startswith(mark)), None)
    with opened if begin is None else begin(opened) as content:
        source = _Bounded(content, name)
        with tarfile.open(fileobj=cast("IO[bytes]", source), mode="r:") as packed:
            for member in packed:
                source.expect_content()
                file = packed.extractfile(member) if member.isfile() and wanted(member.name) else None
                if file is not None:
                    yield member.name, file
                source.expect_header()
                packed.members = []  # type: ignore[attr-defined]  # otherwise every header is kept
                packed.pax_headers = {}


class _Bounded:
    """The content of a .tar as ``tarfile`` reads it: headers and names are not read whole, whatever size they claim."""

    def __init__(self, content: IO[bytes], name: str):
        self.content = content
        self.name = name
        self.expect_header()

    def expect_header(self) -> None:
        """Allow as many bytes as a header may have, until the next call."""
        self.left, self.is_header = _MOST_OF_HEADER, True

    def expect_content(self) -> None:
        """Allow as many bytes as a file may have, until the next call."""
        self.left, self.is_header = MOST_OF_ONE + MEGABYTE, False

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise too_large(f"a header in {self.name}", _MOST_OF_HEADER)
        self.left -= size
        content = self.content.read(size)
        if self.is_header and _DIGITS.search(content):
            raise HoldfastError(f"cannot read a header in {self.name}: it has a number of 200 digits or more.")
        return content

    def seek(self, place: int) -> int:
        if place > _MOST_OF_TAR:  # it is decompressed up to there
            raise too_large(self.name, _MOST_OF_TAR)
        return self.content.seek(place)

    def tell(self) -> int:
        return self.content.tell()
