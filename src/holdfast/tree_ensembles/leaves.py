"""The leaves of an ensemble as conditions on intervals between thresholds, and their distances from a point.

The thresholds of a feature split its axis into intervals, numbered from 0. All values of one interval reach the same
leaves. Interval i lies above threshold i - 1 and ends at threshold i.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.tree_ensembles.ensemble import LEAF, Floats, Integers, TreeEnsemble

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Leaves:
    """All leaves of an ensemble, with what each one demands of a row.

    A *condition* says that the interval of one feature is from ``first`` to ``last``. The conditions of one leaf stand
    together, and the leaves of one tree.

    Attributes:
        tree: The tree of each leaf, ``[L]``.
        value: ``[L, C]``.
        leaf: The leaf of each condition, ``[D]``.
        feature: ``[D]``.
        first: ``[D]``.
        last: ``[D]``; the number of thresholds of the feature if there is no upper end.
        start: The first threshold of each feature in ``thresholds``, ``[n + 1]``.
        thresholds: All thresholds, those of a feature together and sorted.
        single: Whether rows are rounded to single precision.
        count: The number of trees.
    """

    tree: Integers
    value: Floats
    leaf: Integers
    feature: Integers
    first: Integers
    last: Integers
    start: Integers
    thresholds: Floats
    single: bool
    count: int

    @classmethod
    def of(cls, ensemble: TreeEnsemble) -> Leaves:
        """Return the leaves of an ensemble."""
        inner = ensemble.feature != LEAF
        pairs = np.unique(np.stack([ensemble.feature[inner], ensemble.threshold[inner]], 1), axis=0)
        start = np.searchsorted(pairs[:, 0], np.arange(ensemble.columns + 1)).astype(np.int64)
        thresholds = np.ascontiguousarray(pairs[:, 1])
        place = np.zeros(len(ensemble.feature), np.int64)
        for feature in np.unique(ensemble.feature[inner]):
            nodes = (ensemble.feature == feature).nonzero()[0]
            own = thresholds[start[feature] : start[feature + 1]]
            place[nodes] = np.searchsorted(own, ensemble.threshold[nodes])
        found = [_conditions(ensemble, place, int(root)) for root in ensemble.roots]
        tree = np.repeat(np.arange(len(found)), [len(nodes) for nodes, _ in found])
        nodes = np.concatenate([np.array(nodes, np.int64) for nodes, _ in found])
        flat = [
            (leaf, feature, first, last)
            for leaf, conditions in enumerate(one for _, several in found for one in several)
            for feature, (first, last) in conditions.items()
        ]
        leaf, feature, first, last = np.array(flat, np.int64).reshape(-1, 4).T
        size = start[feature + 1] - start[feature]
        last = np.where(last < 0, size, last)
        return cls(
            tree, ensemble.value[nodes], leaf, feature, first, last, start, thresholds, ensemble.single, len(found)
        )

    @cached_property
    def _begins(self) -> Integers:
        """Where the conditions of each leaf begin, and then their number, ``[L + 1]``."""
        return np.searchsorted(self.leaf, np.arange(len(self.tree) + 1)).astype(np.int64)

    @cached_property
    def above(self) -> Floats:
        """The smallest value above each threshold."""
        if self.single:
            return np.nextafter(_single(self.thresholds), np.float32(np.inf)).astype(np.float64)
        return np.nextafter(self.thresholds, np.inf)

    @cached_property
    def below(self) -> Floats:
        """The largest value at or below each threshold."""
        return _single(self.thresholds).astype(np.float64) if self.single else self.thresholds

    @cached_property
    def owner(self) -> Integers:
        """The feature of each threshold."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def intervals(self, values: Floats) -> Integers:
        """Return the interval of each value of a row, ``[n]`` of ``[n]``."""
        seen = values.astype(np.float32).astype(np.float64) if self.single else values
        over = self.thresholds < seen[self.owner]
        return np.bincount(self.owner, over, len(self.start) - 1).astype(np.int64)

    def most(self, of_conditions: Floats) -> Floats:
        """Return the largest number of the conditions of each leaf, ``[L]`` of ``[D]``; 0 for a leaf without any."""
        out = np.zeros(len(self.tree))
        some = np.diff(self._begins) > 0
        if some.any():
            out[some] = np.maximum.reduceat(of_conditions, self._begins[:-1][some])
        return out

    def total(self, of_conditions: Floats) -> Floats:
        """Return the sum of the numbers of the conditions of each leaf, ``[L]`` of ``[D]``."""
        return np.bincount(self.leaf, of_conditions, len(self.tree)).astype(np.float64)


def _single(values: Floats) -> NDArray[np.float32]:
    """Return the largest numbers of single precision that are not above these."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


def _conditions(
    ensemble: TreeEnsemble, place: Integers, root: int
) -> tuple[list[int], list[dict[int, tuple[int, int]]]]:
    """Return the leaves below a node, and the first and last interval of each feature on the way; -1: no last one."""
    nodes: list[int] = []
    conditions: list[dict[int, tuple[int, int]]] = []
    waiting: list[tuple[int, dict[int, tuple[int, int]]]] = [(root, {})]
    feature, left, right = ensemble.feature, ensemble.left, ensemble.right
    while waiting:
        node, known = waiting.pop()
        if feature[node] == LEAF:
            nodes.append(node)
            conditions.append(known)
            continue
        axis, threshold = int(feature[node]), int(place[node])
        first, last = known.get(axis, (0, -1))
        if first <= threshold:  # otherwise the left side is empty
            upper = threshold if last < 0 else min(last, threshold)
            waiting.append((int(left[node]), known | {axis: (first, upper)}))
        if last < 0 or threshold < last:
            waiting.append((int(right[node]), known | {axis: (max(first, threshold + 1), last)}))
    return nodes, conditions
