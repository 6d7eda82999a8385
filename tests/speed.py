"""How fast this machine is at the moment: limits on time hold for a quiet core, and others get more."""

from __future__ import annotations

import time

_LOOPS = 500_000
_USUAL = 0.04  # seconds that a core of a Xeon at 2.8 GHz takes for them


def slowness() -> float:
    """Return how many times longer a fixed computation takes than usual, at least 1."""
    began = time.perf_counter()
    total = 0
    for number in range(_LOOPS):
        total += number * number
    return max(1.0, (time.perf_counter() - began) / _USUAL)
