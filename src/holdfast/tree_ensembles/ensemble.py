"""A classifier that sums the leaf values of decision trees, as arrays."""

from __future__ import annotations

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
        mean: Whether scores are averages of probabilities. If not, they are log-odds.
        slope: What log-odds are multiplied by before they become probabilities.
        separate: Whether the log-odds of each class are those against all others together, as in one against the rest.
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
    slope: float = 1.0
    separate: bool = False
    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    source: str = "trees"

    def leaves_of(self, rows: Floats) -> Integers:
        """Return the leaf that each row reaches in each tree, ``[R, T]``.

        Args:
            rows: ``[R, n]``.
        """
        with np.errstate(over="ignore"):  # numbers beyond single precision become infinite
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
        with np.errstate(over="ignore", invalid="ignore"):  # cases refuse scores that are not finite
            for tree in range(len(self.roots)):  # in the order of the library, so that rounding is the same
                total += values[leaves[:, tree]]
        return total.astype(np.float64) / (len(self.roots) if self.mean else 1)
