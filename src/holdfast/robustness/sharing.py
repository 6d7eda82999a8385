"""What the radius of one subset says about the other subsets of the same case.

Robustness-S is monotone: if S is inside T then g(T) <= g(S). A witness for S is a witness for T, so upper bounds hold
for supersets. A change that is impossible within T is impossible within S, so lower bounds hold for subsets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from holdfast.robustness.radii import Measurements

_BLOCK = 1024  # subsets compared with all others at once
_ROUNDING = 1e-6  # relative difference of two exact radii that does not refute either


def share_witnesses(measured: Measurements, subsets: Tensor) -> None:
    """Give every subset the best witness of the subsets inside it, in place.

    Args:
        measured: Of all cases and subsets, ``[B, K]``.
        subsets: Bool ``[B, K, d]``.
    """
    radius, witness, new_class = measured.radius, measured.witness, measured.new_class
    for case, inside, block in _blocks(subsets):
        # S is inside T when no feature of S is outside T.
        serves = (1 - inside[block]) @ inside.T == 0
        best, source = torch.where(serves, radius[case], math.inf).min(1)
        better = best < radius[case, block]
        rows, source = block[better], source[better]
        radius[case, rows] = best[better]
        if witness is not None:
            witness[case, rows] = witness[case, source]
        new_class[case, rows] = new_class[case, source]


def share_lower_bounds(measured: Measurements, subsets: Tensor) -> None:
    """Give every subset the best lower bound of the subsets around it, in place.

    Args:
        measured: Of all cases and subsets, ``[B, K]``.
        subsets: Bool ``[B, K, d]``.
    """
    measured.radius = _largest_of_supersets(measured.radius, subsets)


def share_exact(measured: Measurements, subsets: Tensor) -> None:
    """Share witnesses with supersets and proofs with subsets, in place.

    A witness that is closer than a proof allows refutes the proof. A radius becomes proven if it does not exceed the
    proven radius of a superset; so does an infinite one if a superset is proven unreachable.

    Args:
        measured: Of all cases and subsets, ``[B, K]``.
        subsets: Bool ``[B, K, d]``.
    """
    claimed = measured.radius.clone()
    share_witnesses(measured, subsets)
    measured.proven &= measured.radius >= claimed * (1 - _ROUNDING)
    lower = _largest_of_supersets(torch.where(measured.proven, measured.radius, 0), subsets)
    measured.proven |= measured.radius <= lower


def _largest_of_supersets(values: Tensor, subsets: Tensor) -> Tensor:
    """Return for each subset the largest of ``values [B, K]`` among the subsets that contain it."""
    largest = values.clone()
    for case, inside, block in _blocks(subsets):
        contained = inside[block] @ (1 - inside).T == 0
        largest[case, block] = torch.where(contained, values[case], -math.inf).amax(1)
    return largest


def _blocks(subsets: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield each case with its subsets as numbers ``[K, d]`` and the places of a block of them."""
    for case in range(len(subsets) if subsets.shape[1] > 1 else 0):
        inside = subsets[case].to(torch.float32)
        for block in torch.arange(len(inside), device=inside.device).split(_BLOCK):
            yield case, inside, block
