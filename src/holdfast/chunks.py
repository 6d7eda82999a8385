"""Work in batches that fit memory: a batch that does not fit is halved and tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with (done, total): rows of a measurement, features of an explanation."""


def chunked(work: Callable[[slice], Result], rows: int, size: int) -> Iterator[tuple[slice, Result]]:
    """Run ``work`` on consecutive pieces of ``range(rows)``.

    A piece that runs out of memory is halved, and so are all pieces after it.

    >>> [result for _, result in chunked(lambda piece: piece.stop - piece.start, 10, 4)]
    [4, 4, 2]

    Args:
        work: From a slice of the rows to a result.
        rows: The number of rows.
        size: The largest number of rows in a piece.

    Yields:
        Each piece and its result.
    """
    start = 0
    while start < rows:
        piece = slice(start, min(start + size, rows))
        try:
            result = work(piece)
        except (RuntimeError, MemoryError) as error:
            if piece.stop - piece.start == 1 or not out_of_memory(error):
                raise
            size = (piece.stop - piece.start) // 2
        else:
            yield piece, result
            start = piece.stop
            continue
        # Outside the handler the traceback no longer keeps the tensors of the failed piece alive.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def rounded_up(rows: int) -> int:
    """Return the next batch size of a series in which each is at most a half larger than the one before.

    >>> [rounded_up(rows) for rows in (1, 5, 7, 9, 13, 40)]
    [1, 6, 8, 12, 16, 48]

    Args:
        rows: The number of rows, at least 1.

    Returns:
        The smallest power of two, or three times a power of two, that is not smaller.
    """
    power = 1 << (rows - 1).bit_length()
    return 3 * power // 4 if power >= 4 and rows <= 3 * power // 4 else power


def memory_budget(device: torch.device) -> int:
    """Return how many bytes results kept between passes may use: 1 GiB on a CPU, a sixteenth of a GPU's memory."""
    return torch.cuda.get_device_properties(device).total_memory // 16 if device.type == "cuda" else 2**30


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory ran out."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
