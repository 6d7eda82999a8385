"""Archives are read within bounds, whatever their headers claim."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.data.archive import read_files

MEGABYTE = 2**20
PLAIN: Callable[[bytes], bytes] = bytes
COMPRESS = {"tar": PLAIN, "tar.gz": gzip.compress, "tar.bz2": bz2.compress, "tar.xz": lzma.compress}


def _header(kind: bytes, size: int, name: str = "x") -> bytes:
    header = tarfile.TarInfo(name)
    header.type, header.size = kind, size
    return header.tobuf(format=tarfile.GNU_FORMAT)


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_tar_is_read_whatever_its_compression_and_the_length_of_its_names(tmp_path: Path, ending: str) -> None:
    name = "folder/" + "long" * 80
    for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
            for member, content in ((name, b"first"), ("skipped", bytes(5 * MEGABYTE)), ("last", b"second")):
                header = tarfile.TarInfo(member)
                header.size = len(content)
                archive.addfile(header, io.BytesIO(content))
        path = tmp_path / f"a.{ending}"
        path.write_bytes(COMPRESS[ending](out.getvalue()))
        found = dict(read_files(path, lambda member: member != "skipped"))
        assert found == {name: b"first", "last": b"second"}
    path.write_bytes(COMPRESS[ending](b""))
    with pytest.raises(hf.HoldfastError, match=r"^cannot read \S+a\.tar[^\n]*\.$"):
        list(read_files(path, bool))


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g", b"X"])
def test_what_describes_a_file_of_a_tar_is_not_read_whole(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.tar.gz"
    zeros = bytes(2 * MEGABYTE)
    for size in (len(zeros), -512):
        path.write_bytes(gzip.compress(_header(kind, size) + zeros))
        with pytest.raises(hf.HoldfastError, match=r"^cannot read (a header in )?\S+a\.tar\.gz"):
            list(read_files(path, bool))


def test_headers_of_one_file_of_a_tar_are_bounded_together(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    comment = b"10240 a=" + b"c" * 10_231 + b"\n"
    path.write_bytes(gzip.compress((_header(b"g", len(comment)) + comment) * 2))
    with pytest.raises(hf.HoldfastError, match=r"a header in \S+a\.tar\.gz: it has more than the 16 kB"):
        list(read_files(path, bool))


def test_a_header_of_digits_does_not_take_hours(tmp_path: Path) -> None:
    """Python before 3.11.10 looks for a number from each digit on."""
    path = tmp_path / "a.tar"
    comment = b"10240 a=" + b"1" * 10_231 + b"\n"
    path.write_bytes(_header(b"x", len(comment)) + comment)
    with pytest.raises(hf.HoldfastError, match=r"a header in .* has a number of 200 digits or more"):
        list(read_files(path, bool))


def test_a_tar_is_not_decompressed_without_end(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb", 1) as file:
        for _ in range(3):
            file.write(_header(tarfile.REGTYPE, 100 * MEGABYTE))
            file.write(bytes(100 * MEGABYTE))
    with pytest.raises(hf.HoldfastError, match=r"a\.tar\.gz: it has more than the 256 MB that are read"):
        list(read_files(path, lambda member: False))
