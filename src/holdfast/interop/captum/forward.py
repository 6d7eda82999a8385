"""A module with several inputs, further arguments or other outputs, as a module ``[R, *shape] -> [R, classes]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.errors import HoldfastError
from holdfast.models.calls import ModelCall


class Adapted(nn.Module):
    """A module that is given its inputs as one, the same further arguments in every call, and returns classes.

    A single score s of each row becomes two classes, s and -s. Of an output with more axes, the classes at one position
    are returned.

    Args:
        module: The module.
        shapes: The shapes of its inputs; more than one input comes as one flat row. None: one input, as it comes.
        arguments: Further arguments of its forward; those in ``repeated`` have one row, which every row is given.
        repeated: Which arguments are repeated.
        position: The indices of the axes after the first, without that of the classes.
        class_axis: The axis of the classes.
    """

    def __init__(
        self,
        module: nn.Module,
        shapes: Sequence[torch.Size] | None,
        arguments: tuple[Any, ...],
        repeated: tuple[bool, ...],
        position: tuple[int, ...],
        class_axis: int,
    ):
        super().__init__()
        self.module, self.shapes = module, shapes
        self.arguments, self.repeated = arguments, repeated
        self.position, self.class_axis = position, class_axis
        self.one_score = False
        self.training = False  # only of this wrapper: the module itself was checked

    def forward(self, rows: Tensor) -> Tensor:
        """Return scores ``[R, classes]``."""
        parts = [rows]
        if self.shapes is not None:
            flat = rows.split([shape.numel() for shape in self.shapes], 1)
            parts = [part.reshape(-1, *shape) for part, shape in zip(flat, self.shapes, strict=True)]
        further = [
            one.expand(len(rows), *one.shape[1:]) if repeat else one
            for one, repeat in zip(self.arguments, self.repeated, strict=True)
        ]
        out = self.module(*parts, *further)
        return self._classes(out) if isinstance(out, Tensor) else out

    def _classes(self, out: Tensor) -> Tensor:
        axes = max(1, out.ndim - 1)
        if 1 + len(self.position) != axes:
            raise HoldfastError(
                f"outputs of shape {tuple(out.shape)} need a target of {axes} numbers for each input, got "
                f"{1 + len(self.position)}."
            )
        if out.ndim > 2:
            try:
                entry: tuple[Any, ...] = (slice(None), slice(None), *self.position)
                out = out.movedim(self.class_axis, 1)[entry]
            except IndexError as error:
                raise HoldfastError(
                    f"target position {self.position} is outside outputs of shape {tuple(out.shape)} with classes on "
                    f"axis {self.class_axis}."
                ) from error
        if out.ndim == 1 or (out.ndim == 2 and out.shape[1] == 1):
            self.one_score = True
            score = out.reshape(-1, 1)
            return torch.cat([score, -score], 1)
        return out


def is_ordinary(module: nn.Module, row: Tensor) -> bool | None:
    """Return whether the module maps one row ``[1, *shape]`` to scores of at least two classes; None if it fails."""
    try:
        with torch.no_grad(), ModelCall(row):
            out = module(row)
    except HoldfastError:
        return None  # it fails again when it is asked, after the inputs are checked
    return not isinstance(out, Tensor) or (out.ndim == 2 and out.shape[1] > 1)
