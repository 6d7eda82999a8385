"""An engine in one file: two batches at a time, the last first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from holdfast.cases import Cases
from holdfast.experiment.engine import Batch, Engine, Moving, Outcome, outcome_of
from holdfast.experiment.store import Unit


class Reversed(Engine):
    """Two batches at a time, the last first."""

    name: ClassVar[str] = "reversed"
    slots = 2

    @classmethod
    def start(cls, address: str | None, workers: int | None, device: str) -> Reversed:
        return cls()

    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        self._blocks = blocks
        self._stack: list[tuple[Batch, Sequence[Sequence[Unit]]]] = []

    def submit(self, batch: Batch, needed: Sequence[Sequence[Unit]]) -> None:
        self._stack.append((batch, needed))

    def finished(self) -> tuple[Batch, Outcome]:
        batch, needed = self._stack.pop()
        return batch, outcome_of(batch, self._blocks[batch[0].block], needed)
