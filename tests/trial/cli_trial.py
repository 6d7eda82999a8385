"""Wrong commands: every one ends with what was asked for, or with one sentence and exit code 1 or 2."""

from __future__ import annotations

import contextlib
import io
import random
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
import typer
from typer.testing import CliRunner

from holdfast.cli.app import app
from holdfast.errors import HoldfastError
from speed import slowness
from studies import SMALL
from trial.tally import Tally

SHORT, LONG = 120, 5_000
_SECONDS = 20  # on a quiet core
_OPTIONS = {
    "explain": [
        "--digit",
        "--text",
        "--photo",
        "--model",
        "--features",
        "--method",
        "--objective",
        "--target",
        "--top",
    ],
    "robustness": ["--digit", "--text", "--target", "--subset", "--method", "--p", "--seed", "--features", "--json"],
    "list": ["--json"],
    "run": ["--out", "--limit", "--data", "--model", "--weights", "--device", "--engine", "--address", "--workers"],
    "report": ["-o", "--latex", "--csv", "--markdown", "--figure"],
    "export": ["-o"],
    "check": ["--dry-run", "--json"],
    "train": ["--data", "--out", "--epochs", "--seed", "--device", "--vectors"],
}
_OPTIONS["explain"] += ["--top", "--p", "--seed", "--device", "--reference", "--json", "--resize", "--out", "-o"]
_FLAGS = {"--json", "--resize", "--dry-run"}
_ODD = [
    "",
    " ",
    "-",
    "--",
    "0",
    "-1",
    "1",
    "9" * 400,
    "1e400",
    "nan",
    "inf",
    "0.5",
    "20%",
    "-20%",
    "rest:20%",
    "random:0",
]
_ODD += ["random:-1", "1,2", "0-", "nein", "grad", "greedy-as", "judge", "min-norm", "patches:0", "patches:7", "pixels"]
_ODD += ["superpixels:10", "blur", "words", "cpu", "cuda:99", "tpu", "é", "\u202e", "a\nb", "\x1b[31m", "名", "a" * 300]
_ODD += [
    "/dev/null",
    "/dev/full",
    "/proc/self/mem",
    ".",
    "/",
    "~",
    "nowhere/x.html",
    "x.html",
    "robustness-rest",
    "topics",
]


def trial(count: int, seed: int) -> Tally:
    """Give ``count`` wrong or odd commands."""
    tally = Tally(seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Path("text.db").write_text("no results", encoding="utf-8")
        Path("empty.png").touch()
        Path("folder").mkdir()
        for attempt in range(count):
            arguments = list(_command(random.Random(f"{seed} {attempt}")))
            began = time.perf_counter()
            outcome = _outcome(arguments)
            seconds = time.perf_counter() - began
            if seconds > _SECONDS and seconds > _SECONDS * slowness():
                outcome = f"took {seconds:.0f} s"
            if outcome in ("worked", "refused", "usage"):
                tally.count(outcome)
            else:
                tally.fail(f"attempt {attempt}: {arguments}: {outcome}")
    return tally


def _command(draw: random.Random) -> Iterator[str]:
    command = draw.choice([*_OPTIONS, "explain", "robustness", "nothing"])
    yield command
    files = ["text.db", "empty.png", "folder", "none.db", str(SMALL), *draw.sample(_ODD, 3)]
    if command in ("report", "export", "check") or (command in ("explain", "robustness") and draw.random() < 0.3):
        yield draw.choice(files)
    elif command in ("explain", "robustness"):
        yield from ("--digit", draw.choice(["0", "999", *draw.sample(_ODD, 2)]))
    elif command == "run":
        yield from (draw.choice([str(SMALL), "paper-mnist-quick", *files]), "--dry-run")
    elif command in ("train", "list"):
        yield from draw.sample(["mnist-cnn", "text-bilstm", "grad", *_ODD], draw.randrange(2) + (command == "train"))
    if command == "explain":
        yield from ("--method", draw.choice(["grad", "random", "loo", "leave-one-out", *draw.sample(_ODD, 2)]))
    if command == "robustness":
        yield from ("--method", draw.choice(["min-norm", "pgd", "exact-linear", *draw.sample(_ODD, 2)]))
    for option in draw.sample(_OPTIONS.get(command, []), min(draw.randrange(4), len(_OPTIONS.get(command, [])))):
        yield option
        if option not in _FLAGS:
            yield draw.choice([*_ODD, *files])


def _outcome(arguments: list[str]) -> str:
    """Return "worked", "refused" or "usage", or what is wrong."""
    if any("/proc" in one or one in ("/", "~") for one in arguments) and arguments[0] == "run":
        return "usage"  # a folder that a plan would search to its end
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    ended = result.exception
    if ended is None or (isinstance(ended, SystemExit) and result.exit_code == 0):
        return "worked"
    if isinstance(ended, HoldfastError):
        text = str(ended)
        return "refused" if "\n" not in text and text.endswith((".", "?", ".)")) else f"no sentence: {text!r}"
    if isinstance(ended, (SystemExit, typer.Exit)) and result.exit_code in (1, 2):
        return "usage" if "Traceback" not in result.output else "a traceback was printed"
    return "".join(traceback.format_exception(ended)[-2:])
