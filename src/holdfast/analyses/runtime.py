"""Runtime: the cost of explainers on the same cases, on the same machine, in the same run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import holdfast.published as published
from holdfast.analyses.analysis import Analysis, Draw, Stored, Subject
from holdfast.analyses.result import Result, Row, bars
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.clock import now
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.models.model import Queries
from holdfast.prose import counted
from holdfast.table import Table


@dataclass(frozen=True)
class Runtime(Result):
    """The cost of explainers.

    Attributes:
        seconds: Seconds of every repetition, by explainer, for all cases together.
        queries: Rows put through the model, by explainer.
        cases: The number of cases.
        device: The device or machine.
    """

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

    def draw(self, ax: Any) -> None:
        middle, low, high = ([row[key] for row in self.table()] for key in ("s a case", "fastest", "slowest"))
        bars(ax, list(self.seconds), middle, low, high, "seconds a case")
        ax.set_xscale("log")


def runtime(
    cases: Cases, explainers: Mapping[str, Explainer], *, repeats: int = 3, progress: Progress | None = None
) -> Runtime:
    """Time explainers in turn, after one case to warm up.

    Args:
        cases: B cases to explain.
        explainers: Explainers by name.
        repeats: The number of repetitions for each.
        progress: Called with (done, total) explanations.

    Returns:
        Seconds and rows of each explainer.

    Raises:
        HoldfastError: There is no explainer or no repetition, or an explainer fails.
    """
    if not explainers or repeats < 1:
        raise HoldfastError("runtime needs at least one explainer and one repetition.")
    seconds: dict[str, list[float]] = {name: [] for name in explainers}
    queries: dict[str, Queries] = {}
    for explainer in explainers.values():
        with suppress(HoldfastError):  # the first case may have nothing to explain
            explainer(cases[:1])
    for repeat in range(repeats):
        for done, (name, explainer) in enumerate(explainers.items(), 1):
            before = cases.model.queries
            started = now(cases.x.device)
            explainer(cases)
            seconds[name].append(now(cases.x.device) - started)
            queries[name] = cases.model.queries - before
            if progress is not None:
                progress(repeat * len(explainers) + done, repeats * len(explainers))
    return Runtime({name: tuple(taken) for name, taken in seconds.items()}, queries, len(cases), str(cases.x.device))


@dataclass(frozen=True)
class RuntimeAnalysis(Analysis):
    """The cost of the rankings of an experiment, as it was measured during the run."""

    name: ClassVar[str] = "runtime"
    title: ClassVar[str] = "What each method costs"
    subject: ClassVar[Subject] = Subject.STORED
    automatic: ClassVar[bool] = True

    @classmethod
    def read(cls, stored: Stored) -> Runtime | None:
        costs = stored.costs()
        if not costs:
            return None
        seconds = {name: (cost.seconds,) for name, cost in costs.items()}
        queries = {name: cost.queries for name, cost in costs.items()}
        return Runtime(seconds, queries, len(stored.example_names), "; ".join(stored.machines))

    @classmethod
    def tables(cls, result: Runtime, stored: Stored) -> list[Table]:
        paper = published.seconds(stored.published)
        rows = [
            (
                row["explainer"],
                row["s a case"],
                *([paper.get(str(row["explainer"]))] if paper else []),
                row["rows a case"],
                row["of them with gradient"],
            )
            for row in result.table()
        ]
        examples = counted(result.cases, "example")
        blocks = f"blocks of up to {stored.largest_block}"
        note = f"One ranking, {examples} in {blocks}, as the experiment ran: {result.device}."
        if paper:
            note += " The paper's seconds are of a GTX 1080 Ti, those of Greedy and Greedy-AS for the top 20 % alone."
        columns = ("method", "seconds an example", *(["paper"] if paper else []), "model rows", "with gradient")
        return [Table("runtime", "Cost", columns, tuple(rows), note)]

    @classmethod
    def figures(cls, result: Runtime) -> dict[str, Draw]:
        return {"Seconds a case": result.draw}
