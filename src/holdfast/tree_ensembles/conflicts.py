"""The nearest point in Linf with other scores, by a best-first search over conflicts between leaves.

If each tree took the leaf that serves the demand best, within a radius, the demand would be met at the smallest radius
of all. If these leaves have no point in common, two of them conflict in a feature: the search then looks on both sides
of a threshold between them. In Linf, leaves with a common point have one at the largest of their distances.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass

import numpy as np

from holdfast.tree_ensembles.ensemble import Floats, Integers
from holdfast.tree_ensembles.geometry import Demand, Geometry
from holdfast.tree_ensembles.leaves import Bools
from holdfast.tree_ensembles.program import Answer


@dataclass(frozen=True, eq=False)
class _Leaves:
    """The leaves inside a ball, those of a tree together and sorted by distance, with conditions on features.

    Attributes:
        tree: ``[L]``, without gaps.
        weight: ``[L]``.
        distance: ``[L]``.
        rank: The place of each leaf by distance, ``[L]``.
        first: The first interval of each feature that is used, ``[L, F]``.
        last: The last one.
        feature: The feature of each column, ``[F]``.
        base: What is added to the sum of weights.
        span: More than the largest difference of two weights.
    """

    tree: Integers
    weight: Floats
    distance: Floats
    rank: Integers
    first: Integers
    last: Integers
    feature: Integers
    base: float
    span: float

    @classmethod
    def of(cls, geometry: Geometry, demand: Demand, radius: float) -> _Leaves | None:
        """Return the leaves inside a ball; None if a tree has none."""
        leaves = geometry.leaves
        inside = (geometry.leaf_distance <= radius).nonzero()[0]
        tree = leaves.tree[inside]
        if len(np.unique(tree)) < leaves.count:
            return None
        order = np.lexsort((geometry.leaf_distance[inside], tree))
        inside, tree = inside[order], tree[order]
        place = np.full(len(leaves.tree), -1)
        place[inside] = np.arange(len(inside))
        some = place[leaves.leaf] >= 0
        feature, column = np.unique(leaves.feature[some], return_inverse=True)
        size = (leaves.start[1:] - leaves.start[:-1])[feature]
        first = np.zeros((len(inside), len(feature)), np.int64)
        last = np.tile(size, (len(inside), 1))
        first[place[leaves.leaf[some]], column] = leaves.first[some]
        last[place[leaves.leaf[some]], column] = leaves.last[some]
        distance, weight = geometry.leaf_distance[inside], demand.weight[inside]
        rank = np.empty(len(inside), np.int64)
        rank[np.argsort(distance, kind="stable")] = np.arange(len(inside))
        span = 2 * float(np.abs(weight).max()) + 1
        return cls(tree, weight, distance, rank, first, last, feature, demand.base, span)

    def nearest(self, which: Integers, radius: float) -> tuple[float, Integers]:
        """Return the smallest radius at which each tree's best leaf meets the demand, and these leaves.

        Args:
            which: The leaves that are allowed, in order.
            radius: The radius is at least this.

        Returns:
            The radius, ``inf`` if there is none; and the best leaf of each tree.
        """
        tree, weight = self.tree[which], self.weight[which]
        new = np.empty(len(which), bool)
        new[0], new[1:] = True, tree[1:] != tree[:-1]
        least = np.minimum.accumulate(weight - self.span * tree) + self.span * tree
        drop = least.copy()
        drop[1:] -= np.where(new[1:], 0, least[:-1])
        order = np.argsort(self.rank[which])
        total = self.base + np.cumsum(drop[order])
        enough = (np.cumsum(new[order]) == new.sum()) & (total <= 1e-9 * self.span)
        if not enough.any():
            return math.inf, which[:0]
        reached = max(radius, float(self.distance[which[order[enough.argmax()]]]))
        near = self.distance[which] <= reached
        best = np.where(near, weight, math.inf)
        smallest = np.minimum.reduceat(best, new.nonzero()[0])
        hits = (best == smallest[np.cumsum(new) - 1]).nonzero()[0]
        chosen = np.append(True, tree[hits][1:] != tree[hits][:-1])
        return reached, which[hits[chosen]]


def solve_linf(geometry: Geometry, demand: Demand, radius: float, steps: int) -> Answer:
    """Find the nearest point in Linf inside a ball that meets a demand.

    Args:
        geometry: Distances from the row; all values must be allowed.
        demand: The demand.
        radius: The radius of the ball.
        steps: The largest number of steps.
    """
    leaves = _Leaves.of(geometry, demand, radius)
    if leaves is None:
        return Answer(None, radius, True)
    count, trees = itertools.count(), int(leaves.tree[-1]) + 1
    every = np.arange(len(leaves.tree))
    bound, chosen = leaves.nearest(every, 0.0)
    waiting = [(bound, 0, next(count), every, chosen)] if math.isfinite(bound) else []
    for _ in range(steps):
        if not waiting:
            return Answer(None, radius, True)
        bound, depth, _, which, chosen = heapq.heappop(waiting)
        first, last = leaves.first[chosen], leaves.last[chosen]
        conflict = (first.max(0) > last.min(0)).nonzero()[0]
        if not len(conflict):
            return Answer(_move(geometry, leaves, first.max(0), last.min(0)), bound, True)
        column, threshold = _branch(first, last, conflict)
        cost = geometry.distance[geometry.leaves.start[leaves.feature[column]] + threshold]
        upward = geometry.up[geometry.leaves.start[leaves.feature[column]] + threshold]
        sides: tuple[tuple[Bools, bool], ...] = (
            (leaves.first[which, column] <= threshold, not upward),
            (leaves.last[which, column] > threshold, bool(upward)),
        )
        for allowed, crosses in sides:
            part, least = which[allowed], max(bound, float(cost)) if crosses else bound
            if least > radius or len(np.unique(leaves.tree[part])) < trees:
                continue
            reached, best = leaves.nearest(part, least)
            if reached <= radius:
                heapq.heappush(waiting, (reached, depth - 1, next(count), part, best))
    return Answer(None, min(waiting[0][0], radius) if waiting else radius, not waiting)


def _branch(first: Integers, last: Integers, conflict: Integers) -> tuple[int, int]:
    """Return the feature and the threshold that divide the leaves best: those with most leaves on the smaller side."""
    best = (-1, 0, 0)
    for column in conflict.tolist():
        lowest, highest = int(last[:, column].min()), int(first[:, column].max()) - 1
        for threshold in {lowest, highest}:
            below, above = int((last[:, column] <= threshold).sum()), int((first[:, column] > threshold).sum())
            best = max(best, (min(below, above), column, threshold))
    return best[1], best[2]


def _move(geometry: Geometry, leaves: _Leaves, first: Integers, last: Integers) -> Floats:
    """Return the smallest move into the intervals that leaves have in common."""
    here = geometry.interval[leaves.feature]
    start = geometry.leaves.start[leaves.feature]
    crossed = np.concatenate([(start + first - 1)[first > here], (start + last)[last < here]])
    return geometry.moved(crossed, {})
