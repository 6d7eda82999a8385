"""Affine maps of flat inputs, which steps of preprocessing fold into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class AffineMap:
    """The map ``weight @ x + bias`` in double precision.

    Attributes:
        weight: ``[m, n]``.
        bias: ``[m]``.
    """

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, weight: Any, bias: Any) -> AffineMap:
        """Return the map of arrays, copied."""
        return cls(torch.tensor(weight, dtype=torch.float64), torch.tensor(bias, dtype=torch.float64))

    @classmethod
    def scaling(cls, scale: Any, shift: Any) -> AffineMap:
        """Return the map ``scale * x + shift`` of each coordinate."""
        return cls.of(np.diag(np.asarray(scale, dtype=float)), shift)

    @classmethod
    def selecting(cls, columns: Sequence[int], width: int) -> AffineMap:
        """Return the map from ``width`` coordinates to some of them."""
        weight = torch.zeros(len(columns), width, dtype=torch.float64)
        weight[torch.arange(len(columns)), torch.tensor(columns, dtype=torch.long)] = 1
        return cls(weight, torch.zeros(len(columns), dtype=torch.float64))

    @classmethod
    def identity(cls, width: int) -> AffineMap:
        """Return the map that changes nothing."""
        return cls.selecting(range(width), width)

    @classmethod
    def stacked(cls, maps: Sequence[AffineMap]) -> AffineMap:
        """Return the map to the outputs of several maps of the same input, one after the other."""
        return cls(torch.cat([one.weight for one in maps]), torch.cat([one.bias for one in maps]))

    def then(self, other: AffineMap) -> AffineMap:
        """Return the map that applies this one first."""
        return AffineMap(other.weight @ self.weight, other.weight @ self.bias + other.bias)

    def __call__(self, rows: Tensor) -> Tensor:
        """Map rows ``[R, n]`` to ``[R, m]``."""
        return torch.nn.functional.linear(rows, self.weight, self.bias)
