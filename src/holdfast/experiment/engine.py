"""Who does the work: engines behind one small interface, and the one that does it here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError
from holdfast.experiment.jobs import Job, perform
from holdfast.experiment.store import Unit

Batch = tuple[Job, ...]
"""Jobs on one block that are performed together."""
Outcome = list[Unit] | HoldfastError
Moving = Callable[[Batch, int, int], None]
"""Told how far the batch in hand is, where the engine knows: (batch, done, in all)."""


def outcome_of(
    batch: Batch, cases: Cases, given: Sequence[Sequence[Unit]], progress: Progress | None = None
) -> Outcome:
    """The units of a batch, or in one sentence why there are none: one explainer's bug is not the end of a run."""
    try:
        return perform(batch, cases, given, progress)
    except HoldfastError as error:
        return error
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        return HoldfastError(f"{batch[0].kind} {_maker(batch[0])} failed with {type(error).__name__}: {first}")


def _maker(job: Job) -> str:
    made_of = job.recipe()
    return str(made_of.get("explainer") or made_of.get("criterion") or "")


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
        return batch, outcome_of(batch, cases, given, lambda done, total: self._moving(batch, done, total))
