"""The last step of a search: bisection towards x, until a witness is just behind the boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast.robustness.norms import Norm
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Best, Search

_NEAREST = 0.996  # the boundary is looked for between this share of the best move and the move itself
HALVINGS = 7
"""A bisection that finds a boundary within 0.4 % of the witness to 1 / 30,000 of the radius."""


def tighten(search: Search, halvings: int = HALVINGS) -> None:
    """Move the best witnesses towards x until they are just behind the boundary.

    Args:
        search: The search whose witnesses are moved.
        halvings: Forward passes for each row.
    """
    radius = search.best_radius()
    search, _ = search.batch(torch.isfinite(radius) & (radius > 0))
    if not len(search.rows):
        return
    rows, best = search.rows, search.best()
    delta = best.delta
    inside, outside = (torch.full_like(best.radius, share) for share in (_NEAREST, 1.0))
    for _ in range(halvings):
        step = _Halving(search.norm, rows.shape)
        inside, outside, *known = rows.model.run(step, *rows.tensors, inside, outside, delta, *best)
        best = Best(*known)
    search.update(best)


@dataclass(frozen=True)
class _Halving:
    """One halving of the stretch of each move ``delta`` in which its decision changes."""

    norm: Norm
    shape: tuple[int, ...]

    def __call__(self, model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        rows, (inside, outside, delta, *known) = Rows(model, self.shape, *tensors[:5]), tensors[5:]
        middle = (inside + outside) / 2
        moved = delta * middle[:, None]
        logits = model(rows.points(moved))
        changed = rows.changed(logits)
        best = Best(*known).improved(self.norm.length(moved), moved, logits, changed)
        return torch.where(changed, inside, middle), torch.where(changed, middle, outside), *best
