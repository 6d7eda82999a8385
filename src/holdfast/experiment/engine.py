"""Engines compute the jobs of an experiment: in this process or elsewhere."""

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
"""Called with (batch, done, total) while a batch is computed. Engines that do not know this never call it."""


def outcome_of(
    batch: Batch, cases: Cases, needed: Sequence[Sequence[Unit]], progress: Progress | None = None
) -> Outcome:
    """Compute a batch, and return an error instead of raising it, so that one faulty explainer does not end a run.

    Args:
        batch: Jobs that are computed together.
        cases: The block of cases of the jobs.
        needed: For each job, the units that it needs.
        progress: Called with (done, total).

    Returns:
        One unit for each job, or the error.
    """
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

    A run submits batches while fewer than ``slots`` are being computed, and stores their units. A subclass that sets
    ``name`` can be chosen by ``--engine`` and in experiment files.

    Attributes:
        name: Its name on the command line and in experiment files.
        has_workers: Whether it accepts ``--address`` and ``--workers``.
        slots: The number of batches that may be computed at once.
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
            address: The cluster to use, from the command line; None: the default.
            workers: The number of batches that may be computed at once; None: the default.
            device: The torch device of the models.

        Returns:
            An engine that ``open`` prepares.

        Raises:
            HoldfastError: It cannot be started.
        """

    @abstractmethod
    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        """Prepare for jobs on blocks of cases. Called once, before the first batch.

        Args:
            blocks: Cases by the name of their block, which jobs hold as ``block``.
            moving: To be called with (batch, done, total) while a batch is computed.

        Raises:
            HoldfastError: The blocks cannot be sent to where jobs are computed.
        """

    @abstractmethod
    def submit(self, batch: Batch, needed: Sequence[Sequence[Unit]]) -> None:
        """Accept a batch. Called only while fewer than ``slots`` batches are being computed.

        Args:
            batch: Jobs on one block that are computed together.
            needed: For each job of the batch, the stored units that it needs, in the order of ``Job.needs``.
        """

    @abstractmethod
    def finished(self) -> tuple[Batch, Outcome]:
        """Wait until one of the submitted batches is computed.

        Returns:
            The batch, and its units or the error.
        """

    def close(self) -> None:  # noqa: B027  # most have nothing to release
        """Release all resources."""

    @final
    def __enter__(self) -> Engine:
        return self

    @final
    def __exit__(self, *_: Any) -> None:
        self.close()


class Local(Engine):
    """Computes one batch after another, in this process."""

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
