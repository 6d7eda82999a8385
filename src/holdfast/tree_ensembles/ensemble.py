"""A classifier that sums the leaf values of decision trees, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEAF = -1
"""The feature of a leaf."""
_NUMBERS = 2**22  # node numbers, or scores, that are held at once


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """T binary trees with N nodes in all. A row goes left at a node if its feature is at most the threshold.

    Attributes:
        feature: The feature of each node, ``[N]``; ``LEAF`` for leaves.
        threshold: ``[N]``; 0 for leaves.
        left: The node for values up to the threshold, ``[N]``; a leaf names itself.
        right: The node for values above it, ``[N]``.
        value: What each leaf adds to the scores, ``[N, C]``; 0 for other nodes.
        roots: The first node of each tree, ``[T]``.
        base: What is added to the scores of every row, ``[C]``.
        columns: The number of features of a row, n.
        single: Whether rows are rounded to single precision before they are compared.
        sums: The precision in which scores are summed, in the order of the trees: ``float32`` or ``float64``.
        mean: Whether scores are averages of probabilities. If not, their softmax is.
        names: Names of the features; empty without names.
        classes: Names of the classes; empty without names.
        source: What it was read from, for messages.
    """

    feature: Integers
    threshold: Floats
    left: Integers
    right: Integers
    value: Floats
    roots: Integers
    base: Floats
    columns: int
    single: bool
    sums: type[np.floating[Any]] = np.float64
    mean: bool = False
    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    source: str = "trees"

    def leaves_of(self, rows: Floats) -> Integers:
        """Return the leaf that each row reaches in each tree, ``[R, T]``.

        Args:
            rows: ``[R, n]``.
        """
        seen = rows.astype(np.float32).astype(np.float64) if self.single else rows
        node = np.broadcast_to(self.roots, (len(rows), len(self.roots))).copy()
        feature = np.maximum(self.feature, 0)
        active = self.feature[node] != LEAF
        while active.any():
            row, tree = active.nonzero()
            at = node[row, tree]
            at = np.where(seen[row, feature[at]] <= self.threshold[at], self.left[at], self.right[at])
            node[row, tree] = at
            active[row, tree] = self.feature[at] != LEAF
        return node

    def scores(self, rows: Floats) -> Floats:
        """Return the scores of rows ``[R, n]``: ``[R, C]``."""
        size = max(1, _NUMBERS // max(1, len(self.roots) * 4))
        return np.concatenate([self._scores(rows[begin : begin + size]) for begin in range(0, len(rows), size)])

    def _scores(self, rows: Floats) -> Floats:
        leaves, values = self.leaves_of(rows), self.value.astype(self.sums)
        total = np.tile(self.base.astype(self.sums), (len(rows), 1))
        for tree in range(len(self.roots)):  # in the order of the library, so that rounding is the same
            total += values[leaves[:, tree]]
        return total.astype(np.float64) / (len(self.roots) if self.mean else 1)


@dataclass(eq=False)
class Tree:
    """One tree while an ensemble is built; children are numbers of its own nodes.

    Attributes:
        feature: ``[N]``; ``LEAF`` for leaves.
        threshold: ``[N]``.
        left: ``[N]``; not read at leaves.
        right: ``[N]``; not read at leaves.
        value: ``[N, C]``; not read at other nodes.
    """

    feature: Any
    threshold: Any
    left: Any
    right: Any
    value: Any


def joined(trees: Sequence[Tree], base: Any, columns: int, *, single: bool, **settings: Any) -> TreeEnsemble:
    """Return an ensemble of trees.

    Args:
        trees: At least one tree.
        base: ``[C]``.
        columns: The number of features of a row.
        single: See ``TreeEnsemble``.
        settings: Other attributes of ``TreeEnsemble``.
    """
    sizes = [len(tree.feature) for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    feature = np.concatenate([np.asarray(tree.feature) for tree in trees]).astype(np.int64)
    feature = np.where(feature < 0, LEAF, feature)
    leaf, own = feature == LEAF, np.arange(len(feature))
    shift = np.repeat(roots, sizes)
    left, right = (
        np.where(leaf, own, np.concatenate([np.asarray(getattr(tree, side)) for tree in trees]) + shift)
        for side in ("left", "right")
    )
    threshold = np.where(leaf, 0, np.concatenate([np.asarray(tree.threshold) for tree in trees]).astype(np.float64))
    value = np.concatenate([np.asarray(tree.value, np.float64).reshape(len(tree.feature), -1) for tree in trees])
    value = np.where(leaf[:, None], value, 0)
    base = np.asarray(base, np.float64)
    return TreeEnsemble(feature, threshold, left, right, value, roots, base, columns, single, **settings)


def below(numbers: Any) -> Floats:
    """Return the largest number of single precision below each of these numbers of single precision."""
    return np.nextafter(np.asarray(numbers, np.float32), np.float32(-np.inf)).astype(np.float64)


def one_column(values: Any, column: int, columns: int) -> Floats:
    """Return leaf values ``[N]`` as one column of ``[N, C]``.

    One score of two classes is that of class 1; class 0 has score 0.
    """
    wide = np.zeros((len(values), columns))
    wide[:, column] = values
    return wide
