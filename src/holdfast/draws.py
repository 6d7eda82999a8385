"""Random numbers that depend on a seed and the number of the draw, never on the batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SPACING = 1_000_003  # draws of neighbouring seeds do not overlap until there are this many


def mixed(seed: int, draw: int) -> int:
    """Combine a seed and the number of a draw into one seed."""
    return (seed * _SPACING + draw) % 2**63


def generator(seed: int) -> torch.Generator:
    """Return a CPU generator with this seed. Draws on the CPU are the same on every device."""
    return torch.Generator().manual_seed(seed % 2**63)


def normal(width: int, seed: int, draw: int) -> Tensor:
    """Draw standard normal noise ``[width]``.

    A shorter draw is the beginning of a longer one, which ``torch.randn`` does not promise. So padding an input does
    not change the noise of its other coordinates.
    """
    even = torch.rand(width, generator=generator(mixed(seed, draw)))
    return math.sqrt(2) * (2 * even.clamp(1e-7, 1 - 1e-7) - 1).erfinv()
