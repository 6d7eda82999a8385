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

Batch = tuple[Job, ...]
"""Jobs on one block that are performed together."""
Outcome = list[Unit] | HoldfastError
Moving = Callable[[Batch, int, int], None]
"""Told how far the batch in hand is, where the engine knows: (batch, done, in all)."""


class Engine(ABC):
    """``with engine: engine.submit(batch, given); batch, outcome = engine.finished()``.

    A driver submits while fewer than ``slots`` batches are out, and keeps what comes back. Blocks of cases are handed
    over once, by name.
    """

    slots: int

    @abstractmethod
    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        """Make ready for jobs on these cases."""

    @abstractmethod
    def submit(self, batch: Batch, given: Sequence[Sequence[Unit]]) -> None:
        """Take a batch on; ``given`` are the units that each of its jobs needs."""

    @abstractmethod
    def finished(self) -> tuple[Batch, Outcome]:
        """Wait for a batch that was taken on: its units, or why there are none."""

    def close(self) -> None:  # noqa: B027  # most have nothing to give back
        """Let go of everything."""

    @final
    def __enter__(self) -> Engine:
        return self

    @final
    def __exit__(self, *_: Any) -> None:
        self.close()


class Local(Engine):
    """One batch after another, in this process."""

    slots = 1

    def __init__(self) -> None:
        self._queue: deque[tuple[Batch, Sequence[Sequence[Unit]]]] = deque()

    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        self._blocks, self._moving = blocks, moving

    def submit(self, batch: Batch, given: Sequence[Sequence[Unit]]) -> None:
        self._queue.append((batch, given))

    def finished(self) -> tuple[Batch, Outcome]:
        batch, given = self._queue.popleft()
        cases = self._blocks[batch[0].block]
        try:
            return batch, perform(batch, cases, given, lambda done, total: self._moving(batch, done, total))
        except HoldfastError as error:
            return batch, error
