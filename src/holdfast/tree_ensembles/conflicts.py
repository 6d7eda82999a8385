"""The nearest point with other scores, by a best-first search over conflicts between leaves.

If each tree took the leaf that serves the demand best, within a radius, the demand would be met at the smallest radius
of all. If these leaves have a point in common at this radius, it is the nearest one. If not, two of them conflict in a
feature, or together they are farther away: the search then looks on both sides of a threshold.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.tree_ensembles.ensemble import Floats, Integers
from holdfast.tree_ensembles.geometry import Demand, Geometry
from holdfast.tree_ensembles.leaves import Bools
from holdfast.tree_ensembles.program import Answer

_CLOSE = 1 + 1e-9  # two radii within this factor are one


class _State(NamedTuple):
    """A part of space: leaves that reach into it, and how far its features are from x at least.

    Attributes:
        which: The leaves, in order.
        gap: The distance of each feature, ``[F]``.
    """

    which: Integers
    gap: Floats


@dataclass(frozen=True, eq=False)
class _Leaves:
    """The leaves inside a ball, those of a tree together, with conditions on features.

    Attributes:
        tree: ``[L]``.
        weight: ``[L]``.
        gap: The distance of x from each leaf in each feature that is used, ``[L, F]``.
        first: The first interval of each of these features, ``[L, F]``.
        last: The last one.
        feature: The feature of each column, ``[F]``.
        demand: The demand.
        geometry: Distances from x.
        span: More than the largest difference of two weights.
    """

    tree: Integers
    weight: Floats
    gap: Floats
    first: Integers
    last: Integers
    feature: Integers
    demand: Demand
    geometry: Geometry
    span: float

    @classmethod
    def of(cls, geometry: Geometry, demand: Demand, radius: float) -> _Leaves | None:
        """Return the leaves inside a ball; None if a tree has none."""
        leaves = geometry.leaves
        inside = (geometry.leaf_distance <= radius).nonzero()[0]
        tree = leaves.tree[inside]
        if len(np.unique(tree)) < leaves.count:
            return None
        place = np.full(len(leaves.tree), -1)
        place[inside] = np.arange(len(inside))
        some = place[leaves.leaf] >= 0
        feature, column = np.unique(leaves.feature[some], return_inverse=True)
        first = np.zeros((len(inside), len(feature)), np.int64)
        last = np.tile(np.diff(leaves.start)[feature], (len(inside), 1))
        at = place[leaves.leaf[some]], column
        first[at], last[at] = leaves.first[some], leaves.last[some]
        gap = np.zeros(first.shape)
        gap[at] = geometry.gap[some]
        weight = demand.weight[inside]
        span = 2 * float(np.abs(weight).max()) + 1
        return cls(tree, weight, gap, first, last, feature, demand, geometry, span)

    def length(self, gap: Floats) -> Floats:
        """Return the norm of gaps ``[..., F]``."""
        p = self.geometry.point.p
        if math.isinf(p):
            return np.asarray(gap.max(-1, initial=0.0))
        return np.asarray((gap * gap).sum(-1) ** 0.5 if p == 2 else gap.sum(-1))

    def nearest(self, state: _State) -> tuple[float, Integers]:
        """Return the smallest radius at which each tree's best leaf meets the demand, and these leaves.

        Args:
            state: The part of space.

        Returns:
            The radius, ``inf`` if there is none; and the best leaf of each tree.
        """
        distance = self.length(np.maximum(self.gap[state.which], state.gap))
        order = np.lexsort((distance, self.tree[state.which]))
        which, distance = state.which[order], distance[order]
        tree, weight = self.tree[which], self.weight[which]
        new = np.append(True, tree[1:] != tree[:-1])
        least = np.minimum.accumulate(weight - self.span * tree) + self.span * tree
        drop = least.copy()
        drop[1:] -= np.where(new[1:], 0, least[:-1])
        near = np.argsort(distance, kind="stable")
        total = self.demand.base + np.cumsum(drop[near])
        enough = (np.cumsum(new[near]) == new.sum()) & (total <= 1e-9 * self.span)
        if not enough.any():
            return math.inf, which[:0]
        radius = float(distance[near[enough.argmax()]])
        best = np.where(distance <= radius, weight, math.inf)
        smallest = np.minimum.reduceat(best, new.nonzero()[0])
        hits = (best == smallest[np.cumsum(new) - 1]).nonzero()[0]
        return radius, which[hits[np.append(True, tree[hits][1:] != tree[hits][:-1])]]

    def split(self, state: _State, column: int, threshold: int) -> list[_State]:
        """Return the parts of a state on both sides of a threshold."""
        place = self.geometry.leaves.start[self.feature[column]] + threshold
        farther = state.gap.copy()
        farther[column] = max(farther[column], self.geometry.distance[place])
        up = bool(self.geometry.up[place])
        below: Bools = self.first[state.which, column] <= threshold
        above: Bools = self.last[state.which, column] > threshold
        return [
            _State(state.which[below], state.gap if up else farther),
            _State(state.which[above], farther if up else state.gap),
        ]

    def move(self, first: Integers, last: Integers) -> Floats:
        """Return the smallest move into intervals ``[F]``."""
        here, start = self.geometry.interval[self.feature], self.geometry.leaves.start[self.feature]
        crossed = np.concatenate([(start + first - 1)[first > here], (start + last)[last < here]])
        return self.geometry.moved(crossed, {})


def solve_conflicts(geometry: Geometry, demand: Demand, radius: float, steps: int, tolerance: float = 0.0) -> Answer:
    """Find the nearest point inside a ball that meets a demand.

    Args:
        geometry: Distances from the row; all values must be allowed.
        demand: The demand.
        radius: The radius of the ball.
        steps: The largest number of steps.
        tolerance: By which share the move may be longer than the lower bound.
    """
    leaves = _Leaves.of(geometry, demand, radius)
    if leaves is None:
        return Answer(None, radius, True)
    count, best, move = itertools.count(), radius * _CLOSE, None
    waiting: list[tuple[float, int, _State, Integers]] = []

    def add(state: _State) -> None:
        if len(np.unique(leaves.tree[state.which])) < geometry.leaves.count:
            return
        bound, chosen = leaves.nearest(state)
        if bound <= best:
            heapq.heappush(waiting, (bound, -next(count), state, chosen))

    add(_State(np.arange(len(leaves.tree)), np.zeros(len(leaves.feature))))
    for _ in range(steps):
        if not waiting or (move is not None and waiting[0][0] * _CLOSE >= best):
            return Answer(move, min(best, radius), True)
        if move is not None and waiting[0][0] * (1 + tolerance) >= best:
            return Answer(move, waiting[0][0], True)
        bound, _, state, chosen = heapq.heappop(waiting)
        first, last = leaves.first[chosen], leaves.last[chosen]
        conflict = (first.max(0) > last.min(0)).nonzero()[0]
        if len(conflict):
            column, threshold = _between(first, last, conflict)
        else:
            gap = np.maximum(leaves.gap[chosen].max(0), state.gap)
            length = float(leaves.length(gap))
            if length < best:
                best, move = length, leaves.move(first.max(0), last.min(0))
            if length <= bound * _CLOSE:
                continue
            column = int((gap - state.gap).argmax())
            up = first[:, column].max() > geometry.interval[leaves.feature[column]]
            threshold = int(first[:, column].max() - 1 if up else last[:, column].min())
        for part in leaves.split(state, column, threshold):
            add(part)
    return Answer(move, min(waiting[0][0], best) if waiting else best, not waiting)


def _between(first: Integers, last: Integers, conflict: Integers) -> tuple[int, int]:
    """Return the feature and the threshold that divide the leaves best: those with most leaves on the smaller side."""
    best = (-1, 0, 0)
    for column in conflict.tolist():
        lowest, highest = int(last[:, column].min()), int(first[:, column].max()) - 1
        for threshold in {lowest, highest}:
            below, above = int((last[:, column] <= threshold).sum()), int((first[:, column] > threshold).sum())
            best = max(best, (min(below, above), column, threshold))
    return best[1], best[2]
