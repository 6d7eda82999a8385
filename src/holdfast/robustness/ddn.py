"""Decoupled direction and norm (Rony et al. 2019), inside mask and box."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.robustness.norms import Norm
from holdfast.robustness.search import Search, cosine_decay


def ddn(
    search: Search,
    steps: int,
    stride: float | None = None,
    start: Tensor | None = None,
    radius: Tensor | None = None,
    direction: Norm | None = None,
    fine: float = 1.0,
) -> None:
    """Improve witnesses by decoupled direction and norm.

    Each step goes against the gradient and is projected onto a sphere. The sphere shrinks while the decision has
    changed and grows while it has not. Rows of unknown radius are left out.

    Args:
        search: The search to improve.
        steps: Gradients for each row.
        stride: The first step as a share of the radius; None for the norm's own.
        start: Moves ``[R, n]`` to begin from; None for the best witnesses.
        radius: The radii of the first spheres, ``[R]``; None for those of the best witnesses.
        direction: The norm whose steps are made; None for the search's own.
        fine: A factor on the last step and on the changes of the sphere: below 1 close to the nearest point.
    """
    stride = search.norm.stride if stride is None else stride
    radius = search.best_radius() if radius is None else radius
    delta = search.best_delta() if start is None else start
    able = torch.isfinite(radius) & (radius > 0)
    if not bool(able.all()):
        search, delta, radius = search.part(able), delta[able], radius[able]
    if not len(search.rows):
        return
    norm = search.norm
    for step in range(steps):
        changed, _, slope = search.evaluate(delta)
        if step == steps - 1:
            return
        rows, length = search.rows, norm.length(delta)
        shrink = fine * cosine_decay(step, steps, 0.03, 0.005)
        radius = torch.where(changed, torch.minimum(radius, length) * (1 - shrink), radius * (1 + shrink))
        radius = torch.minimum(radius, search.best_radius() * (1 - 0.002 * fine))
        move = cosine_decay(step, steps, stride, 0.03 * fine) * (direction or norm).ddn_step(
            slope * rows.free, delta, radius
        )
        delta = norm.project(delta - move, radius, rows.low, rows.high)
