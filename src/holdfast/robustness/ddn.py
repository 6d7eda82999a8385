"""Decoupled direction and norm (Rony et al. 2019), inside mask and box."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.robustness.search import Search, cosine_decay


def ddn(
    search: Search, steps: int, stride: float | None = None, loss: str = "margin", start: Tensor | None = None
) -> None:
    """Improve witnesses by decoupled direction and norm.

    Each step goes against the gradient and is projected onto a sphere. The sphere shrinks while the decision has
    changed and grows while it has not. Rows without a witness are left out.

    Args:
        search: The search to improve.
        steps: Gradients for each row.
        stride: The first step as a share of the radius; None for the norm's own.
        loss: The loss to descend, see ``Search.evaluate``.
        start: Moves ``[R, n]`` to begin from; None for the best witnesses.
    """
    stride = search.norm.stride if stride is None else stride
    able = torch.isfinite(search.best_radius()) & (search.best_radius() > 0)
    delta = search.best_delta() if start is None else start
    if not bool(able.all()):
        search, delta = search.part(able), delta[able]
    if not len(search.rows):
        return
    radius, norm = search.best_radius(), search.norm
    for step in range(steps):
        changed, _, slope = search.evaluate(delta, None, loss)
        if step == steps - 1:
            return
        rows, length = search.rows, norm.length(delta)
        shrink = cosine_decay(step, steps, 0.03, 0.005)
        radius = torch.where(changed, torch.minimum(radius, length) * (1 - shrink), radius * (1 + shrink))
        radius = torch.minimum(radius, search.best_radius() * (1 - 0.002))
        move = cosine_decay(step, steps, stride, 0.03) * norm.ddn_step(slope * rows.free, delta, radius)
        delta = norm.project(delta - move, radius, rows.low, rows.high)
