"""Small experiments the tests share."""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import holdfast as hf
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.experiment import Measure, Method, Results, Store, Study, Summary, run
from holdfast.experiment.build import build
from holdfast.experiment.toml import load
from holdfast.ranking import Ranking
from toys import small_net

SMALL = Path(__file__).with_name("small.toml")


def small_study(limit: int | None = None) -> Study:
    """All kinds of work on three digits."""
    return build(load(str(SMALL)), "small", Path("nowhere"), limit=limit)


def toy_study(explainers: Mapping[str, hf.Explainer], block: int = 2, cases: int = 4) -> Study:
    """A few numbers, a small network and two criteria."""
    model = hf.TorchModel(small_net(), (0, 1))
    x = torch.rand(cases, 12, generator=torch.Generator().manual_seed(0)).double()
    methods = tuple(Method(name, {"both": made}) for name, made in explainers.items())
    rest = Measure("rest", hf.RobustnessRest(hf.MinNorm(steps=10)))
    measures = (rest, Measure("insertion", hf.Insertion(0.5)))
    return Study("toy", model.ask(x), methods, measures, main=methods[0].name, sizes=(0.25, 0.5), block=block)


def compute(study: Study, path: Path, **more: Any) -> tuple[Results, Summary]:
    """Run a study into a store, and read it."""
    with Store.open(path) as store:
        summary = run(study, store, **more)
    return Results(path), summary


def checksums_of(folder: Path) -> dict[str, str]:
    """Those by which the idx files of a folder are known."""
    return {
        path.name.removesuffix(".gz"): hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
        for path in folder.glob("*.gz")
    }


@dataclass(frozen=True)
class Broken(hf.Explainer):
    """Cannot explain anything."""

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        raise hf.HoldfastError("this one never works.")


@dataclass(frozen=True)
class Faulty(hf.Explainer):
    """Has a bug."""

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        raise RuntimeError("shape mismatch\nin line 7")


@dataclass(frozen=True)
class Dies(hf.Explainer):
    """Kills its own process the first time, as a machine that is switched off would."""

    marker: str

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        if not os.path.exists(self.marker):
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return hf.Grad()(cases)
