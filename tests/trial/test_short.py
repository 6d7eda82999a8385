"""The short form of every trial."""

from __future__ import annotations

import pytest

from trial.modules import trials

TRIALS = trials()


@pytest.mark.parametrize("name", TRIALS)
def test_nothing_breaks(name: str) -> None:
    tally = TRIALS[name].trial(TRIALS[name].SHORT, 0)
    assert tally.failures == []
    assert tally.total >= TRIALS[name].SHORT
