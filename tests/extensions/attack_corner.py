"""An attack in one file: jump to the corner of the box that the gradient points to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.models.model import Access
from holdfast.robustness import Attack, Moves, Rows
from holdfast.robustness.rows import margin


@dataclass(frozen=True)
class Corner(Attack):
    """Jump to the corner of the box that the gradient points to."""

    name: ClassVar[str] = "corner"
    requires: ClassVar[Access] = Access.GRADIENTS
    p: float = 2

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        _, _, slope = rows.gradient(torch.zeros_like(rows.x), lambda z: margin(z, rows.label, rows.target))
        return Moves(torch.where(slope > 0, rows.low, rows.high))
