"""What a trial counts: outcomes by name, and every failure as one line that is enough to repeat it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """The outcomes of a trial.

    Attributes:
        seed: The seed of the trial.
        outcomes: How often each outcome that is allowed occurred.
        failures: Every outcome that is not allowed, as one line.
    """

    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def count(self, outcome: str) -> None:
        """Count an outcome that is allowed."""
        self.outcomes[outcome] += 1

    def fail(self, what: str) -> None:
        """Record an outcome that is not allowed."""
        self.failures.append(" ".join(what.split())[:500])

    @property
    def total(self) -> int:
        """The number of attempts."""
        return self.outcomes.total() + len(self.failures)

    def __str__(self) -> str:
        outcomes = ", ".join(f"{name} {number:,}" for name, number in sorted(self.outcomes.items()))
        return f"{self.total:,} attempts, seed {self.seed}: {len(self.failures):,} failures; {outcomes}"
