"""A disk that is full at random places: one sentence, what existed survives, and the same work ends as usual later.

The system's limit on the size of files stands in for the disk: writing beyond it fails in the same way.
"""

from __future__ import annotations

import random
import resource
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

import holdfast as hf
from holdfast.data.idx import write_idx
from holdfast.data.training import write_weights
from holdfast.experiment import Results, Store, Study, run
from holdfast.experiment.export import export, rows
from holdfast.experiment.repair import check
from holdfast.figures import Plot
from holdfast.report.page import write_page
from studies import toy_study
from trial.tally import Tally

SHORT, LONG = 40, 2_000


def trial(count: int, seed: int) -> Tally:
    """Write results and files ``count`` times to a disk that is full."""
    tally = Tally(seed)
    torch.set_num_threads(1)
    first = toy_study({"grad": hf.Grad()})
    both = toy_study({"grad": hf.Grad(), "random": hf.Random()})
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun, whole = Path(name, "begun.db"), Path(name, "whole.db")
        with Store.open(begun) as store:
            run(first, store)
        shutil.copy(begun, whole)
        with Store.open(whole) as store:
            run(both, store)
        expected = list(rows(Results(whole)))
        for attempt in range(count):
            draw = random.Random(f"{seed} {attempt}")
            place = Path(name, f"attempt{attempt}")
            place.mkdir()
            try:
                if attempt % 2:
                    tally.count(_write(place, whole, draw))
                else:
                    shutil.copy(begun, place / "results.db")
                    outcome = _resume(place / "results.db", both, draw.randrange(2 * whole.stat().st_size))
                    assert list(rows(Results(place / "results.db"))) == expected, "values differ after the second run"
                    tally.count(outcome)
            except Exception as error:
                tally.fail(f"attempt {attempt}: {type(error).__name__}: {error}")
            shutil.rmtree(place)
    return tally


def _resume(path: Path, study: Study, size: int) -> str:
    """Continue a run on a disk that is full, then on one that is not."""
    refused = False
    with _limited(size):
        try:
            with Store.open(path) as store:
                run(study, store)
        except hf.HoldfastError as error:
            refused = _said(error)
    damage, _ = check(path, dry_run=True)
    assert not damage, f"{size}: {damage}"
    assert damage.sound, f"{size}: what was stored is lost"
    with Store.open(path) as store:
        assert not run(study, store).missing
    return "run refused" if refused else "run ended"


def _write(place: Path, results: Path, draw: random.Random) -> str:
    """Replace a file on a disk that is full."""
    figure = Plot()
    figure.subplots().plot(range(1_000), [draw.random() for _ in range(1_000)])
    tensors = {"weights": torch.rand(20_000)}
    writers: dict[str, Callable[[Path], object]] = {
        "page.html": lambda path: write_page(Results(results), path),
        "values.csv": lambda path: export(Results(results), path),
        "values.parquet": lambda path: export(Results(results), path),
        "figure.pdf": lambda path: figure.save(path),
        "figure.png": lambda path: figure.save(path),
        "weights.safetensors": lambda path: write_weights(path, tensors, {}),
        "images.gz": lambda path: write_idx(path, torch.randint(255, (9, 28, 28))),
    }
    name = draw.choice(list(writers))
    path = place / name
    exists = draw.random() < 0.5
    if exists:
        path.write_bytes(b"what existed")
    outcome = "written"
    with _limited(draw.choice([0, 1, 100, 4_000, 50_000, 10**8])):
        try:
            writers[name](path)
        except hf.HoldfastError as error:
            outcome = "refused"
            _said(error)
    left = sorted(one.name for one in place.iterdir())
    if outcome == "refused":
        assert left == ([name] if exists else []), f"{name}: {left} are left"
        assert not exists or path.read_bytes() == b"what existed", f"{name}: what existed is lost"
    else:
        assert left == [name], f"{name}: {left} are left"
        assert path.read_bytes() not in (b"what existed", b""), f"{name}: nothing was written"
    return f"file {outcome}"


@contextmanager
def _limited(size: int) -> Iterator[None]:
    """Let no file grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _said(error: hf.HoldfastError) -> bool:
    text = str(error)
    assert "\n" not in text, text
    assert text.endswith("."), text
    return True
