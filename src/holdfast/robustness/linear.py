"""Robustness-S of a linear classifier in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
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

_NUMBERS = 2**20  # coordinates of moves, or scores, at once


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
        length, delta = self._nearest(rows, logits, weight)
        self._require_affine(rows, logits, weight, delta)
        changed = torch.isfinite(measure(rows, delta, self.norm)[0])
        missed = ~changed & torch.isfinite(length)
        if rows.model.domain is not None:  # the nearest point is no input: its length is a lower bound
            return Solution(delta.masked_fill(torch.isinf(length)[:, None], 0), changed | torch.isinf(length), length)
        if bool((missed & (rows.target != ANY)).any()):
            raise HoldfastError(
                "the target is nearest where several boundaries meet, which has no closed form: use MinNorm."
            )
        if bool(missed.any()):
            raise HoldfastError("rounding hides the boundary of this linear model: use it in double precision.")
        return Solution(torch.where(changed[:, None], delta, 0), torch.ones_like(changed))

    def _nearest(self, rows: Rows, logits: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return lengths ``[R]`` and moves ``[R, n]`` across the boundary that decides.

        Any one boundary must be crossed without a target, all of them with one.
        """
        untargeted = rows.target == ANY
        length = torch.where(untargeted, math.inf, -1.0).to(logits)
        move = torch.zeros_like(rows.x)
        every = torch.arange(logits.shape[1], device=logits.device)
        for others in every.split(max(1, _NUMBERS // max(1, rows.x.numel()))):
            lengths, moves = self._moves_to_classes(rows, logits, weight, others)
            choice = torch.where(untargeted, lengths.argmin(0), lengths.argmax(0))
            chosen = lengths.gather(0, choice[None])[0]
            better = torch.where(untargeted, chosen < length, chosen > length)
            move = torch.where(better[:, None], moves[choice, torch.arange(len(rows))], move)
            length = torch.where(better, chosen, length)
        return length, move

    def _moves_to_classes(self, rows: Rows, logits: Tensor, weight: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """Return the smallest move across the boundary with each class: lengths ``[C, R]`` and moves ``[C, R, n]``."""
        row = torch.arange(len(rows), device=logits.device).repeat(len(others))
        other = others.repeat_interleave(len(rows))
        each = rows.at(row)
        pivot = torch.where(each.target == ANY, each.label, each.target)
        sign = torch.where(each.target == ANY, 1.0, -1.0).to(logits)
        slope = (weight[pivot] - weight[other]) * sign[:, None]
        drop = (logits[row, pivot] - logits[row, other]) * sign
        move = self.norm.nearest(
            slope, self._beyond(drop, slope, each, logits.abs().amax(1)[row]), each.low, each.high, exact=True
        )
        reached = (slope * move).sum(1) < -drop
        length = torch.where(reached, self.norm.length(move), math.inf)
        length = torch.where(drop < 0, 0, length)
        length = torch.where(pivot == other, torch.where(each.target == ANY, math.inf, -1.0).to(length), length)
        move = torch.where((drop < 0)[:, None], 0, move)
        return length.view(len(others), -1), move.view(len(others), len(rows), -1)

    @staticmethod
    def _beyond(drop: Tensor, slope: Tensor, rows: Rows, largest: Tensor) -> Tensor:
        """Return a drop that passes the boundary by a few roundings of the numbers involved."""
        scale = drop.abs() + (slope * rows.x).abs().sum(1) + largest
        return drop.clamp_min(0) + 8 * torch.finfo(drop.dtype).eps * scale

    def _affine(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return logits ``[R, classes]`` at x and weights ``[classes, n]``; refuse a model that is not affine."""
        points = rows.points(torch.zeros_like(rows.x))
        logits = rows.model(points)
        model = differentiable(rows.model)
        slopes = []
        # The weights are the same everywhere: one row for each class, at the first point.
        classes = torch.arange(logits.shape[1], device=logits.device)
        for some in classes.split(max(1, min(model.chunk(points), _NUMBERS // len(classes)))):
            repeated = points[:1].expand(len(some), *points.shape[1:])
            slopes.append(model.gradient(repeated, partial(_own_scores, some))[1])
        weight = torch.cat(slopes).flatten(1)
        scale = rows.x.abs().amax().clamp_min(1)
        for draw, length in enumerate((-10, -1, -0.1, 0.1, 1, 10)):
            away = normal(rows.x.shape[1], 0, draw).to(rows.x) * scale * length
            self._require_affine(rows, logits, weight, away.expand_as(rows.x))
        return logits, weight

    @staticmethod
    def _require_affine(rows: Rows, logits: Tensor, weight: Tensor, delta: Tensor) -> None:
        expected = logits + delta @ weight.T
        actual = rows.model((rows.x + delta).reshape(-1, *rows.shape))
        if not torch.allclose(actual, expected, rtol=1e-3, atol=1e-3 * max(1.0, float(expected.abs().amax()))):
            raise HoldfastError("ExactLinear needs a model that is affine, and this model is not affine: use MinNorm.")


def _own_scores(classes: Tensor, scores: Tensor) -> Tensor:
    """Return the score of one class for each row: ``[R]`` of ``[R, classes]``."""
    return scores.gather(1, classes[:, None])[:, 0]
