"""Closed-form steps inside the mask, the box and a ball, without a norm of their own: ``norms.py`` combines them.

Rows are flat, ``[R, n]``. Mask and box are one interval ``low <= delta <= high`` for each coordinate: outside the
subset ``low = high = 0``. Every step stays inside it, so no move leaves the mask. Steps are exact, with one exception
on GPUs without Triton that ``multiplier`` describes. If the interval does not allow the drop or the radius that was
asked for, the result is the farthest move that it allows.

``masked_fill`` replaces ``torch.where(mask, x, 0)`` here: the latter copies the number to a GPU each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

_GPU_KINKS = 6  # Newton steps that a GPU takes without a test for the end, which would make it wait
_BISECTIONS = 24


def clip(delta: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the point of the interval that is nearest to ``delta``, in every norm at once."""
    return torch.minimum(torch.maximum(delta, low), high)


def descent_limit(slope: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return how far each coordinate may move against its slope, ``[R, n]``."""
    return torch.where(slope > 0, -low, high)


def multiplier(weight: Tensor, limit: Tensor, value: Tensor, goal: Tensor, exact: bool = False) -> Tensor:
    """Solve ``sum_i value_i * min(t weight_i, limit_i) = goal`` for the multiplier t of each row.

    The sum is concave and piecewise linear in t. Newton's method from t = 0 increases towards the root, never passes
    it, and reaches it after a few kinks.

    Args:
        weight: ``[R, n]``, not negative.
        limit: The largest move of each coordinate, ``[R, n]``, possibly infinite.
        value: What a unit of each coordinate's move adds, ``[R, n]``.
        goal: ``[R]``.
        exact: Iterate to the root in any case. Otherwise a GPU without Triton stops after six kinks, because a test
            for the end would make it wait; a few rows then fall a little short of the goal.

    Returns:
        t ``[R]``; a very large number where the goal is out of reach.
    """
    largest = torch.finfo(goal.dtype).max ** 0.25
    fused = _fused_newton() if weight.is_cuda else None
    if fused is not None:
        root: Tensor = fused(weight, limit, value, goal, largest)
        return root
    idle = weight == 0
    stop = (limit / weight).masked_fill_(idle, 0)
    gain = value * weight
    # What a coordinate has added when it stops. One without a limit never stops.
    most = (value * limit).masked_fill_(idle, 0).nan_to_num_(0, posinf=0)
    free = torch.empty_like(stop)
    huge = torch.full_like(goal[:1], largest)
    t = torch.zeros_like(goal)
    untested = weight.is_cuda and not exact
    for _ in range(_GPU_KINKS if untested else weight.shape[1] + 1):
        torch.gt(stop, t[:, None], out=free)  # as numbers: a CPU multiplies ten times faster than it selects
        slope = torch.linalg.vecdot(gain, free)
        stopped = torch.linalg.vecdot(most, 1 - free)
        new = torch.where(slope > 0, (goal - stopped) / slope, huge)
        before, t = t, torch.maximum(t, new)
        if not untested and bool((t <= before * (1 + 1e-6)).all()):
            break
    return t


@cache
def _fused_newton() -> Callable[..., Tensor] | None:
    """Return the same as one kernel; None where Triton is not installed, or has no compiler."""
    try:
        from holdfast.kernels import newton_root  # only here: Triton takes half a second to import

        one = torch.ones(1, 1, device="cuda")
        newton_root(one, one, one, one[0], 1.0)
    except Exception:  # a missing compiler, a GPU that Triton does not know
        return None
    return newton_root


def scale_to_length(size: Tensor, limit: Tensor, radius: Tensor) -> Tensor:
    """Return ``min(t size, limit)`` with L2 norm ``radius``; its square is piecewise linear in ``t^2``."""
    t = multiplier(size.square(), limit.square(), torch.ones_like(size), radius.square()).sqrt()
    return torch.minimum(size * t[:, None], limit)


def fill_steepest(size: Tensor, limit: Tensor, value: Tensor, goal: Tensor) -> Tensor:
    """Move coordinates to their limit, largest ``size`` first, until ``sum value * move = goal``: a greedy knapsack."""
    order = size.argsort(1, descending=True)
    limit, value = limit.gather(1, order), value.gather(1, order)
    idle = value == 0
    gained = (value * limit).masked_fill_(idle, 0).cumsum(1)
    left = goal[:, None].repeat(1, gained.shape[1])
    left[:, 1:] = (left[:, 1:] - gained[:, :-1]).clamp_min_(0)
    move = torch.minimum(limit, (left / value).masked_fill_(idle, 0))
    return torch.zeros_like(move).scatter_(1, order, move)


def soft_threshold(size: Tensor, limit: Tensor, radius: Tensor) -> Tensor:
    """Return ``clip(size - t, 0, limit)`` with L1 norm ``radius``; t by bisection."""
    low, high, none = torch.zeros_like(radius), size.amax(1), torch.zeros_like(size)
    for _ in range(_BISECTIONS):
        t = (low + high) / 2
        above = torch.clamp(size - t[:, None], none, limit).sum(1) > radius
        low, high = torch.where(above, t, low), torch.where(above, high, t)
    return torch.clamp(size - high[:, None], none, limit)
