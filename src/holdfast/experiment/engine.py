"""Engines: where the jobs of an experiment are computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, final

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError, first_line
from holdfast.experiment.jobs import Job
from holdfast.experiment.performance import perform
from holdfast.experiment.store import Unit
from holdfast.registry import Registry

Batch = tuple[Job, ...]
"""Jobs on one block that are computed together."""
Outcome = list[Unit] | HoldfastError
Moving = Callable[[Batch, int, int], None]
"""Called with (batch, done, total) while a batch is computed, by engines that know."""


def outcome_of(
    batch: Batch, cases: Cases, needed: Sequence[Sequence[Unit]], progress: Progress | None = None
) -> Outcome:
    """Return the units of a batch, or one sentence why there are none: a bug in one explainer does not end a run."""
    try:
        return perform(batch, cases, needed, progress)
    except HoldfastError as error:
        return error
    except Exception as error:
        recipe = batch[0].recipe()
        maker = recipe.get("explainer") or recipe.get("criterion") or ""
        return HoldfastError(f"{batch[0].kind} {maker} failed with {type(error).__name__}: {first_line(error)}")


class Engine(ABC):
    """``with engine: engine.submit(batch, needed); batch, outcome = engine.finished()``.

    A run submits batches while fewer than ``slots`` are out, and stores what comes back. A subclass that sets ``name``
    can be chosen by ``--engine`` and in experiment files.

    Attributes:
        name: What it is called.
        has_workers: Whether it can be given an address and a number of workers.
        slots: How many batches may be out at once.
    """

    registry: ClassVar[Registry[Engine]] = Registry("engine", "holdfast.experiment")
    name: ClassVar[str]
    has_workers: ClassVar[bool] = False
    slots: int

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Engine.registry.add(cls)

    @classmethod
    @abstractmethod
    def start(cls, address: str | None, workers: int | None, device: str) -> Engine:
        """Return an engine for a run.

        Args:
            address: Where it runs, from the command line.
            workers: How many batches may be out at once, from the command line.
            device: Where models compute.

        Raises:
            HoldfastError: It cannot be started.
        """

    @abstractmethod
    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        """Prepare for jobs on these blocks of cases."""

    @abstractmethod
    def submit(self, batch: Batch, needed: Sequence[Sequence[Unit]]) -> None:
        """Accept a batch; ``needed`` are the units that each of its jobs needs."""

    @abstractmethod
    def finished(self) -> tuple[Batch, Outcome]:
        """Wait for a batch that was submitted, and return its outcome."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Release everything."""

    @final
    def __enter__(self) -> Engine:
        return self

    @final
    def __exit__(self, *_: Any) -> None:
        self.close()


class Local(Engine):
    """One batch after another, in this process."""

    name: ClassVar[str] = "local"
    slots = 1

    @classmethod
    def start(cls, address: str | None, workers: int | None, device: str) -> Local:
        return cls()

    def __init__(self) -> None:
        self._queue: deque[tuple[Batch, Sequence[Sequence[Unit]]]] = deque()

    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        self._blocks, self._moving = blocks, moving

    def submit(self, batch: Batch, needed: Sequence[Sequence[Unit]]) -> None:
        self._queue.append((batch, needed))

    def finished(self) -> tuple[Batch, Outcome]:
        batch, needed = self._queue.popleft()
        cases = self._blocks[batch[0].block]
        return batch, outcome_of(batch, cases, needed, lambda done, total: self._moving(batch, done, total))
