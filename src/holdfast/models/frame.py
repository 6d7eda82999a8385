"""What belongs to a model beside its network: bounds of inputs, names of classes, batch size, normalisation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.columns import Columns
from holdfast.errors import HoldfastError, first_line
from holdfast.settings import Count, read_setting, shown_value
from holdfast.tensors import read_tensor

Bound = float | Sequence[float] | Tensor | np.ndarray[Any, Any]


def read_bounds(
    bounds: tuple[Bound, Bound] | None, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor | None, Tensor | None]:
    """Check the bounds of inputs.

    Args:
        bounds: ``(low, high)``: numbers, or tensors that broadcast against one input; None: unbounded.
        device: The device of the result.
        dtype: The precision of the result.

    Returns:
        Both ends as tensors, or ``(None, None)``.

    Raises:
        HoldfastError: The bounds are not a finite pair with low < high.
    """
    if bounds is None:
        return None, None
    low, high = (end.to(device, dtype) for end in _pair(bounds, "bounds", "(low, high) or None"))
    _check_broadcast(low, high, "bounds")
    if not bool((low < high).all()) or not bool(torch.isfinite(low + high).all()):
        raise HoldfastError(f"bounds must be finite with low < high, got {shown_bounds(low, high)}.")
    return low, high


def bounds_of_table(columns: Columns, width: int, bounds: Any) -> tuple[Tensor, Tensor]:
    """Return the bounds of a table for a classifier of ``width`` columns.

    Raises:
        HoldfastError: The classifier was trained on another matrix than that of the table, or bounds are given too.
    """
    if bounds is not None:
        raise HoldfastError("columns state the bounds and the scale: leave out bounds and scale.")
    if width != columns.width:
        raise HoldfastError(
            f"the classifier was trained on {width} columns, and columns.matrix gives {columns.width}: "
            "train it on columns.matrix(table), and leave its class out of the columns."
        )
    return columns.bounds()


def check_column_names(names: Sequence[str], columns: Columns) -> None:
    """Refuse a classifier whose columns have other names or another order; categories may have names of any form.

    Args:
        names: Names that the classifier was trained with; names that a library made up are not compared.
        columns: The columns of the table.

    Raises:
        HoldfastError: A column of numbers has another name.
    """
    if not any(one.name in names for one in columns if one.width == 1):
        return  # names that a library made up, such as f0
    for column in columns:
        place = columns.slices[column.name]
        if column.width == 1 and names[place][0] != column.name:
            raise HoldfastError(
                f"the classifier has {names[place][0]!r} where the table has the column {column.name!r}: give the "
                "table the names and the order of columns that the classifier was trained on."
            )


def _pair(given: Any, name: str, expected: str) -> list[Tensor]:
    """Return two values as tensors."""
    if not isinstance(given, (Sequence, Tensor, np.ndarray)) or isinstance(given, str) or _length(given) != 2:
        raise HoldfastError(f"{name} must be {expected}, got {shown_value(given)}.")
    return [read_tensor(part, name, f"{expected}, got {shown_value(given)}") for part in given]


def _length(given: Any) -> int:
    """Return the length of a sequence; 0 for a tensor without one."""
    try:
        return len(given)
    except (TypeError, RuntimeError):  # no axis, or a nested tensor
        return 0


def _check_broadcast(low: Tensor, high: Tensor, name: str) -> None:
    try:
        np.broadcast_shapes(low.shape, high.shape)  # torch's own imports half a second of other modules
    except ValueError as error:
        raise HoldfastError(
            f"{name} must be two numbers or two tensors of one shape, got {tuple(low.shape)} and {tuple(high.shape)}."
        ) from error


def read_rows(given: Any) -> Tensor:
    """Return the rows ``[R, *shape]`` that a model is called with; refuse other shapes."""
    rows = read_tensor(given, "rows", "a tensor [R, *shape]")
    if rows.ndim < 2 or not rows.numel():
        raise HoldfastError(f"expected rows [R, *shape] with R >= 1, got shape {tuple(rows.shape)}.")
    return rows


def read_device(given: Any) -> torch.device:
    """Return a device of torch that can be used."""
    try:
        return torch.zeros(0, device=given).device  # "cuda" becomes "cuda:0"
    except Exception as error:  # RuntimeError, TypeError, AssertionError: torch has no one class for it
        raise HoldfastError(f"there is no device {shown_value(given)}: {first_line(error)}") from error


def read_chunk(chunk: Any) -> int:
    """Return a batch size; refuse what is not a whole number >= 1."""
    size: int = read_setting(chunk, Count, "chunk")
    return size


def shown_bounds(low: Tensor | None, high: Tensor | None) -> str:
    """Return bounds as short text."""
    if low is None or high is None:
        return "None"
    low_text, high_text = (f"{end.item():g}" if end.ndim == 0 else f"tensor{tuple(end.shape)}" for end in (low, high))
    return f"({low_text}, {high_text})"


def read_class_names(classes: Any) -> tuple[str, ...]:
    """Return names of classes as a tuple; refuse a value that is not a sequence of names, such as a string."""
    if isinstance(classes, str) or not isinstance(classes, Iterable) or getattr(classes, "ndim", 1) != 1:
        raise HoldfastError(
            f"classes must be names of all classes, such as ['cat', 'dog'], got {shown_value(classes)}."
        )
    return tuple(map(str, classes))


def check_class_names(names: tuple[str, ...], count: int) -> None:
    """Refuse names if the model has another number of classes."""
    if names and len(names) != count:
        raise HoldfastError(f"{len(names)} classes are named, and the model has {count}.")


class Normalized(nn.Module):
    """A module whose inputs are first shifted and scaled, channel by channel."""

    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, mean: Tensor, std: Tensor):
        super().__init__()
        self.module = module
        weight = next(module.parameters(), mean)
        self.register_buffer("mean", mean.to(weight))
        self.register_buffer("std", std.to(weight))
        self.train(module.training)

    def forward(self, rows: Tensor) -> Any:
        shape = (-1, *[1] * (rows.ndim - 2))
        return self.module((rows - self.mean.view(shape)) / self.std.view(shape))


def mean_and_std(normalize: Any) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of the channels; refuse what cannot normalise inputs."""
    pair = _pair(normalize, "normalize", "(mean, std), numbers or one a channel")
    mean, std = (part.double().flatten() for part in pair)
    if not len(mean) or not bool(torch.isfinite(mean).all()) or not bool((torch.isfinite(std) & (std > 0)).all()):
        raise HoldfastError(f"normalize must be finite with std > 0, got {shown_value(normalize)}.")
    if len(mean) != len(std) and 1 not in (len(mean), len(std)):
        raise HoldfastError(f"normalize has {len(mean)} means and {len(std)} deviations: give one a channel of both.")
    return mean, std
