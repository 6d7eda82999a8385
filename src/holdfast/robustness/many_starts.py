"""Many short searches side by side, which rows with few free coordinates can afford: they find other basins."""

from __future__ import annotations

from torch import Tensor

from holdfast.robustness.ddn import ddn
from holdfast.robustness.norms import L2
from holdfast.robustness.search import Search, apart

_STRIDE = 0.3  # the first step of a search from far away, as a share of the radius
_WIDEST, _NARROWEST = 0.1, 0.01  # first steps near the best witness, in the first and the last round
_LEGS = 32  # points near the best witness
_STEPS = 6  # gradients from each of them
_DISTANCES = 5  # points are at twice the length of the first step, at a half of that, ... and at 1 / 16


def many_starts(search: Search, legs: int, steps: int, draw: int) -> None:
    """Improve witnesses by DDN from points anywhere in the box, cut to the sphere of the best radius.

    Args:
        search: The search to improve.
        legs: How many points.
        steps: Gradients from each of them.
        draw: The number of the first point's random numbers.
    """
    length = search.reach()

    def run(part: Search, row: Tensor, leg: Tensor) -> None:
        begin = part.norm.project(part.random_move(draw + leg), length[row], part.rows.low, part.rows.high)
        ddn(part, steps, _STRIDE, begin, apart(length[row], leg), L2())

    search.side_by_side(legs, run, known=True)


def refine(search: Search, rounds: int, draw: int) -> None:
    """Improve witnesses by DDN with small steps, from the best one and from points near it.

    A single search goes to and fro across the kinks of a boundary and comes near the nearest point slowly. Here each
    round begins from the best that all searches of the round before have found. Rows without a witness are left out.

    Args:
        search: The search to improve.
        rounds: Number of rounds; distances and steps get smaller from each to the next.
        draw: The number of the first point's random numbers.
    """
    for turn in range(rounds):
        scale = _WIDEST * (_NARROWEST / _WIDEST) ** (turn / max(1, rounds - 1))
        _round(search, scale, draw + _LEGS * turn)


def _round(search: Search, scale: float, draw: int) -> None:
    radius, best = search.best_radius().clone(), search.best_delta().clone()

    def run(part: Search, row: Tensor, leg: Tensor) -> None:
        length, rows = radius[row], part.rows
        noise = part.noise(draw + leg) * rows.free
        share = (leg > 0) * 2 * scale * 0.5 ** (leg % _DISTANCES)  # the first search begins from the witness itself
        far = share * length.nan_to_num(0, posinf=0) / part.norm.length(noise).clamp_min(1e-12)
        begin = part.norm.project(best[row] + far[:, None] * noise, length, rows.low, rows.high)
        ddn(part, _STEPS, scale, begin, length, L2(), scale)

    search.side_by_side(_LEGS, run, known=True)
