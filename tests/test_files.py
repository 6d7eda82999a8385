"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.files import atomic, write_text


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "before")

    def fail() -> None:
        with atomic(path) as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "before"
    assert [one.name for one in path.parent.iterdir()] == ["file.txt"]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file.txt", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o640


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(hf.HoldfastError, match="it is not a regular file"):
            write_text(path, "text")
    (tmp_path / "file").touch()
    with pytest.raises(hf.HoldfastError, match="cannot write"):
        write_text(tmp_path / "file" / "inside.txt", "text")


def test_streams_are_not_replaced(tmp_path: Path) -> None:
    kept = tmp_path / "kept.txt"
    with kept.open("w") as file:
        file.write("kept")
        file.flush()
        link = tmp_path / "link"
        link.symlink_to(f"/dev/fd/{file.fileno()}")
        for path in (Path(f"/proc/self/fd/{file.fileno()}"), Path("/dev/stdout"), Path("/dev/null"), link):
            with pytest.raises(hf.HoldfastError, match="it is not a regular file"):
                write_text(path, "lost")
    assert kept.read_text() == "kept"
