"""Compute what a study lacks in a store, whoever does the work, and stop cleanly when asked to."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.errors import HoldfastError
from holdfast.experiment.engine import Engine, Local
from holdfast.experiment.jobs import Job
from holdfast.experiment.store import Store, Unit
from holdfast.experiment.study import Plan, Study


@dataclass
class Progress:
    """How far a run is; handed to ``notify`` whenever something has happened."""

    plan: Plan
    total: int
    stored: int
    began: float = field(default_factory=time.perf_counter)
    done: int = 0
    rows: int = 0
    finished: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    out: dict[str, tuple[Job, float]] = field(default_factory=dict)
    latest: Unit | None = None

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.perf_counter() - self.began

    @property
    def rate(self) -> float:
        """Rows through the model a second."""
        return self.rows / max(self.seconds, 1e-9)

    @property
    def left(self) -> float | None:
        """About how many seconds are left; None as long as nothing tells."""
        if not self.rows:
            return None
        undone = {key: rows or 0 for key, rows in self.plan.rows.items() if key not in self.finished}
        begun = sum(undone[key] * share for key, (_, share) in self.out.items())
        return (sum(undone.values()) - begun) / self.rate


@dataclass(frozen=True)
class Summary:
    """How a run ended: units made now, units there before, and what could not be made, with the reason."""

    made: int
    stored: int
    missing: int
    failed: Mapping[str, str]
    seconds: float
    rows: int
    stopped: bool


def run(
    study: Study,
    store: Store,
    engine: Engine | None = None,
    *,
    notify: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Compute every unit of the study that the store lacks.

    Jobs that fail are told, not stored: the next run tries them again. When ``stop()`` becomes true, no new job is
    begun; those that are out are waited for and kept.
    """
    plan = study.plan
    store.note_study(plan.content)
    there = store.keys()
    waiting = {key: job for key, job in plan.jobs.items() if key not in there}
    progress = Progress(plan, len(plan.jobs), len(plan.jobs) - len(waiting))
    progress.finished = set(plan.jobs) - set(waiting)

    def tell() -> None:
        if notify is not None:
            notify(progress)

    def moving(job: Job, done: int, total: int) -> None:
        progress.out[job.key] = job, done / max(total, 1)
        tell()

    tell()
    with engine or Local() as worker:
        worker.open(plan.blocks, moving)
        while True:
            stopped = stop is not None and stop()
            while not stopped and len(progress.out) < worker.slots:
                job = _ready(waiting, progress)
                if job is None:
                    break
                worker.submit(waiting.pop(job.key), [store.get(key) for key in job.needs])
                progress.out[job.key] = job, 0.0
            if not progress.out:
                break
            job, outcome = worker.finished()
            del progress.out[job.key]
            if isinstance(outcome, HoldfastError):
                progress.failed[job.key] = str(outcome)
            else:
                store.put(outcome)
                progress.finished.add(job.key)
                progress.done, progress.rows = progress.done + 1, progress.rows + outcome.forward
                progress.latest = outcome
            tell()
    missing = len(plan.jobs) - len(progress.finished)
    ended = stop is not None and stop() and missing > len(progress.failed)
    return Summary(
        progress.done, progress.stored, missing, progress.failed, progress.seconds, progress.rows, bool(ended)
    )


def _ready(waiting: Mapping[str, Job], progress: Progress) -> Job | None:
    """The first job that has all it needs."""
    return next((job for job in waiting.values() if all(key in progress.finished for key in job.needs)), None)
