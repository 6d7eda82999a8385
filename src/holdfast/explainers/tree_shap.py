"""TreeSHAP: Shapley values of the scores of trees, computed by the library shap."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from holdfast.cases import Cases, explained
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError, first_line
from holdfast.explainers.explainer import Attribution
from holdfast.models.model import Access, Model
from holdfast.models.trees import TreeModel
from holdfast.reference import FixedReference, Reference, References, reference_points
from holdfast.tree_ensembles.ensemble import LEAF, Floats, Integers, TreeEnsemble


@dataclass(frozen=True)
class TreeShap(Attribution):
    """Interventional TreeSHAP: exact Shapley values of the score of trees, averaged over rows that replace features.

    It explains models that ``hf.trees`` made, whichever library trained them, and needs shap (``pip install shap``).
    Every coordinate is a player of its own, and the values of a feature's coordinates add up. So the value of a
    category with several coordinates may differ from that of ``KernelShap``, which removes them together.

    Attributes:
        references: Inputs ``[N, *shape]``, such as rows of the table. A removed coordinate takes the value of one of
            them, averaged over all. About a hundred are enough; the time grows with their number.
        reference: Without ``references``: what a removed coordinate becomes.
        absolute: Order by the size of the attribution.
        seed: Seed of random references and of the order of features with equal values.
    """

    references: References | None = None
    reference: Reference = 0.0
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "tree-shap"
    source: ClassVar[str] = "Lundberg et al. 2020"
    requires: ClassVar[Access] = Access.SCORES
    uses: ClassVar[tuple[str, ...]] = ("a reference value",)

    def refusal(self, model: Model) -> str:
        if not isinstance(model, TreeModel):
            return f"TreeShap explains models that hf.trees made, got a {type(model).__name__}: use KernelShap."
        return "" if find_spec("shap") else "TreeShap needs shap: pip install shap."

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        model = cases.model
        assert isinstance(model, TreeModel)
        explainer, parts = _Shap(model), []
        for number, case in enumerate(self._backgrounds(cases)):
            parts.append(explainer.values(cases.x[number : number + 1], case))
            if progress is not None:
                progress(number + 1, len(cases))
        values = torch.cat(parts)
        n, classes = values.shape[1:]
        label, target = (one.repeat_interleave(n) for one in (cases.label, cases.target))
        share = explained(values.reshape(-1, classes), label, target).view(len(cases), n)
        return cases.features.pool(share.view(cases.x.shape))

    def _backgrounds(self, cases: Cases) -> Iterator[Tensor]:
        """Yield for each case the rows ``[N, n]`` whose values replace its own. What never moves keeps its value."""
        if self.references is None:
            yield from reference_points(cases, self.reference, self.seed).split(1)
            return
        rows, ids = FixedReference.inputs(self.references).fitting(cases.x), cases.features.ids
        for number, x in enumerate(cases.x.split(1)):
            moves = ids[number if len(ids) > 1 else 0] >= 0
            yield torch.where(moves, rows, x)

    def rows(self, features: int) -> int:
        return 0  # shap reads the trees and asks no model


class _Shap:
    """The trees of a model in the form that shap reads."""

    def __init__(self, model: TreeModel):
        self._model = model
        self._trees = _trees_for_shap(model.ensemble)

    def values(self, x: Tensor, rows: Tensor) -> Tensor:
        """Return the Shapley values of every coordinate for every score of the model.

        Args:
            x: Inputs ``[B, n]``.
            rows: Inputs ``[N, n]`` whose values replace removed coordinates.

        Returns:
            ``[B, n, classes]``.

        Raises:
            HoldfastError: shap cannot read these trees.
        """
        import shap  # an optional library, heavy: imported when it is used

        given, others = (self._numbers(one) for one in (x, rows))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that many references are slow
                masker = shap.maskers.Independent(others, max_samples=len(others))
                explainer = shap.TreeExplainer(
                    {"trees": self._trees, "base_offset": 0.0}, masker, feature_perturbation="interventional"
                )
                values = explainer.shap_values(given, check_additivity=False)
        except Exception as error:  # shap has no one class for trees that it does not support
            raise HoldfastError(
                f"shap cannot explain these trees of {self._model.ensemble.source}: {first_line(error)}"
            ) from error
        scores = torch.from_numpy(np.asarray(values, dtype=np.float64))
        return self._model.centred(scores)

    def _numbers(self, x: Tensor) -> Floats:
        """Return inputs as the trees see them: unscaled, and rounded if the library rounds them."""
        numbers = (x.to(self._model.dtype) * self._model.scale).numpy()
        return numbers.astype(np.float32).astype(np.float64) if self._model.ensemble.single else numbers


def _trees_for_shap(ensemble: TreeEnsemble) -> list[dict[str, Any]]:
    """Return trees as the dictionaries that shap reads; the root is the first node."""
    weight = 1 / len(ensemble.roots) if ensemble.mean else 1.0
    place = np.full(len(ensemble.feature), -1)
    found = []
    for root in ensemble.roots:
        nodes = _nodes_below(ensemble, root)
        place[nodes] = np.arange(len(nodes))
        is_leaf = ensemble.feature[nodes] == LEAF
        left, right = (np.where(is_leaf, -1, place[side[nodes]]) for side in (ensemble.left, ensemble.right))
        found.append(
            {
                "children_left": left,
                "children_right": right,
                "children_default": left,
                "features": np.where(is_leaf, -1, ensemble.feature[nodes]),
                "thresholds": ensemble.threshold[nodes].astype(np.float64),
                "values": np.ascontiguousarray(ensemble.value[nodes] * weight, dtype=np.float64),
                "node_sample_weight": np.ones(len(nodes)),
            }
        )
    return found


def _nodes_below(ensemble: TreeEnsemble, root: int) -> Integers:
    """Return the numbers of all nodes of a tree, level by level."""
    levels = [np.array([root])]
    while len(levels[-1]):
        inner = levels[-1][ensemble.feature[levels[-1]] != LEAF]
        levels.append(np.concatenate([ensemble.left[inner], ensemble.right[inner]]))
    return np.concatenate(levels)
