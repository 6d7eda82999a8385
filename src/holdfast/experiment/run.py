"""Run a study: compute the units that its store lacks, and stop cleanly on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.errors import HoldfastError
from holdfast.experiment.engine import Batch, Engine, Local
from holdfast.experiment.plan import Plan, plan_of
from holdfast.experiment.store import Store, Unit
from holdfast.experiment.study import Study
from holdfast.experiment.unit import batch_of


@dataclass
class Progress:
    """The progress of a run.

    Attributes:
        plan: The jobs of the study.
        total: The number of units.
        stored: The number of units that were stored before the run.
        began: The time when the run began, in seconds.
        done: The number of units computed in this run.
        rows: Model rows so far.
        finished: Keys of stored units.
        failed: Reasons by key.
        out: Batches that are being computed, and the share of each that is done.
        latest: The units that were computed last.
    """

    plan: Plan
    total: int
    stored: int
    began: float = field(default_factory=time.perf_counter)
    done: int = 0
    rows: int = 0
    finished: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    out: dict[Batch, float] = field(default_factory=dict)
    latest: tuple[Unit, ...] = ()

    def finish(self, batch: Batch, units: Sequence[Unit]) -> None:
        """Record a computed batch.

        Args:
            batch: The jobs of the batch.
            units: Their units.
        """
        del self.out[batch]
        self.done += len({job.key for job in batch} - self.finished)
        self.finished |= {job.key for job in batch}
        self.rows += sum(unit.forward for unit in units)
        self.latest = tuple(units)

    def fail(self, batch: Batch, reason: HoldfastError) -> None:
        """Record a batch that could not be computed.

        Args:
            batch: The jobs of the batch.
            reason: Why.
        """
        del self.out[batch]
        self.failed |= {job.key: str(reason) for job in batch if job.key not in self.finished}

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began

    @property
    def rate(self) -> float:
        """Model rows per second."""
        return self.rows / max(self.seconds, 1e-9)

    @property
    def left(self) -> float | None:
        """An estimate of the seconds left; None while it is unknown."""
        if not self.rows:
            return None
        undone = {key: rows or 0 for key, rows in self.plan.rows.items() if key not in self.finished}
        begun = sum(undone.get(job.key, 0) * share for batch, share in self.out.items() for job in batch)
        return (sum(undone.values()) - begun) / self.rate


@dataclass(frozen=True)
class Summary:
    """How a run ended: units computed now, units stored before, and the reason of each that failed."""

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
    """Compute every unit of a study that the store lacks.

    Args:
        study: The study to compute.
        store: The store of its units.
        engine: The engine that computes them; default: in this process.
        notify: Called with the progress after each change.
        stop: When it returns True, no new job starts. Jobs that are being computed are finished and stored.

    Returns:
        How the run ended. Jobs that failed are not stored: the next run tries them again.
    """
    plan = plan_of(study)
    store.note_study(plan.record.plain())
    stored = store.batches()
    there = stored.keys() & plan.jobs.keys()
    progress = Progress(plan, len(plan.jobs), len(there), finished=set(there))
    waiting = [part for batch in plan.batches for part in _missing(batch, stored)]

    def tell() -> None:
        if notify is not None:
            notify(progress)

    def moving(batch: Batch, done: int, total: int) -> None:
        progress.out[batch] = done / max(total, 1)
        tell()

    tell()
    with engine or Local() as worker:
        worker.open(plan.blocks, moving)
        while True:
            if stop is None or not stop():
                _submit(waiting, progress, worker, store)
            if not progress.out:
                break
            batch, outcome = worker.finished()
            if isinstance(outcome, HoldfastError):
                progress.fail(batch, outcome)
                _drop(waiting, progress)
            else:
                store.put(*outcome)
                progress.finish(batch, outcome)
            tell()
    missing = len(plan.jobs) - len(progress.finished)
    ended = stop is not None and stop() and missing > len(progress.failed)
    return Summary(
        progress.done, progress.stored, missing, progress.failed, progress.seconds, progress.rows, bool(ended)
    )


def _missing(batch: Batch, stored: Mapping[str, str]) -> list[Batch]:
    """Return what is to be computed of a batch, in the same company as if nothing had been interrupted or damaged.

    The last bits of a value depend on what it is computed with. Units of a batch are stored together: so if some units
    that are missing make a stored batch complete, they were part of it and are lost. They are computed again with it.

    Args:
        batch: The jobs that a new study computes together.
        stored: The batch that each stored unit was computed in, by key.
    """
    left = [job for job in batch if job.key not in stored]
    parts: list[Batch] = []
    for name in sorted({stored[job.key] for job in batch if job.key in stored}):
        kept = [job for job in batch if stored.get(job.key) == name]
        for lost in (left, *([job] for job in left)):
            if lost and name == batch_of(job.key for job in (*kept, *lost)):
                parts.append(tuple(job for job in batch if job in kept or job in lost))
                left = [job for job in left if job not in lost]
                break
    return [*parts, tuple(left)] if left else parts


def _submit(waiting: list[Batch], progress: Progress, worker: Engine, store: Store) -> None:
    """Submit batches whose needed units are stored while the engine has a free slot."""
    while len(progress.out) < worker.slots:
        batch = _ready(waiting, progress)
        if batch is None:
            return
        waiting.remove(batch)
        worker.submit(batch, [[store.get(key) for key in job.needs] for job in batch])
        progress.out[batch] = 0.0


def _ready(waiting: Sequence[Batch], progress: Progress) -> Batch | None:
    """Return the first batch whose needed units are stored."""
    return next((batch for batch in waiting if all(set(job.needs) <= progress.finished for job in batch)), None)


def _drop(waiting: list[Batch], progress: Progress) -> None:
    """Remove jobs that need a failed unit from their batches: they fail too, the others go on."""
    for job in [job for batch in waiting for job in batch]:
        reasons = [progress.failed[key] for key in job.needs if key in progress.failed]
        if reasons:
            progress.failed[job.key] = reasons[0]
    left = [tuple(job for job in batch if job.key not in progress.failed) for batch in waiting]
    waiting[:] = [batch for batch in left if any(job.key not in progress.finished for job in batch)]
