"""Runs that are stopped, killed or cut off from their terminal, and continued."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.experiment import Progress, Store, plan_of, run
from holdfast.experiment.export import rows
from holdfast.experiment.results import Results
from studies import SMALL, compute, small_study, toy_study


def test_a_stop_keeps_what_is_in_hand_and_goes_on_later(tmp_path: Path) -> None:
    study, path = toy_study({"Grad": hf.Grad(), "Random": hf.Random()}), tmp_path / "results.db"
    seen: list[int] = []

    def notify(progress: Progress) -> None:
        seen.append(progress.done)

    _, summary = compute(study, path, notify=notify, stop=lambda: bool(seen) and seen[-1] >= 3)
    assert summary.stopped
    assert 3 <= summary.made < len(plan_of(study).jobs)
    partial = Results(path)
    assert partial.missing == summary.missing
    _, rest = compute(study, path)
    assert rest.made == summary.missing
    undisturbed, _ = compute(study, tmp_path / "whole.db")
    assert list(rows(Results(path))) == list(rows(undisturbed))


def test_a_study_that_grew_and_was_stopped_ends_in_the_same_values(tmp_path: Path) -> None:
    first = toy_study({"Grad": hf.Grad()})
    grown = toy_study({"Grad": hf.Grad(), "Random": hf.Random(), "Other": hf.Random(1)})
    batches = []
    for folder in ("stopped", "whole"):
        (tmp_path / folder).mkdir()
        compute(first, tmp_path / folder / "results.db")
    seen: list[int] = []
    path = tmp_path / "stopped" / "results.db"
    _, summary = compute(grown, path, notify=lambda at: seen.append(at.done), stop=lambda: bool(seen) and seen[-1] >= 5)
    assert summary.stopped
    compute(grown, path, notify=lambda at: batches.extend(at.out))
    undisturbed, _ = compute(grown, tmp_path / "whole" / "results.db")
    assert any(job.kind == "curve" for batch in batches for job in batch)
    assert "Grad" not in repr([job.made_of() for batch in batches for job in batch]), "units of before stay out"
    assert list(rows(Results(path))) == list(rows(undisturbed))


@pytest.mark.slow
def test_a_killed_run_ends_in_the_same_values_bit_for_bit(tmp_path: Path, small_results: Path) -> None:
    command = [str(Path(sys.executable).with_name("holdfast")), "run", str(SMALL), "--out", str(tmp_path), "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for units in (5, 30):  # killed twice, each time in the middle of something
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as killed:
            assert killed.stdout is not None
            for _ in range(units):
                killed.stdout.readline()
            killed.send_signal(signal.SIGKILL)
    path = tmp_path / "results.db"
    assert Results(path).missing > 0
    with Store.open(path) as store:
        there = len(store)
        summary = run(small_study(), store)
    assert summary.stored == there >= 30
    assert list(rows(Results(path))) == list(rows(Results(small_results)))


def _count(path: Path) -> int:
    if not path.exists():
        return 0
    with Store.read(path) as store:
        return len(store)


@pytest.mark.slow
def test_a_run_whose_terminal_is_closed_finishes_its_unit(tmp_path: Path) -> None:
    master, terminal = pty.openpty()

    def own_session() -> None:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    command = [sys.executable, "-m", "holdfast", "run", str(SMALL), "--out", str(tmp_path)]
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    environment, path = os.environ | {"OMP_NUM_THREADS": "1"}, tmp_path / "results.db"
    with subprocess.Popen(command, **streams, env=environment, preexec_fn=own_session) as process:
        os.close(terminal)
        while process.poll() is None and not _count(path):
            if select.select([master], [], [], 0.05)[0]:
                os.read(master, 10_000)
        os.close(master)
        assert process.wait(60) == 130
    assert Results(path).missing > 0
