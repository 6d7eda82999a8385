"""Robustness-S of a linear classifier in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY
from holdfast.draws import normal
from holdfast.errors import HoldfastError
from holdfast.models.model import Access, differentiable
from holdfast.robustness.kinds import Exact, Solution
from holdfast.robustness.rows import Rows
from holdfast.robustness.witnesses import measure


@dataclass(frozen=True)
class ExactLinear(Exact):
    """The exact radius of a model that is affine in its input.

    Without an active box it is ``min_j m_j / ||w_j restricted to S||_q``. The box is honoured exactly too. A row is
    proven unreachable if its subset or its box is too small for any change.

    Args:
        p: The norm: 1, 2 or infinity.

    Raises:
        HoldfastError: When called: the model is not affine; or the nearest point with a target's class lies where
            several boundaries meet, which has no closed form; or the model's precision is too low.
    """

    name: ClassVar[str] = "exact-linear"
    requires: ClassVar[Access] = Access.GRADIENTS
    p: float = 2

    def solve(self, rows: Rows) -> Solution:
        logits, weight = self._affine(rows)
        length, move = self._moves_to_classes(rows, logits, weight)
        # Any one boundary must be crossed without a target, all of them with one.
        choice = torch.where(rows.target == ANY, length.argmin(0), length.argmax(0))
        delta = move[choice, torch.arange(len(rows))]
        self._require_affine(rows, logits, weight, delta)
        changed = torch.isfinite(measure(rows, delta, self.norm)[0])
        missed = ~changed & torch.isfinite(length.gather(0, choice[None])[0])
        if bool((missed & (rows.target != ANY)).any()):
            raise HoldfastError(
                "the target is nearest where several boundaries meet, which has no closed form: use MinNorm."
            )
        if bool(missed.any()):
            raise HoldfastError("rounding hides the boundary of this linear model: use it in double precision.")
        return Solution(torch.where(changed[:, None], delta, 0), torch.ones_like(changed))

    def _moves_to_classes(self, rows: Rows, logits: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the smallest move across the boundary with each class: lengths ``[C, R]`` and moves ``[C, R, n]``."""
        pivot = torch.where(rows.target == ANY, rows.label, rows.target)
        moves, lengths = [], []
        for other in range(logits.shape[1]):
            own, against = logits.gather(1, pivot[:, None])[:, 0], logits[:, other]
            sign = torch.where(rows.target == ANY, 1.0, -1.0).to(logits)
            slope = (weight[torch.arange(len(rows)), pivot] - weight[:, other]) * sign[:, None]
            drop = (own - against) * sign
            goal = self._beyond(drop, slope, rows, logits)
            move = self.norm.nearest(slope, goal, rows.low, rows.high, exact=True)
            reached = (slope * move).sum(1) < -drop
            length = torch.where(reached, self.norm.length(move), math.inf)
            length = torch.where(drop < 0, 0, length)
            same = pivot == other
            moves.append(torch.where((drop < 0)[:, None], 0, move))
            lengths.append(torch.where(same, torch.where(rows.target == ANY, math.inf, -1.0).to(length), length))
        return torch.stack(lengths), torch.stack(moves)

    @staticmethod
    def _beyond(drop: Tensor, slope: Tensor, rows: Rows, logits: Tensor) -> Tensor:
        """Return a drop that passes the boundary by a few roundings of the numbers involved."""
        scale = drop.abs() + (slope * rows.x).abs().sum(1) + logits.abs().amax(1)
        return drop.clamp_min(0) + 8 * torch.finfo(drop.dtype).eps * scale

    def _affine(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return logits ``[R, classes]`` at x and weights ``[R, classes, n]``; refuse a model that is not affine."""
        points = rows.points(torch.zeros_like(rows.x))
        logits = rows.model(points)
        model = differentiable(rows.model)
        slopes = [model.gradient(points, itemgetter((..., j)))[1] for j in range(logits.shape[1])]
        weight = torch.stack([slope.flatten(1) for slope in slopes], 1)
        scale = rows.x.abs().amax().clamp_min(1)
        for draw, length in enumerate((-10, -1, -0.1, 0.1, 1, 10)):
            away = normal(rows.x.shape[1], 0, draw).to(rows.x) * scale * length
            self._require_affine(rows, logits, weight, away.expand_as(rows.x))
        return logits, weight

    @staticmethod
    def _require_affine(rows: Rows, logits: Tensor, weight: Tensor, delta: Tensor) -> None:
        expected = logits + (weight @ delta[..., None])[..., 0]
        actual = rows.model((rows.x + delta).reshape(-1, *rows.shape))
        if not torch.allclose(actual, expected, rtol=1e-3, atol=1e-3 * max(1.0, float(expected.abs().amax()))):
            raise HoldfastError("ExactLinear needs a model that is affine, and this model is not affine: use MinNorm.")
