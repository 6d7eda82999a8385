"""Robustness-S of a nearest-neighbour classifier, by programs over the regions of training points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from holdfast.cases import ANY
from holdfast.errors import HoldfastError
from holdfast.models.model import Access, Model
from holdfast.models.neighbours import NeighboursModel
from holdfast.robustness.contests import Contest, Outcome, Space
from holdfast.robustness.kinds import Exact, Solution
from holdfast.robustness.rows import Rows
from holdfast.robustness.votes import Election
from holdfast.robustness.witnesses import measure

_MARGINS = (1.0, 30.0, 1e4, 1e6)  # how far beyond the boundary a witness lies, as multiples of the smallest margin
_SETTLED = 1e-6  # relative difference of a witness' length and the proven bound


@dataclass(frozen=True)
class ExactNeighbours(Exact):
    """The exact radius of a nearest-neighbour classifier that ``hf.neighbours`` or ``hf.from_sklearn`` made.

    With one neighbour, the decision changes where a training point of another class (a rival) is nearer than all
    points of the own class. This is a polyhedron for each rival. Its nearest point inside mask and box is one small
    program: of least squares in L2, linear in L1 and Linf. Rivals are tried in the order of a lower bound, until the
    bound exceeds the best change. A row is proven if the witness is at most 1e-6 longer, relatively, than the bound
    that the multipliers of the programs prove. A row is proven unreachable if every region is out of reach. Without a
    box, moves of more than 100,000 times the spread of the data count as out of reach. A tie is no change, so regions
    that are thinner than rounding count as empty. An input that lies on a boundary, up to rounding, is not settled.

    With more neighbours, radii are brackets: a witness from groups of rivals, and a proven lower bound in
    ``Radii.lower``.

    Args:
        p: The norm: 1, 2 or infinity.

    Raises:
        HoldfastError: When called: the model is no nearest-neighbour classifier.
    """

    name: ClassVar[str] = "exact-neighbours"
    requires: ClassVar[Access] = Access.SCORES
    p: float = 2

    @classmethod
    def serves(cls, model: Model) -> bool:
        """Whether it finds witnesses: most of those among whole numbers and categories are lost by rounding to rows."""
        whole = model.domain is None or model.domain.is_everything
        return isinstance(model, NeighboursModel) and whole

    def solve(self, rows: Rows) -> Solution:
        model = rows.model
        if not isinstance(model, NeighboursModel):
            raise HoldfastError(
                f"ExactNeighbours needs a model made by hf.neighbours, got a {type(model).__name__}: use another "
                "method, such as MinNorm."
            )
        zero = torch.zeros_like(rows.x)
        squared = model.distances(rows.points(zero))
        changed = rows.changed(model.scores(squared))
        space = Space.of(model, self.norm)
        delta, length = zero, torch.full_like(zero[:, 0], math.inf)
        lower = torch.zeros_like(length)
        for margin in _MARGINS:
            # Rounding may hide a change that is too close to the boundary, or keep a program from its optimum.
            open_ = ~changed & ~_settled(length, lower)
            if not bool(open_.any()) or (model.k > 1 and margin > 1 and bool(torch.isfinite(length[open_]).all())):
                break
            tried = zero.clone()
            for row in open_.nonzero()[:, 0].tolist():
                outcome = self._outcome(space, rows, squared[row].numpy(), row, margin)
                lower[row] = max(float(lower[row]), outcome.lower)
                tried[row] = torch.from_numpy(outcome.move)
            found = measure(rows, tried, self.norm)[0]
            better = open_ & (found < length)
            delta, length = torch.where(better[:, None], tried, delta), torch.where(better, found, length)
        lower = torch.where(torch.isinf(lower) & torch.isfinite(length), length, lower)
        return Solution(delta, _settled(length, lower), lower)

    def _outcome(self, space: Space, rows: Rows, squared: np.ndarray, row: int, margin: float) -> Outcome:
        model = rows.model
        assert isinstance(model, NeighboursModel)
        labels = model.labels.numpy()
        label, target = int(rows.label[row]), int(rows.target[row])
        point = rows.x[row] if model.step is None else model.step(rows.x[row]) @ model.step.weight
        contest = Contest(space, 2 * point.numpy(), squared, rows.low[row].numpy(), rows.high[row].numpy(), margin)
        if contest.settled:
            return Outcome(np.zeros(len(contest.low)), math.inf)
        if model.k > 1:
            return Election(contest, labels, model.k, label, None if target == ANY else target).bracket()
        if target == ANY:
            return contest.nearest(np.flatnonzero(labels != label), np.flatnonzero(labels == label))
        return contest.nearest(np.flatnonzero(labels == target), np.flatnonzero(labels != target))


def _settled(length: Tensor, lower: Tensor) -> Tensor:
    """Return where a witness is as short as the bound allows, or where there is none: bool ``[R]``."""
    return torch.isinf(lower) | (torch.isfinite(length) & (length <= lower * (1 + _SETTLED)))
