"""The README: its examples run, its links lead somewhere, and it stays short."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}  # tests run side by side
COMMANDS = [
    shlex.split(line.partition("#")[0])[1:]
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith(".venv/bin/holdfast ")
]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 130


def test_links_lead_to_files() -> None:
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", README)]
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.slow
def test_the_python_examples_run_as_they_stand(tmp_path: Path) -> None:
    """Three kinds of inputs, then the comparison, which goes on with the model of the first."""
    for library in ("shap", "sklearn", "pandas"):
        pytest.importorskip(library)
    printed = _printed("".join(BLOCKS), tmp_path)
    assert printed[0].startswith("Explanation: 0 (")
    assert "the smallest change of the others" in printed[2]
    assert printed[3].startswith("Explanation: hockey (")
    assert any(line.startswith("3 methods on 6 cases: areas under the curves") for line in printed)
    assert any("with Holm's correction over" in line for line in printed)
    assert (tmp_path / "seven.png").read_bytes().startswith(b"\x89PNG")


def test_the_example_of_the_page_about_explanations_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    block = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    order, value = _printed("import holdfast as hf\n" + block, tmp_path)
    assert order.startswith("['income', ")
    assert value.startswith("tensor([[0.57")


def _printed(code: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [c for c in COMMANDS if c[0] in ("explain", "robustness", "list")])
def test_commands_run(arguments: list[str], tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("holdfast")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr


def test_experiments_are_planned(tmp_path: Path) -> None:
    (arguments,) = (c for c in COMMANDS if c[0] == "run")
    command = [str(Path(sys.executable).with_name("holdfast")), *arguments, "--dry-run", "--limit", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert [c[0] for c in COMMANDS if c[0] == "report"] == ["report"]
