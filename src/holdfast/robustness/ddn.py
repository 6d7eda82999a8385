"""Decoupled direction and norm (Rony et al. 2019), inside mask and box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast.robustness.norms import Norm
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Best, Search, cosine_decay


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
    search, taken = search.batch(torch.isfinite(radius) & (radius > 0))
    if not len(search.rows):
        return
    rows, best, delta, radius = search.rows, search.best(), delta[taken], radius[taken]
    ends = (0.03 * fine, 0.005 * fine), (stride, 0.03 * fine), (0.002 * fine, 0.002 * fine)
    schedule = [[cosine_decay(step, steps, *pair) for pair in ends] for step in range(steps)]
    shares = torch.tensor(schedule, dtype=rows.x.dtype, device=rows.x.device).unbind()
    for step in range(steps):
        last = step == steps - 1 and not rows.model.fills_up(len(rows))  # a recording of its own would cost more
        kind = _Step(search.norm, direction or search.norm, rows.shape, last)
        delta, radius, *known = rows.model.run(kind, *rows.tensors, shares[step], delta, radius, *best)
        best = Best(*known)
    search.update(best)


@dataclass(frozen=True)
class _Step:
    """One step of all rows: evaluate, adapt the spheres, and move unless it is the last."""

    norm: Norm
    direction: Norm
    shape: tuple[int, ...]
    last: bool

    def __call__(self, model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        rows, (shares, delta, radius, *known) = Rows(model, self.shape, *tensors[:5]), tensors[5:]
        shrink, stride, gain = shares.unbind()
        logits, value, slope = rows.gradient(delta, rows.margin)
        changed, length = value < 0, self.norm.length(delta)
        best = Best(*known).improved(length, delta, logits, changed)
        if self.last:
            return delta, radius, *best
        radius = torch.where(changed, torch.minimum(radius, length) * (1 - shrink), radius * (1 + shrink))
        radius = torch.minimum(radius, best.radius * (1 - gain))
        move = stride * self.direction.ddn_step(slope * rows.free, delta, radius)
        return self.norm.project(delta - move, radius, rows.low, rows.high), radius, *best
