"""The nearest point with other scores, as a mixed-integer program inside a ball (Kantchelian et al. 2016).

A binary variable for each threshold says whether the point lies beyond it, seen from x. A variable for each leaf says
whether the point reaches it. Leaves follow from the thresholds, so only the latter are whole numbers. The squared
distance of a feature grows at each threshold that is crossed, so it is linear in these variables. For each group of
features that are one category, a variable says whether the category changes, and another whether it changes to one that
no threshold of the program tells from the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from holdfast.tree_ensembles.ensemble import Floats, Integers
from holdfast.tree_ensembles.geometry import Demand, Geometry
from holdfast.tree_ensembles.leaves import Bools

_GAP = 1e-7  # relative difference of the two bounds of a program that is solved
_OBJECTIVE = 10.0  # the objective at the radius of the ball
_EDGE = 1e-6  # how far a program reaches beyond its ball, so that rounding excludes nothing


class Answer(NamedTuple):
    """What a program found.

    Attributes:
        move: The smallest move, ``[n]``; None: no point was found.
        lower: No point is nearer than this.
        settled: Whether the move is the smallest one, or there is none inside the ball.
    """

    move: Floats | None
    lower: float
    settled: bool


class _Rows(NamedTuple):
    """Some rows of the matrix of a program, and their limits."""

    value: Floats
    row: Integers
    column: Integers
    low: Floats
    high: Floats


def solve(
    geometry: Geometry,
    demands: list[Demand],
    radius: float,
    nodes: int,
    ties: Sequence[Integers] = (),
    tolerance: float = 0.0,
) -> Answer:
    """Find the nearest point inside a ball that meets all demands.

    Args:
        geometry: Distances from the row.
        demands: The demands.
        radius: The radius of the ball.
        nodes: The largest number of branches.
        ties: Leaves of all trees that must not be reached together.
        tolerance: By which share the move may be longer than the lower bound.
    """
    return _Program(geometry, demands, radius, ties).solve(nodes, tolerance)


class _Program:
    """One mixed-integer program.

    Its variables are crossed thresholds, leaves, changed categories, changes to other categories, and for Linf the
    radius.
    """

    def __init__(self, geometry: Geometry, demands: list[Demand], radius: float, ties: Sequence[Integers] = ()):
        self.geometry, self.radius = geometry, radius
        self.leaves, self.p = geometry.leaves, geometry.point.p
        kept = geometry.leaf_distance <= radius
        self.kept, self._place_of_leaf = kept.nonzero()[0], np.cumsum(kept) - 1
        used = self._conditions(kept[self.leaves.leaf], geometry.distance <= radius)
        self.thresholds = np.unique(used[2])
        self.groups = self._groups()
        self._switch = len(self.thresholds) + len(self.kept)
        self._columns = self._switch + 2 * len(self.groups) + math.isinf(self.p)
        self._rows: list[_Rows] = []
        self.cost, self.top = np.zeros(self._columns), np.ones(self._columns)
        self._order()
        self._leaves(used)
        self._categories()
        self._demands(demands)
        self._ties(ties)
        self._distances()

    def _groups(self) -> list[int]:
        """Return the groups in which a threshold may be crossed."""
        owners = np.unique(self.leaves.owner[self.thresholds])
        return [number for number, group in enumerate(self.geometry.point.groups) if np.isin(group, owners).any()]

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

    def _add(self, row: Integers, column: Integers, value: Floats, low: Floats, high: Floats) -> None:
        self._rows.append(_Rows(value, row, column, low, high))

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
        near, distance = self._nearer[far], geometry.distance[self.thresholds]
        rows, ones = np.arange(len(far)), np.ones(len(far))
        together = distance[far] == distance[near]  # no allowed value lies between the two thresholds
        self._add(
            np.tile(rows, 2),
            np.concatenate([far, near]),
            np.concatenate([ones, -ones]),
            np.where(together, 0.0, -math.inf),
            np.zeros(len(far)),
        )
        both = (same & up[1:] & ~up[:-1]).nonzero()[0]
        rows, ones = np.arange(len(both)), np.ones(len(both))
        self._add(np.tile(rows, 2), np.concatenate([both, both + 1]), np.tile(ones, 2), 0 * ones, ones)

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

    def _ties(self, ties: Sequence[Integers]) -> None:
        """Not all leaves of a tie are reached."""
        for leaves in ties:
            if np.isin(leaves, self.kept).all():
                columns = len(self.thresholds) + self._place_of_leaf[leaves]
                most = np.array([float(len(leaves) - 1)])
                self._add(0 * columns, columns, np.ones(len(columns)), np.array([-math.inf]), most)

    def _categories(self) -> None:
        """A category that changes leaves one feature and chooses one other."""
        point, owner = self.geometry.point, self.leaves.owner[self.thresholds]
        step = point.hot if math.isinf(self.p) else point.hot**self.p
        self._others: dict[int, int] = {}
        for place, number in enumerate(self.groups):
            switch, other = self._switch + place, self._switch + len(self.groups) + place
            group = point.groups[number]
            current = int(group[point.x[group].argmax()])
            columns = {int(owner[column]): column for column in range(len(owner)) if owner[column] in group}
            chosen = [column for feature, column in columns.items() if feature != current]
            unused = [int(feature) for feature in group if feature != current and int(feature) not in columns]
            self._others[number] = unused[0] if unused else current
            self.top[other] = bool(unused)
            self.cost[other] = step
            sides = np.array([*chosen, other, switch])
            ones = np.ones(len(sides))
            ones[-1] = -1
            self._add(np.zeros(len(sides), np.int64), sides, ones, np.zeros(1), np.zeros(1))
            if current in columns:
                pair = np.array([columns[current], switch])
                self._add(np.zeros(2, np.int64), pair, np.array([1.0, -1.0]), np.zeros(1), np.zeros(1))
            else:
                self.cost[switch] = step

    def _distances(self) -> None:
        """Set the cost of each variable; the distance must not exceed the radius of the ball."""
        distance = self.geometry.distance[self.thresholds]
        distance = distance if math.isinf(self.p) else distance**self.p
        step = distance - np.where(self._nearer >= 0, distance[self._nearer], 0)
        self.cost[: len(step)] = step
        if not math.isinf(self.p):
            every = np.arange(self._columns)
            most = np.array([self.radius**self.p * (1 + _EDGE)])
            self._add(0 * every, every, self.cost.copy(), np.array([-math.inf]), most)
            return
        owner = self.leaves.owner[self.thresholds]
        moved = np.flatnonzero(self.cost)  # thresholds and changes of categories
        feature = -1 - moved  # a change of a category is a unit of its own
        feature[moved < len(owner)] = owner[moved[moved < len(owner)]]
        features, row = np.unique(feature, return_inverse=True)
        self._add(
            np.concatenate([row, np.arange(len(features))]),
            np.concatenate([moved, np.full(len(features), self._columns - 1)]),
            np.concatenate([self.cost[moved], -np.ones(len(features))]),
            np.full(len(features), -math.inf),
            np.zeros(len(features)),
        )
        self.cost = np.zeros(self._columns)
        self.cost[-1], self.top[-1] = 1, self.radius * (1 + _EDGE)

    def solve(self, nodes: int, tolerance: float) -> Answer:
        """Solve the program."""
        if len(np.unique(self.leaves.tree[self.kept])) < self.leaves.count:
            return Answer(None, self.radius, True)
        shifts = np.cumsum([0] + [len(part.low) for part in self._rows])
        value, column, low, high = (np.concatenate([part[at] for part in self._rows]) for at in (0, 2, 3, 4))
        row = np.concatenate([part.row + shift for part, shift in zip(self._rows, shifts, strict=False)])
        matrix = sparse.csr_array((value, (row, column)), shape=(len(low), self._columns))
        whole = np.zeros(self._columns)
        whole[: len(self.thresholds)] = 1
        whole[self._switch : self._switch + 2 * len(self.groups)] = 1
        # The solver also accepts an absolute difference of 1e-6 between its bounds.
        gap = max(_GAP, 1 - (1 + tolerance) ** -(1 if math.isinf(self.p) else self.p))
        self._unit = _OBJECTIVE / (self.radius if math.isinf(self.p) else self.radius**self.p)
        result = milp(
            self.cost * self._unit,
            integrality=whole,
            bounds=Bounds(0, self.top),
            constraints=LinearConstraint(matrix, low, high),
            # With presolve, the HiGHS of SciPy 1.17 gave a wrong optimum for a small program of this kind.
            options={"node_limit": nodes, "mip_rel_gap": gap, "presolve": False},
        )
        return self._answer(result)

    def _answer(self, result: OptimizeResult) -> Answer:
        if result.status == 2:  # no point inside the ball
            return Answer(None, self.radius, True)
        bound = getattr(result, "mip_dual_bound", None)
        bound = 0.0 if bound is None or not math.isfinite(bound) else max(0.0, bound / self._unit)
        lower = bound if math.isinf(self.p) else bound ** (1 / self.p)
        if result.x is None:
            return Answer(None, min(lower, self.radius), False)
        crossed = self.thresholds[result.x[: len(self.thresholds)] > 0.5]
        chosen = {
            number: self._choice(number, crossed)
            for place, number in enumerate(self.groups)
            if result.x[self._switch + place] > 0.5
        }
        return Answer(self.geometry.moved(crossed, chosen), lower, result.status == 0)

    def _choice(self, number: int, crossed: Integers) -> int:
        """Return the feature that becomes hot in a group whose category changes."""
        group = self.geometry.point.groups[number]
        upward = self.leaves.owner[crossed[self.geometry.up[crossed]]]
        found = group[np.isin(group, upward)]
        return int(found[0]) if len(found) else self._others[number]
