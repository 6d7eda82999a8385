"""Sizes of the relevant set: a share of the features (float) or a number of features (int)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.settings import Read, shown_value
from holdfast.tensors import read_tensor

SIZES = tuple(percent / 100 for percent in range(5, 50, 5))
"""The sizes of the paper: the top 5, 10, … 45 % of the features."""
FULL = tuple(percent / 100 for percent in range(0, 105, 5))
"""From no feature to all of them, for criteria with a value at both ends, such as Insertion and Deletion."""
LARGEST = max(SIZES)
"""The largest size of the paper. Explainers that choose features one by one need not choose more."""

Sizes = float | int | Sequence[float | int] | Tensor | np.ndarray[Any, Any]


def size_text(size: Size) -> str:
    """Return a size as text: a share in percent, a number of features as it is.

    >>> size_text(0.05), size_text(5)
    ('5%', '5')
    """
    return f"{size:.0%}" if isinstance(size, float) else str(size)


def read_size(size: Any, name: str = "a size") -> Size:
    """Check a size and return it as a Python number.

    Args:
        size: A share over 0 and up to 1 (float), or a number of features from 1 (int). NumPy numbers are accepted.
        name: What the size is called in messages, such as ``"budget"``.

    Returns:
        The size as ``float`` or ``int``.

    Raises:
        HoldfastError: It is neither.
    """
    size = size.item() if isinstance(size, np.generic) else size
    check_size(size, name)
    number: Size = size
    return number


Size = Annotated[float | int, Read(read_size)]
"""A share over 0 and up to 1 (float) or a number from 1 (int) of features."""


def check_size(size: Any, name: str = "a size") -> None:
    """Refuse what is neither a share over 0 and up to 1 (float) nor a number of features from 1 (int).

    Args:
        size: The size to check.
        name: What it is called in messages.

    Raises:
        HoldfastError: It is neither.
    """
    if isinstance(size, bool) or not isinstance(size, (int, float)):
        raise HoldfastError(
            f"{name} is a share of the features (float) or a number of them (int), got {shown_value(size)}."
        )
    if isinstance(size, int) and size < 1:
        raise HoldfastError(f"{name} must be at least one feature, got {size}.")
    if isinstance(size, float) and not 0 < size <= 1:
        hint = f": write {int(size)} for {int(size)} features" if size > 1 and size.is_integer() else ""
        raise HoldfastError(f"{name} must be a share over 0 and at most 1 (= 100 %), got {size!r}{hint}.")


def read_sizes(sizes: Any) -> tuple[Size, ...]:
    """Return one size or several as a tuple of Python numbers.

    >>> read_sizes(0.2), read_sizes(range(1, 4))
    ((0.2,), (1, 2, 3))

    Args:
        sizes: A number, a sequence of numbers, or a tensor or array ``[P]``.

    Returns:
        The sizes, in the order given. Their values are not checked.

    Raises:
        HoldfastError: There is no size, or ``sizes`` is nothing of this kind.
    """
    if isinstance(sizes, (Tensor, np.ndarray, np.generic)):
        sizes = read_tensor(sizes, "sizes", "shares or numbers of features").tolist()
    if isinstance(sizes, (int, float)):
        return (sizes,)
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Sequence):
        raise HoldfastError(f"sizes must be shares (float) or numbers (int) of features, got {shown_value(sizes)}.")
    if not sizes:
        raise HoldfastError("expected at least one size, got none.")
    return tuple(_number(size) for size in sizes)


def _number(size: Any) -> Any:
    """Return a number of NumPy or torch as that of Python."""
    if isinstance(size, Tensor):
        size = read_tensor(size, "a size", "a share or a number of features")
    return size.item() if isinstance(size, np.generic) or (isinstance(size, Tensor) and size.ndim == 0) else size


def size_of(size: Size, count: Tensor, name: str = "a size") -> Tensor:
    """Return the number of features that a size means for each case.

    >>> size_of(0.25, torch.tensor([12, 2])), size_of(5, torch.tensor([12, 2]))
    (tensor([3, 1]), tensor([5, 2]))

    Args:
        size: A share (float) or a number of features (int).
        count: The number of features of each case, ``[B]``.
        name: What the size is called in messages.

    Returns:
        ``[B]``: at least one feature, at most all of them.

    Raises:
        HoldfastError: The size is malformed, or larger than every case.
    """
    check_size(size, name)
    if isinstance(size, float):
        return (size * count).round().long().clamp_min(1)
    if size > int(count.max()):
        raise HoldfastError(f"{name} must be at most the {int(count.max())} features there are, got {size}.")
    return torch.full_like(count, size).minimum(count)
