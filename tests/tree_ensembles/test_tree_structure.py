"""What is refused before arrays become an ensemble, whoever read them; and splits at infinity."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.tree_ensembles.joined import Tree, joined

# Node 0 splits column 0, node 2 splits column 1.
SOUND: dict[str, Any] = {
    "feature": [0, -1, 1, -1, -1],
    "threshold": [0.5, 0.0, 1.5, 0.0, 0.0],
    "left": [1, -1, 3, -1, -1],
    "right": [2, -1, 4, -1, -1],
    "value": [0.0, 1.0, 0.0, 2.0, 3.0],
    "column": 1,
}


def _made(columns: Any = 2, base: Any = (0.0, 0.0), settings: Any = None, **changes: Any) -> Any:
    return joined([Tree(**SOUND), Tree(**(SOUND | changes))], base, columns, single=False, **(settings or {}))


def test_sound_trees_are_joined() -> None:
    made = _made(base=[0.0, 0.25])
    assert made.roots.tolist() == [0, 5]
    rows = np.array([[0.5, 9.0], [0.6, 1.5], [0.6, 1.6]])
    assert made.scores(rows).tolist() == [[0, 2.25], [0, 4.25], [0, 6.25]]


DAMAGE: list[tuple[dict[str, Any], str]] = [
    ({"left": [0, -1, 3, -1, -1]}, "a node has several parents, or none"),  # back to the root
    ({"left": [1, -1, 2, -1, -1]}, "a node has several parents, or none"),  # to itself
    ({"left": [1, -1, 1, -1, -1]}, "a node has several parents, or none"),
    ({"left": [3, -1, 1, -1, -1], "right": [4, -1, 2, -1, -1]}, "the nodes of a tree form a circle"),
    ({"left": [1, -1, 5, -1, -1]}, "a node has a child that its tree does not have"),
    ({"left": [1, -1, 10**12, -1, -1]}, "a node has a child that its tree does not have"),
    ({"left": [-1, -1, 3, -1, -1]}, "a node has a child that its tree does not have"),
    ({"feature": [0, -1, -1, -1, -1]}, "a node has several parents, or none"),  # leaves that nothing leads to
    ({"feature": [0, -1, 2, -1, -1]}, "a node splits column 2, and rows have 2 columns"),
    ({"threshold": [0.5, 0, math.nan, 0, 0]}, "a threshold is NaN"),
    ({"value": [0, math.inf, 0, 0, 0]}, "the value of a leaf is not finite"),
    ({"value": [0, math.nan, 0, 0, 0]}, "the value of a leaf is not finite"),
    ({"value": [0.0, 1.0]}, "a tree has lists of different lengths"),
    ({"threshold": [0.5]}, "a tree has lists of different lengths"),
    ({"left": [1, -1]}, "a tree has lists of different lengths"),
    ({"column": 2}, "a tree adds to class 2 of 2"),
    ({"column": -1}, "a tree adds to class -1 of 2"),
    ({name: [] for name in SOUND if name != "column"}, "has no trees, or an empty one"),
    ({"columns": 0}, "it has 0 columns, and from 1 to 1048576 are read"),
    ({"columns": 10**15}, "it has 1000000000000000 columns"),
    ({"base": [0.0]}, "a finite first score for each of two or more classes"),
    ({"base": [0.0, math.nan]}, "a finite first score for each of two or more classes"),
    ({"base": np.zeros(10**8)}, "10 nodes and 100000000 classes, which is too large"),
    ({"settings": {"names": ("a",)}}, "it names 1 columns and has 2"),
    ({"settings": {"classes": ("a",)}}, "1 classes are named, and the model has 2"),
]


@pytest.mark.parametrize(("changes", "said"), DAMAGE)
def test_what_is_no_tree_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(hf.HoldfastError, match=said):
        _made(**changes)


def test_trees_of_nothing_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match=r"^this model of trees has no trees, or an empty one: fit it first\.$"):
        joined([], [0.0, 0.0], 2, single=False)


def test_a_chain_of_a_million_nodes_is_checked_in_seconds() -> None:
    count = 2 * 10**6 + 1
    inner = np.arange(count) % 2 == 0
    inner[-1] = False
    feature = np.where(inner, 0, -1)
    own = np.arange(count)
    tree = Tree(feature, np.zeros(count), own + 1, own + 2, np.zeros(count))
    began = time.process_time()
    assert len(joined([tree], [0.0, 0.0], 1, single=False).feature) == count
    right = own + 2
    right[-3] = 0
    with pytest.raises(hf.HoldfastError, match="several parents"):
        joined([Tree(feature, np.zeros(count), own + 1, right, np.zeros(count))], [0.0, 0.0], 1, single=False)
    assert time.process_time() - began < 30


@pytest.mark.parametrize("thresholds", [(math.inf, 1.5), (-math.inf, 1.5), (0.5, math.inf), (math.inf, -math.inf)])
def test_splits_at_infinity_are_left_out(thresholds: tuple[float, float]) -> None:
    first, second = thresholds
    made = _made(threshold=[first, 0.0, second, 0.0, 0.0])
    assert np.isfinite(made.threshold).all()
    rows = np.random.default_rng(0).normal(1, 1, (50, 2))
    place = np.where(rows[:, 0] <= first, 1, np.where(rows[:, 1] <= second, 3, 4))
    plain = np.where(rows[:, 0] <= 0.5, 1, np.where(rows[:, 1] <= 1.5, 3, 4))
    value = np.array(SOUND["value"])
    assert made.scores(rows)[:, 1].tolist() == (value[place] + value[plain]).tolist()
    assert len(made.feature) < 10
