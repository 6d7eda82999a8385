"""Shapes that features are made from: groups of columns, and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.settings import Count, Natural, read_setting, shown_value


def read_groups(given: Any) -> list[list[int]]:
    """Return the columns of each feature."""
    try:
        groups = range(read_setting(given, Count, "groups")) if isinstance(given, (int, float)) else given
        each = [[group] if isinstance(group, (int, np.integer)) else list(group) for group in groups]
        return [[read_setting(column, Natural, "a column") for column in group] for group in each]
    except TypeError as error:
        raise HoldfastError(
            f"columns must be a number of them, or the column numbers of each feature, got {shown_value(given)}."
        ) from error


def read_image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """Return channels, height and width."""
    sizes = read_setting(shape, tuple[Count, ...], "an image shape")
    if len(sizes) != 3:
        raise HoldfastError(f"expected an image shape (channels, height, width), got {shown_value(shape)}.")
    c, h, w = sizes
    return c, h, w
