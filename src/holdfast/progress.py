"""How far a function is: for functions that take ``progress=True`` or a function to call."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.chunks import Progress
from holdfast.errors import HoldfastError

_PART = 1000  # steps into which each part of the work is divided
_PAUSE = 0.1  # seconds between two lines


@contextmanager
def reported(progress: bool | Progress | None, doing: str) -> Iterator[Progress | None]:
    """Return what long functions call with (done, total).

    Args:
        progress: True: a line on standard error, in a terminal or a notebook. A function: itself. False or None: none.
        doing: What is done, for the line.

    Yields:
        The function to call; None if nobody listens.

    Raises:
        HoldfastError: ``progress`` is something else.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        line = _Line(doing)
        try:
            yield line
        finally:
            line.clear()
    elif callable(progress):
        yield progress
    else:
        kind = type(progress).__name__
        raise HoldfastError(f"progress must be True, False or a function of (done, total), got {kind}.")


def part(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """Return what one of several equal parts of the work calls with its own (done, total).

    >>> part(lambda done, total: print(done, total), 1, 4)(1, 2)
    1500 4000

    Args:
        progress: Called for the whole work; None: nobody listens.
        number: Which part it is, from 0.
        parts: How many parts there are.
    """
    if progress is None:
        return None
    return lambda done, total: progress(_PART * number + _PART * done // max(1, total), _PART * parts)


class _Line:
    """A line that is written again and again."""

    def __init__(self, doing: str):
        self._doing, self._next, self._length = doing, 0.0, 0

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PAUSE
        text = f"{self._doing}: {100 * done // max(1, total)} %"
        sys.stderr.write(f"\r{text.ljust(self._length)}")
        sys.stderr.flush()
        self._length = len(text)

    def clear(self) -> None:
        if self._length:
            sys.stderr.write(f"\r{' ' * self._length}\r")
            sys.stderr.flush()
