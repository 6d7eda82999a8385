"""Progress: a line that is removed, a function that is called, and one sentence for anything else."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast as hf
from holdfast.progress import part, reported


def test_a_line_is_written_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    with reported(True, "explain") as report:
        assert report is not None
        report(1, 4)
        report(2, 4)  # too soon after the first
    assert capsys.readouterr().err == "\rexplain: 25 %\r" + " " * len("explain: 25 %") + "\r"


def test_a_line_is_removed_when_the_work_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with reported(True, "explain") as report:
            assert report is not None
            report(1, 4)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert capsys.readouterr().err.endswith(" \r")


def test_nobody_listens() -> None:
    for progress in (None, False):
        with reported(progress, "explain") as report:
            assert report is None
            assert part(report, 0, 2) is None


@pytest.mark.parametrize("wrong", [1, "yes", [print]])
def test_anything_else_is_one_sentence(wrong: Any) -> None:
    with pytest.raises(hf.HoldfastError, match="progress must be True, False or a function"), reported(wrong, "x"):
        pass


def test_parts_add_up() -> None:
    seen: list[tuple[int, int]] = []
    for number in range(3):
        report = part(lambda done, total: seen.append((done, total)), number, 3)
        assert report is not None
        report(0, 7)
        report(7, 7)
    assert seen == [(0, 3000), (1000, 3000), (1000, 3000), (2000, 3000), (2000, 3000), (3000, 3000)]
