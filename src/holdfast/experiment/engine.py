"""Who does the work: engines behind one small interface, and the one that does it here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from holdfast.cases import Cases
from holdfast.errors import HoldfastError
from holdfast.experiment.jobs import Job, perform
from holdfast.experiment.store import Unit

Outcome = Unit | HoldfastError
Moving = Callable[[Job, int, int], None]
"""Told how far the job in hand is, where the engine knows: (job, done, in all)."""


class Engine(ABC):
    """``with engine: engine.submit(job, given); job, outcome = engine.finished()``.

    A driver submits while fewer than ``slots`` jobs are out, and keeps what comes back. Blocks of cases are handed over
    once, by name.
    """

    slots: int

    @abstractmethod
    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        """Make ready for jobs on these cases."""

    @abstractmethod
    def submit(self, job: Job, given: Sequence[Unit]) -> None:
        """Take a job on."""

    @abstractmethod
    def finished(self) -> tuple[Job, Outcome]:
        """Wait for a job that was taken on: its unit, or why there is none."""

    def close(self) -> None:  # noqa: B027  # most have nothing to give back
        """Let go of everything."""

    @final
    def __enter__(self) -> Engine:
        return self

    @final
    def __exit__(self, *_: Any) -> None:
        self.close()


class Local(Engine):
    """One job after another, in this process."""

    slots = 1

    def __init__(self) -> None:
        self._queue: deque[tuple[Job, Sequence[Unit]]] = deque()

    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        self._blocks, self._moving = blocks, moving

    def submit(self, job: Job, given: Sequence[Unit]) -> None:
        self._queue.append((job, given))

    def finished(self) -> tuple[Job, Outcome]:
        job, given = self._queue.popleft()
        try:
            return job, perform(job, self._blocks[job.block], given, lambda d, t: self._moving(job, d, t))
        except HoldfastError as error:
            return job, error
