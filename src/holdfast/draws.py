"""Random numbers that depend only on a seed and the number of the draw, not on the batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SPACING = 1_000_003  # draws of neighbouring seeds overlap only beyond this number


def mixed(seed: int, draw: int) -> int:
    """Combine a seed and the number of a draw into one seed.

    Args:
        seed: The seed.
        draw: The number of the draw, from 0.
    """
    return (seed * _SPACING + draw) % 2**63


def generator(seed: int) -> torch.Generator:
    """Return a CPU generator with this seed. Draws on the CPU are the same on every device."""
    return torch.Generator().manual_seed(seed % 2**63)


def normal(width: int, seed: int, draw: int) -> Tensor:
    """Draw standard normal noise.

    A shorter draw is the beginning of a longer one, which ``torch.randn`` does not guarantee. So padding an input does
    not change the noise of its other coordinates.

    Args:
        width: The number of values.
        seed: The seed.
        draw: The number of the draw, from 0.

    Returns:
        Noise ``[width]`` on the CPU.
    """
    even = torch.rand(width, generator=generator(mixed(seed, draw)))
    return math.sqrt(2) * (2 * even.clamp(1e-7, 1 - 1e-7) - 1).erfinv()
