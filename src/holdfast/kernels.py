"""Kernels for GPUs in Triton, which comes with torch for GPUs. Import this module where one is used, not before."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 4096  # coordinates that a program reads at once


def newton_root(weight: Tensor, limit: Tensor, value: Tensor, goal: Tensor, largest: float) -> Tensor:
    """Solve what ``steps.multiplier`` solves, in one kernel with one program for each row.

    Args:
        weight: ``[R, n]`` on a GPU.
        limit: ``[R, n]``.
        value: ``[R, n]``.
        goal: ``[R]``.
        largest: The result where the goal is out of reach.

    Returns:
        The multipliers ``[R]``.
    """
    rows, n = weight.shape
    out = torch.zeros_like(goal)
    if weight.numel():
        tensors = [one.contiguous() for one in (weight, limit, value, goal)]
        with torch.cuda.device(weight.device):
            _newton[(rows,)](*tensors, out, n, n + 1, largest, min(_BLOCK, triton.next_power_of_2(n)))
    return out


@triton.jit  # type: ignore[untyped-decorator]  # Triton has no types, and reads none
def _newton(weight, limit, value, goal, out, n, kinks, largest: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64) * n
    wanted = tl.load(goal + tl.program_id(0))
    place = tl.arange(0, block)
    t = wanted * 0
    left = kinks
    while left > 0:
        slope = tl.zeros([block], wanted.dtype)
        stopped = tl.zeros([block], wanted.dtype)
        for first in range(0, n, block):
            inside = first + place < n
            w = tl.load(weight + row + first + place, mask=inside, other=0)
            most = tl.load(limit + row + first + place, mask=inside, other=0)
            v = tl.load(value + row + first + place, mask=inside, other=0)
            free = (w > 0) & (most > t * w)
            slope += tl.where(free, v * w, 0)
            stopped += tl.where(free | (w == 0), 0, v * most)
        steepness = tl.sum(slope, 0)
        new = tl.where(steepness > 0, (wanted - tl.sum(stopped, 0)) / steepness, largest)
        left = tl.where(new <= t * (1 + 1e-6), 0, left - 1)
        t = tl.maximum(t, new)
    tl.store(out + tl.program_id(0), t)
