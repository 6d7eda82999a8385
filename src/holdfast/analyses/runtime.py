"""What every explainer costs on the same cases, on the same machine, in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from holdfast.analyses.result import Result, Row, bars
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.models.model import Queries


@dataclass(frozen=True)
class Runtime(Result):
    """Seconds of every repetition, and rows put through the model, for ``cases`` cases together."""

    seconds: Mapping[str, tuple[float, ...]]
    queries: Mapping[str, Queries]
    cases: int
    device: str

    def table(self) -> list[Row]:
        return [
            {
                "explainer": name,
                "s a case": statistics.median(seconds) / self.cases,
                "fastest": min(seconds) / self.cases,
                "slowest": max(seconds) / self.cases,
                "rows a case": self.queries[name].forward / self.cases,
                "of them with gradient": self.queries[name].gradient / self.cases,
                "cases": self.cases,
                "repetitions": len(seconds),
                "device": self.device,
            }
            for name, seconds in self.seconds.items()
        ]

    def plot(self, ax: Any) -> None:
        middle, low, high = ([row[key] for row in self.table()] for key in ("s a case", "fastest", "slowest"))
        bars(ax, list(self.seconds), middle, low, high, "seconds a case")
        ax.set_xscale("log")


def runtime(
    cases: Cases, explainers: Mapping[str, Explainer], *, repeats: int = 3, progress: Progress | None = None
) -> Runtime:
    """Time every explainer in turn, ``repeats`` times, after one case to warm up."""
    if not explainers or repeats < 1:
        raise HoldfastError("runtime needs at least one explainer and one repetition.")
    seconds: dict[str, list[float]] = {name: [] for name in explainers}
    queries: dict[str, Queries] = {}
    for explainer in explainers.values():
        with suppress(HoldfastError):  # a first case with nothing to explain is no reason to stop
            explainer(cases[:1])
    for repeat in range(repeats):
        for done, (name, explainer) in enumerate(explainers.items(), 1):
            before = cases.model.queries
            started = _now(cases)
            explainer(cases)
            seconds[name].append(_now(cases) - started)
            queries[name] = cases.model.queries - before
            if progress is not None:
                progress(repeat * len(explainers) + done, repeats * len(explainers))
    return Runtime({name: tuple(taken) for name, taken in seconds.items()}, queries, len(cases), str(cases.x.device))


def _now(cases: Cases) -> float:
    if cases.x.is_cuda:
        torch.cuda.synchronize(cases.x.device)
    return time.perf_counter()
