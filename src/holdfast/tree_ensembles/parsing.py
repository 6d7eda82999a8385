"""What all readers share: arrays of numbers from parsed files, and one sentence for damage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import Floats, Integers


@contextmanager
def reading_model(library: str) -> Iterator[None]:
    """Turn whatever a damaged record raises into one sentence.

    Args:
        library: The library that wrote the record.

    Yields:
        Nothing.

    Raises:
        HoldfastError: The block failed; a ``HoldfastError`` passes unchanged.
    """
    try:
        with np.errstate(all="ignore"):  # a number that is too large becomes infinite, which is refused
            yield
    except HoldfastError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        raise HoldfastError(
            f"this is not a model of {library}, or it is damaged ({type(error).__name__}): save it again."
        ) from error


def reals(given: Any) -> Floats:
    """Return a list or array of numbers, ``[N]``.

    Args:
        given: The numbers; text is none.

    Raises:
        ValueError: It is something else.
    """
    read = np.asarray(given)
    if read.ndim != 1 or (read.dtype.kind not in "iuf" and read.size):
        raise ValueError("expected a list of numbers")
    return read.astype(np.float64)


def wholes(given: Any) -> Integers:
    """Return a list or array of whole numbers, ``[N]``.

    Args:
        given: The numbers; text is none.

    Raises:
        ValueError: It is something else.
    """
    read = np.asarray(given)
    if read.ndim != 1 or (read.dtype.kind not in "iu" and read.size):
        raise ValueError("expected a list of whole numbers")
    return read.astype(np.int64)
