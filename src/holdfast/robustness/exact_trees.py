"""Robustness-S of tree ensembles, exactly, by mixed-integer programs."""

from __future__ import annotations

import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from holdfast.cases import ANY
from holdfast.domain import Domain
from holdfast.errors import HoldfastError
from holdfast.models.model import Access, Model
from holdfast.models.trees import TreeModel
from holdfast.robustness.kinds import Exact, Solution
from holdfast.robustness.rows import Hint, Rows
from holdfast.settings import Count, Natural
from holdfast.tree_ensembles.geometry import Point
from holdfast.tree_ensembles.leaves import Leaves
from holdfast.tree_ensembles.nearest import Known, Nearest, nearest

_leaves: weakref.WeakKeyDictionary[TreeModel, Leaves] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class ExactTrees(Exact):
    """The exact radius of a model made by ``hf.trees``.

    Inside a ball around x, the nearest change is the solution of a mixed-integer program (Kantchelian et al. 2016). The
    ball grows until it holds a change or everything that can be reached. So a row ends in an exact radius, in a proof
    that no allowed change of the subset changes the decision, or, at the limit of branches, in an upper and a lower
    bound. The answer does not depend on time or on the number of threads. A tie of two scores is no change, even
    if the classifier then predicts the other class.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from holdfast.models.trees import trees
    >>> x, y = load_iris(return_X_y=True)
    >>> model = trees(DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, y), bounds=(0, 10))
    >>> radii = ExactTrees()(model.ask(x[:1]), torch.ones(1, 1, 4, dtype=torch.bool))
    >>> round(radii.radius.item(), 3), radii.proven.item()
    (0.6, True)

    Args:
        p: The norm: 1, 2 or infinity.
        nodes: The largest number of branches of each program.
        workers: How many rows are solved at a time; 0: as many as there are cores.

    Raises:
        HoldfastError: When called: the model is not made of trees.
    """

    p: float = 2
    nodes: Count = 20_000
    workers: Natural = field(default=0, repr=False, compare=False)
    name: ClassVar[str] = "exact-trees"
    requires: ClassVar[Access] = Access.SCORES
    uses_tolerance: ClassVar[bool] = True
    rows_at_once: ClassVar[int | None] = 64

    @classmethod
    def serves(cls, model: Model) -> bool:
        return isinstance(model, TreeModel)

    def solve(self, rows: Rows) -> Solution:
        model = rows.model
        if not isinstance(model, TreeModel):
            raise HoldfastError(f"ExactTrees needs a model made by hf.trees, got a {type(model).__name__}: use Judge.")
        if model not in _leaves:
            _leaves[model] = Leaves.of(model.ensemble)
        leaves, scale = _leaves[model], model.scale.numpy()
        x, low, high = (one.double().numpy() for one in (rows.x, rows.low, rows.high))
        label, target = rows.label.tolist(), rows.target.tolist()
        domain = model.domain or Domain(torch.zeros(x.shape[1], dtype=torch.float64))
        grid, groups, hot = domain.step.numpy(), tuple(group.numpy() for group in domain.groups), domain.hot

        def solved(row: int) -> Nearest:
            point = Point(x[row], low[row], high[row], scale, self.p, grid, groups, hot)
            aim = None if target[row] == ANY else target[row]
            return nearest(model.ensemble, leaves, point, label[row], aim, self.nodes, _known(rows.hint, row))

        with ThreadPoolExecutor(self.workers or os.cpu_count()) as pool:  # the solver does not hold the lock of Python
            found = list(pool.map(solved, range(len(rows))))
        delta = torch.zeros_like(rows.x)
        for row, one in enumerate(found):
            if one.move is not None:
                delta[row] = torch.from_numpy(one.move)
        proven = torch.tensor([one.proven for one in found])
        return Solution(delta, proven, torch.tensor([one.lower for one in found], dtype=rows.x.dtype))


def _known(hint: Hint | None, row: int) -> Known:
    """Return what is known of one row."""
    if hint is None:
        return Known()
    start = None if hint.start is None else hint.start[row].double().numpy()
    return Known(float(hint.lower[row]), None if start is None or not start.any() else start, hint.tolerance)
