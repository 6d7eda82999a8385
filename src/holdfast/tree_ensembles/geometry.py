"""How far thresholds, intervals and leaves are from a row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from holdfast.tree_ensembles.ensemble import Floats, Integers
from holdfast.tree_ensembles.leaves import Bools, Leaves

_ROUNDING = 1e-9  # how near two numbers are that rounding may have parted, as a share of the spacing or the length


@dataclass(frozen=True, eq=False)
class Point:
    """A row x and where its features may move, in the coordinates of radii.

    Attributes:
        x: ``[n]``.
        low: The smallest allowed move of each feature, ``[n]``.
        high: The largest.
        scale: Values that the trees see are coordinates times this, ``[n]``.
        p: The norm.
        grid: The spacing of allowed values of each feature, ``[n]``; 0: all values.
        groups: The features of each category without an order: one of them is ``hot``, the others are 0.
        hot: The value of the feature of the category that is chosen.
    """

    x: Floats
    low: Floats
    high: Floats
    scale: Floats
    p: float
    grid: Floats
    groups: tuple[Integers, ...] = ()
    hot: float = 0.0


class Demand(NamedTuple):
    """The sum of leaf weights and a base must be at most 0.

    Attributes:
        weight: Of each leaf, ``[L]``.
        base: What is added to the sum.
    """

    weight: Floats
    base: float


class Geometry:
    """Distances of a point from thresholds, intervals and leaves.

    Args:
        leaves: The leaves.
        point: The point.

    Attributes:
        interval: The interval of each feature of the point, ``[n]``.
        up: Whether each threshold is crossed by a larger value.
        move: The smallest move of the feature across each threshold.
        distance: The length of this move; ``inf`` if it is not allowed.
        gap: The distance of the interval of each condition, ``[D]``.
        leaf_distance: The distance of each leaf, ``[L]``; ``inf`` if it cannot be reached.
    """

    def __init__(self, leaves: Leaves, point: Point):
        self.leaves, self.point = leaves, point
        owner = leaves.owner
        self.interval = leaves.intervals(point.x * point.scale)
        self.up = np.arange(len(owner)) - leaves.start[owner] >= self.interval[owner]
        self.move = self._edges() - point.x[owner]
        allowed = np.where(self.up, self.move <= point.high[owner], self.move >= point.low[owner])
        allowed &= (point.low < point.high)[owner]
        self.distance = np.where(allowed, np.abs(self.move), math.inf)
        self.leaf_distance = self._leaf_distance()

    def _edges(self) -> Floats:
        """Return the first allowed value beyond each threshold, in the coordinates of radii."""
        leaves, point, owner = self.leaves, self.point, self.leaves.owner
        edge = np.where(self.up, leaves.above, leaves.below) / point.scale[owner]
        spacing = point.grid[owner]
        gridded = spacing > 0
        place = np.floor(leaves.thresholds / point.scale[owner] / np.where(gridded, spacing, 1) + _ROUNDING) + self.up
        edge = np.where(gridded, place * spacing, edge)
        return np.where(self._grouped[owner], np.where(self.up, point.hot, 0.0), edge)

    @cached_property
    def _grouped(self) -> Bools:
        """Whether each feature is one of a category, ``[n]``."""
        grouped = np.zeros(len(self.point.x), bool)
        for group in self.point.groups:
            grouped[group] = True
        return grouped

    def _leaf_distance(self) -> Floats:
        leaves, here = self.leaves, self.interval[self.leaves.feature]
        start = leaves.start[leaves.feature]
        upward, downward = leaves.first > here, leaves.last < here
        crossed = start + np.where(upward, leaves.first - 1, np.where(downward, leaves.last, 0))
        gap = np.where(upward | downward, self.distance[np.minimum(crossed, len(self.distance) - 1)], 0.0)
        self.gap = gap
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

    def farthest(self) -> float:
        """Return a radius that holds every point that is not like a nearer one."""
        finite = np.isfinite(self.distance)
        largest = np.zeros(len(self.interval))
        np.maximum.at(largest, self.leaves.owner[finite], self.distance[finite])
        switches = np.full(len(self.point.groups), self.point.hot)  # a new category also leaves the present one
        reach = float(np.linalg.norm(np.concatenate([largest, switches]), self.point.p))
        return reach * (1 + _ROUNDING)  # a norm may round below the length of its only entry

    def reached(self, move: Floats) -> Integers:
        """Return the leaf of each tree after a move, ``[T]``."""
        leaves, point = self.leaves, self.point
        interval = leaves.intervals((point.x + move) * point.scale)[leaves.feature]
        missed = (interval < leaves.first) | (interval > leaves.last)
        return np.flatnonzero(np.bincount(leaves.leaf, missed, len(leaves.tree)) == 0)

    def moved(self, crossed: Integers, chosen: dict[int, int]) -> Floats:
        """Return the smallest move that crosses thresholds and chooses categories, ``[n]``.

        Args:
            crossed: The thresholds that are crossed.
            chosen: The feature that becomes ``hot``, for each group of features whose category changes.
        """
        move = np.zeros(len(self.point.x))
        for threshold in crossed:
            feature = int(self.leaves.owner[threshold])
            if not self._grouped[feature] and abs(self.move[threshold]) >= abs(move[feature]):
                move[feature] = self._beyond(feature, int(threshold))
        for group, feature in chosen.items():
            members = self.point.groups[group]
            move[members] = -self.point.x[members]
            move[feature] = self.point.hot
        return move

    def _beyond(self, feature: int, threshold: int) -> float:
        """Return the move across a threshold, with as many roundings more as the trees need to see it."""
        point, move, up = self.point, float(self.move[threshold]), bool(self.up[threshold])
        for _ in range(64):
            value = (point.x[feature] + move) * point.scale[feature]
            seen = float(np.float32(value)) if self.leaves.single else value
            if (seen > self.leaves.thresholds[threshold]) == up:
                break
            move = float(np.nextafter(move, math.inf if up else -math.inf))
        return move
