"""From the trees that a reader found to one ensemble. What no reader may let through is refused here, once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.tree_ensembles.ensemble import LEAF, Floats, Integers, TreeEnsemble

_MOST_COLUMNS = 2**20  # a file of a few bytes may claim any number
_MOST_VALUES = 2**28  # leaf values that are held at once: 2 GiB


@dataclass(eq=False)
class Tree:
    """One tree as a reader found it; children are numbers of its own nodes.

    Attributes:
        feature: ``[N]``; negative for leaves.
        threshold: ``[N]``; not read at leaves.
        left: ``[N]``; not read at leaves.
        right: ``[N]``; not read at leaves.
        value: ``[N, C]``, or ``[N]`` if the tree adds to one score; not read at other nodes.
        column: The one score that the tree adds to.
    """

    feature: Any
    threshold: Any
    left: Any
    right: Any
    value: Any
    column: int = 0


def joined(trees: Sequence[Tree], base: Any, columns: int, *, single: bool, **settings: Any) -> TreeEnsemble:
    """Return an ensemble of trees.

    Args:
        trees: The trees.
        base: ``[C]``.
        columns: The number of features of a row.
        single: See ``TreeEnsemble``.
        settings: Other attributes of ``TreeEnsemble``.

    Raises:
        HoldfastError: There are no trees, the nodes are not binary trees, or a number is missing, infinite or too
            large.
    """
    source, base = settings.get("source", "trees"), np.asarray(base, np.float64)
    sizes = [len(tree.feature) for tree in trees]
    _check_frame(source, sizes, base, columns, settings)
    for tree, size in zip(trees, sizes, strict=True):
        if any(len(part) != size for part in (tree.threshold, tree.left, tree.right, tree.value)):
            raise _damaged(source, "a tree has lists of different lengths")
        if not 0 <= tree.column < len(base):
            raise _damaged(source, f"a tree adds to class {tree.column} of {len(base)}")
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    feature, left, right = (
        np.concatenate([np.asarray(getattr(tree, name)) for tree in trees]).astype(np.int64)
        for name in ("feature", "left", "right")
    )
    threshold = np.concatenate([np.asarray(tree.threshold, np.float64) for tree in trees])
    value = np.concatenate([_wide(tree, len(base)) for tree in trees])
    leaf, own, shift = feature < 0, np.arange(len(feature)), np.repeat(roots, sizes)
    inside = np.repeat(sizes, sizes)
    for child in (left, right):
        if ((child < 0) | (child >= inside))[~leaf].any():
            raise _damaged(source, "a node has a child that its tree does not have")
    left, right = (np.where(leaf, own, child + shift) for child in (left, right))
    threshold, value = np.where(leaf, 0, threshold), np.where(leaf[:, None], value, 0)
    _check_trees(source, np.concatenate([left[~leaf], right[~leaf]]), np.tile(own[~leaf], 2), np.repeat(roots, sizes))
    if (feature >= columns).any():
        raise _damaged(source, f"a node splits column {int(feature.max())}, and rows have {columns} columns")
    if np.isnan(threshold).any() or not np.isfinite(value).all():
        raise _damaged(source, "a threshold is NaN, or the value of a leaf is not finite")
    feature = np.where(leaf, LEAF, feature)
    return decided(TreeEnsemble(feature, threshold, left, right, value, roots, base, columns, single, **settings))


def _check_frame(source: str, sizes: list[int], base: Floats, columns: int, settings: dict[str, Any]) -> None:
    if not sizes or 0 in sizes:
        raise HoldfastError(f"this model of {source} has no trees, or an empty one: fit it first.")
    if not 1 <= columns <= _MOST_COLUMNS:
        raise _damaged(source, f"it has {columns} columns, and from 1 to {_MOST_COLUMNS} are read")
    if base.ndim != 1 or len(base) < 2 or not np.isfinite(base).all():
        raise _damaged(source, "it needs a finite first score for each of two or more classes")
    if sum(sizes) * len(base) > _MOST_VALUES:
        raise HoldfastError(
            f"this model of {source} has {sum(sizes)} nodes and {len(base)} classes, which is too large."
        )
    names, classes = settings.get("names", ()), settings.get("classes", ())
    if names and len(names) != columns:
        raise _damaged(source, f"it names {len(names)} columns and has {columns}")
    if classes and len(classes) != len(base):
        raise HoldfastError(f"{len(classes)} classes are named, and the model has {len(base)}.")


def _check_trees(source: str, child: Integers, parent_of_child: Integers, root_of_node: Integers) -> None:
    """Refuse nodes that are not trees: each node but the root has one parent, and leads to its root through parents."""
    own = np.arange(len(root_of_node))
    expected = (own != root_of_node).astype(np.int64)
    if (np.bincount(child, minlength=len(own)) != expected).any():
        raise _damaged(source, "a node has several parents, or none")
    above = own.copy()
    above[child] = parent_of_child
    for _ in range(len(own).bit_length()):  # each time, steps are twice as long
        above = above[above]
    if (above != root_of_node).any():
        raise _damaged(source, "the nodes of a tree form a circle")


def _wide(tree: Tree, outputs: int) -> Floats:
    value = np.asarray(tree.value, np.float64)
    if value.ndim == 1:
        wide = np.zeros((len(value), outputs))
        wide[:, tree.column] = value
        return wide
    if value.ndim != 2 or value.shape[1] != outputs:
        raise ValueError("leaves have values of another number of classes")
    return value


def _damaged(source: str, why: str) -> HoldfastError:
    return HoldfastError(f"this model of {source} is damaged: {why}; save it again.")


def decided(ensemble: TreeEnsemble) -> TreeEnsemble:
    """Return the ensemble without splits at infinity, which send all rows to one side.

    Libraries make them to tell missing values from others.

    Args:
        ensemble: The trees.
    """
    infinite = np.isinf(ensemble.threshold)
    if not infinite.any():
        return ensemble
    own = np.arange(len(ensemble.feature))
    follow = np.where(infinite, np.where(ensemble.threshold > 0, ensemble.left, ensemble.right), own)
    for _ in range(len(own).bit_length()):
        follow = follow[follow]
    roots, left, right = (follow[part] for part in (ensemble.roots, ensemble.left, ensemble.right))
    kept = np.zeros(len(own), bool)
    level = roots
    while len(level):
        kept[level] = True
        inner = level[ensemble.feature[level] != LEAF]
        level = np.concatenate([left[inner], right[inner]])
    place = np.cumsum(kept) - 1
    return dataclasses.replace(
        ensemble,
        feature=ensemble.feature[kept],
        threshold=ensemble.threshold[kept],
        left=place[left[kept]],
        right=place[right[kept]],
        value=ensemble.value[kept],
        roots=place[roots],
    )
