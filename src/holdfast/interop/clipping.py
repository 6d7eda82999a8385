"""Inputs from other libraries, clipped to the bounds of a model, with one warning."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import HoldfastWarning
from holdfast.models.frame import shown_bounds
from holdfast.models.model import Model

_ROUNDING = 1e-6  # relative to the bounds: what leaves by less is rounding


class Clipping:
    """Clips inputs to the bounds of a model, and warns the first time that this changes more than rounding."""

    def __init__(self) -> None:
        self._warned = False

    def __call__(self, x: Tensor, model: Model) -> Tensor:
        """Return inputs ``[B, *shape]`` inside the bounds of the model; as they are if the bounds do not fit them."""
        low, high = model.low, model.high
        if low is None or high is None or not _fit(low, high, x):
            return x
        inside = x.clamp(low, high)
        if not self._warned:
            distance = (x - inside).abs()
            outside = distance > _ROUNDING * torch.maximum(high - low, torch.maximum(low.abs(), high.abs()))
            if bool(outside.any()):
                self._warned = True
                warnings.warn(
                    f"{int(outside.sum())} of {x.numel()} input values leave the bounds {shown_bounds(low, high)}, by "
                    f"up to {float(distance.max()):g}, and were clipped to them (said once): give bounds that hold "
                    "the inputs.",
                    HoldfastWarning,
                    stacklevel=4,
                )
        return inside


def _fit(low: Tensor, high: Tensor, x: Tensor) -> bool:
    """Whether bounds broadcast against one input; the model refuses those that do not when it is asked."""
    try:
        return np.broadcast_shapes(low.shape, high.shape, x.shape[1:]) == x.shape[1:]
    except ValueError:
        return False
