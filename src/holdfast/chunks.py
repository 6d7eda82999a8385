"""Work cut into pieces that fit memory: a piece that does not fit is halved, never the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with (done, in all): rows of a measurement, features of an explanation."""


def chunked(work: Callable[[slice], Result], rows: int, size: int) -> Iterator[tuple[slice, Result]]:
    """Yield ``(piece, work(piece))`` over ``range(rows)``, at most ``size`` rows at a time.

    When a piece runs out of memory its size is halved for good and the piece is tried again.
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
        # Outside the handler the traceback no longer holds the tensors of the failed piece.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def memory_budget(device: torch.device) -> int:
    """Bytes that results kept between passes may take: few on a CPU, whose memory others share, a part of a GPU's."""
    return torch.cuda.get_device_properties(device).total_memory // 16 if device.type == "cuda" else 2**30


def out_of_memory(error: BaseException) -> bool:
    """Whether that is what the error says."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
