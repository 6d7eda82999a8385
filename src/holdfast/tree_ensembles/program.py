"""The nearest point with other scores, as a mixed-integer program inside a ball (Kantchelian et al. 2016).

A binary variable for each threshold says whether the point lies beyond it, seen from x. A variable for each leaf says
whether the point reaches it. Leaves follow from the thresholds, so only the latter are whole numbers. The squared
distance of a feature grows at each threshold that is crossed, so it is linear in these variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from holdfast.tree_ensembles.ensemble import Floats, Integers
from holdfast.tree_ensembles.leaves import Bools, Leaves

_GAP = 1e-7  # relative difference of the two bounds of a program that is solved


@dataclass(frozen=True, eq=False)
class Point:
    """A row x and where its features may move, in the coordinates of radii.

    Attributes:
        x: ``[n]``.
        low: The smallest allowed move of each feature, ``[n]``.
        high: The largest.
        scale: Values that the trees see are coordinates times this, ``[n]``.
        p: The norm.
    """

    x: Floats
    low: Floats
    high: Floats
    scale: Floats
    p: float


class Demand(NamedTuple):
    """The sum of leaf weights and a base must be at most 0.

    Attributes:
        weight: Of each leaf, ``[L]``.
        base: What is added to the sum.
    """

    weight: Floats
    base: float


class Answer(NamedTuple):
    """What a program found.

    Attributes:
        intervals: The interval of each feature at the nearest point, ``[n]``; None: no point was found.
        lower: No point is nearer than this.
        settled: Whether the point is the nearest one, or there is none inside the ball.
    """

    intervals: Integers | None
    lower: float
    settled: bool


class Geometry:
    """Distances of a point from thresholds, intervals and leaves.

    Args:
        leaves: The leaves.
        point: The point.
    """

    def __init__(self, leaves: Leaves, point: Point):
        self.leaves, self.point = leaves, point
        owner = leaves.owner
        self.interval = leaves.intervals(point.x * point.scale)
        number = np.arange(len(owner)) - leaves.start[owner]
        self.number = number
        self.up = number >= self.interval[owner]
        """Whether each threshold is crossed by a larger value."""
        edge = np.where(self.up, leaves.above, leaves.below) / point.scale[owner]
        move = edge - point.x[owner]
        allowed = np.where(self.up, move <= point.high[owner], move >= point.low[owner])
        allowed &= (point.low < point.high)[owner]
        self.move = move
        """The smallest move of the feature across each threshold."""
        self.distance = np.where(allowed, np.abs(move), math.inf)
        self.leaf_distance = self._leaf_distance()

    def _leaf_distance(self) -> Floats:
        leaves, here = self.leaves, self.interval[self.leaves.feature]
        start = leaves.start[leaves.feature]
        upward, downward = leaves.first > here, leaves.last < here
        crossed = start + np.where(upward, leaves.first - 1, np.where(downward, leaves.last, 0))
        gap = np.where(upward | downward, self.distance[np.minimum(crossed, len(self.distance) - 1)], 0.0)
        if math.isinf(self.point.p):
            return leaves.most(gap)
        total = leaves.total(gap**self.point.p)
        return np.asarray(total ** (1 / self.point.p))

    def lower_bound(self, demand: Demand) -> float:
        """Return a radius within which the demand cannot be met; ``inf`` if it never can."""
        order = np.lexsort((self.leaf_distance, self.leaves.tree))
        tree, weight, distance = self.leaves.tree[order], demand.weight[order], self.leaf_distance[order]
        span = 2 * (np.abs(weight).max() + 1)
        least = np.minimum.accumulate(weight - span * tree) + span * tree  # of the leaves of a tree up to each one
        first = np.append(True, tree[1:] != tree[:-1])
        drop = np.where(first, least, np.diff(least, prepend=0.0))
        by_distance = np.argsort(distance, kind="stable")
        total = demand.base + np.cumsum(drop[by_distance])
        reached = distance[by_distance]
        trees = np.cumsum(first[by_distance])
        enough = (trees == self.leaves.count) & (total <= 1e-9 * span) & np.isfinite(reached)
        return float(reached[enough.argmax()]) if enough.any() else math.inf

    def solve(self, demands: list[Demand], radius: float, nodes: int) -> Answer:
        """Find the nearest point inside a ball that meets all demands.

        Args:
            demands: The demands.
            radius: The radius of the ball.
            nodes: The largest number of branches.
        """
        crossable = self.distance <= radius
        kept = self.leaf_distance <= radius
        return _Program(self, crossable, kept, demands, radius).solve(nodes)

    def moved(self, intervals: Integers) -> Floats:
        """Return the smallest move into these intervals, ``[n]``, so that the trees see them in spite of rounding."""
        move = np.zeros(len(intervals))
        for feature in (intervals != self.interval).nonzero()[0]:
            up = intervals[feature] > self.interval[feature]
            threshold = self.leaves.start[feature] + intervals[feature] - (1 if up else 0)
            move[feature] = self._beyond(int(feature), int(threshold), bool(up))
        return move

    def _beyond(self, feature: int, threshold: int, up: bool) -> float:
        point, move = self.point, float(self.move[threshold])
        for _ in range(64):
            value = (point.x[feature] + move) * point.scale[feature]
            seen = float(np.float32(value)) if self.leaves.single else value
            if (seen > self.leaves.thresholds[threshold]) == up:
                break
            move = float(np.nextafter(move, math.inf if up else -math.inf))
        return move


class _Program:
    """One mixed-integer program: variables are crossed thresholds, then leaves, then the radius for Linf."""

    def __init__(self, geometry: Geometry, crossable: Bools, kept: Bools, demands: list[Demand], radius: float):
        self.geometry, self.radius = geometry, radius
        self.leaves, self.p = geometry.leaves, geometry.point.p
        self.kept = kept.nonzero()[0]
        self._place_of_leaf = np.cumsum(kept) - 1
        conditions = kept[self.leaves.leaf]
        used = self._conditions(conditions, crossable)
        self.thresholds = np.unique(used[2]) if len(used[2]) else np.zeros(0, np.int64)
        self._rows: list[tuple[Floats, Integers, Integers, Floats, Floats]] = []
        self._order()
        self._leaves(used)
        self._demands(demands)
        self.cost = self._cost()

    def _conditions(self, which: Bools, crossable: Bools) -> tuple[Integers, Bools, Integers]:
        """Return (leaf, whether it lies beyond, threshold) for every demand of a kept leaf on a crossable threshold."""
        leaves, geometry = self.leaves, self.geometry
        leaf, feature = leaves.leaf[which], leaves.feature[which]
        first, last = leaves.first[which], leaves.last[which]
        start, here = leaves.start[feature], geometry.interval[feature]
        size = leaves.start[feature + 1] - start
        ends = (first - 1, first > 0, first > here), (last, last < size, last < here)
        parts = [(leaf[there], beyond[there], (start + edge)[there]) for edge, there, beyond in ends]
        merged = [np.concatenate(pair) for pair in zip(*parts, strict=True)]
        possible = crossable[merged[2]]
        return merged[0][possible], merged[1][possible], merged[2][possible]

    @property
    def _columns(self) -> int:
        return len(self.thresholds) + len(self.kept) + math.isinf(self.p)

    def _add(self, row: Integers, column: Integers, value: Floats, low: Floats, high: Floats) -> None:
        self._rows.append((value, row, column, low, high))

    def _order(self) -> None:
        """A threshold farther away is crossed only after the nearer one, and not on both sides of x."""
        geometry, owner = self.geometry, self.leaves.owner[self.thresholds]
        up, count = geometry.up[self.thresholds], len(self.thresholds)
        self._nearer = np.full(count, -1)
        if count < 2:
            return
        same = owner[1:] == owner[:-1]
        upward, downward = same & up[1:] & up[:-1], same & ~up[1:] & ~up[:-1]
        place = np.arange(count - 1)
        self._nearer[1:][upward] = place[upward]
        self._nearer[:-1][downward] = place[downward] + 1
        far = (self._nearer >= 0).nonzero()[0]
        rows = np.arange(len(far))
        ones = np.ones(len(far))
        self._add(
            np.tile(rows, 2),
            np.concatenate([far, self._nearer[far]]),
            np.concatenate([ones, -ones]),
            np.full(len(far), -math.inf),
            np.zeros(len(far)),
        )
        both = (same & up[1:] & ~up[:-1]).nonzero()[0]
        rows = np.arange(len(both))
        self._add(
            np.tile(rows, 2),
            np.concatenate([both, both + 1]),
            np.ones(2 * len(both)),
            np.zeros(len(both)),
            np.ones(len(both)),
        )

    def _leaves(self, used: tuple[Integers, Bools, Integers]) -> None:
        """Each tree has one leaf; leaves beyond a threshold need it crossed, leaves before it need it not crossed."""
        leaf, beyond, threshold = used
        offset, tree = len(self.thresholds), self.leaves.tree
        column = np.searchsorted(self.thresholds, threshold)
        every = tree[self.kept]
        trees, place = np.unique(every, return_inverse=True)
        ones = np.ones(len(trees))
        self._add(place, offset + np.arange(len(self.kept)), np.ones(len(self.kept)), ones, ones)
        for side in (True, False):
            some = beyond == side
            key = np.stack([tree[leaf[some]], column[some]], 1)
            pairs, row = np.unique(key, axis=0, return_inverse=True)
            row = row.reshape(-1)
            sign = -1.0 if side else 1.0
            self._add(
                np.concatenate([row, np.arange(len(pairs))]),
                np.concatenate([offset + self._place_of_leaf[leaf[some]], pairs[:, 1]]),
                np.concatenate([np.ones(len(row)), np.full(len(pairs), sign)]),
                np.full(len(pairs), -math.inf),
                np.full(len(pairs), 0.0 if side else 1.0),
            )

    def _demands(self, demands: list[Demand]) -> None:
        for demand in demands:
            weight = demand.weight[self.kept]
            scale = 100 / max(1e-300, float(np.abs(weight).max()))  # the tolerance of the solver is absolute
            self._add(
                np.zeros(len(weight), np.int64),
                len(self.thresholds) + np.arange(len(weight)),
                weight * scale,
                np.array([-math.inf]),
                np.array([-demand.base * scale]),
            )

    def _cost(self) -> Floats:
        """Return the cost of each variable; for Linf also demand that the radius reaches every feature's distance."""
        distance = self.geometry.distance[self.thresholds]
        distance = distance if math.isinf(self.p) else distance**self.p
        step = distance - np.where(self._nearer >= 0, distance[self._nearer], 0)
        cost = np.zeros(self._columns)
        if not math.isinf(self.p):
            cost[: len(step)] = step
            return cost
        cost[-1] = 1
        owner = self.leaves.owner[self.thresholds]
        features, row = np.unique(owner, return_inverse=True)
        self._add(
            np.concatenate([row, np.arange(len(features))]),
            np.concatenate([np.arange(len(step)), np.full(len(features), self._columns - 1)]),
            np.concatenate([step, -np.ones(len(features))]),
            np.full(len(features), -math.inf),
            np.zeros(len(features)),
        )
        return cost

    def solve(self, nodes: int) -> Answer:
        """Solve the program."""
        trees = len(np.unique(self.leaves.tree[self.kept]))
        if trees < self.leaves.count:
            return Answer(None, self.radius, True)
        shifts = np.cumsum([0] + [len(low) for *_, low, _ in self._rows])
        value, column, low, high = (np.concatenate([one[part] for one in self._rows]) for part in (0, 2, 3, 4))
        row = np.concatenate([one[1] + shift for one, shift in zip(self._rows, shifts, strict=False)])
        matrix = sparse.csr_array((value, (row, column)), shape=(len(low), self._columns))
        whole = np.zeros(self._columns)
        whole[: len(self.thresholds)] = 1
        top = np.ones(self._columns)
        if math.isinf(self.p):
            top[-1] = self.radius
        result = milp(
            self.cost,
            integrality=whole,
            bounds=Bounds(0, top),
            constraints=LinearConstraint(matrix, low, high),
            options={"node_limit": nodes, "mip_rel_gap": _GAP},
        )
        return self._answer(result)

    def _answer(self, result: OptimizeResult) -> Answer:
        if result.status == 2:  # no point inside the ball
            return Answer(None, self.radius, True)
        bound = getattr(result, "mip_dual_bound", None)
        bound = 0.0 if bound is None or not math.isfinite(bound) else max(0.0, bound)
        lower = bound if math.isinf(self.p) else bound ** (1 / self.p)
        if result.x is None:
            return Answer(None, min(lower, self.radius), False)
        crossed = self.thresholds[result.x[: len(self.thresholds)] > 0.5]
        geometry, intervals = self.geometry, self.geometry.interval.copy()
        for threshold in crossed:
            feature, number = self.leaves.owner[threshold], geometry.number[threshold]
            ends = max(intervals[feature], number + 1) if geometry.up[threshold] else min(intervals[feature], number)
            intervals[feature] = ends
        return Answer(intervals, lower, result.status == 0)
