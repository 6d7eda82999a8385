"""Witnesses: points that change the decision, measured on the model itself."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from holdfast.robustness.norms import Norm
from holdfast.robustness.rows import Rows
from holdfast.robustness.steps import clip


def measure(rows: Rows, delta: Tensor, norm: Norm, factors: tuple[float, ...] = ()) -> tuple[Tensor, Tensor, Tensor]:
    """Cut moves to mask, box and domain, and measure where the model itself changes its decision.

    An attack ends close behind the boundary. Rounding differs with the batch size and the form of the network, and
    can put the point in front of it again. Such a point is moved outwards by each of ``factors`` in turn.

    Args:
        rows: R rows.
        delta: Proposed moves ``[R, n]``.
        norm: The norm to measure in.
        factors: Multiples of a move to try where the move itself does not change the decision.

    Returns:
        The radius ``[R]``, the witness ``[R, *shape]`` and its class ``[R]``: ``inf``, x and -1 where the decision
        does not change.
    """
    delta = clip(delta.nan_to_num(0), rows.low, rows.high)
    points = rows.inputs(delta)
    logits = rows.model(points, exact=True)
    changed = rows.changed(logits)
    for factor in factors:
        short = ~changed & (delta != 0).any(1)
        if not bool(short.any()):
            break
        some = rows.at(short)
        points[short] = some.inputs(clip(factor * delta[short], some.low, some.high))
        logits[short] = rows.model(points[short], exact=True)
        changed = rows.changed(logits)
    radius = torch.where(changed, norm.length(points.flatten(1) - rows.x), math.inf)
    shaped = changed.reshape(-1, *[1] * len(rows.shape))
    witness = torch.where(shaped, points, rows.x.reshape(points.shape))
    return radius, witness, torch.where(changed, logits.argmax(1), -1)
