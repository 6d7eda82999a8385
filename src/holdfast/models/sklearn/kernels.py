"""Support vector machines with kernels: decisions between pairs of classes, and the votes of one against one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.models.sklearn.refusals import refused

_KERNELS = ("linear", "rbf", "poly", "sigmoid")


class KernelMachine(nn.Module):
    """The scores of an ``SVC`` or ``NuSVC``: kernel values of support vectors, then decisions between pairs of classes.

    A binary machine has the scores ``-z/2`` and ``z/2``. With more classes, ``predict`` counts the votes of all pairs,
    and the smallest of tied classes wins. The score of a class is positive exactly where it wins that count; it is made
    of minima and maxima of decisions, so that gradients lead to the pair that matters. ``decision_function`` does
    not decide there. With ``break_ties=True`` it does, and scores are its votes and confidences.

    Args:
        machine: The fitted estimator.
    """

    vectors: Tensor
    coefficients: Tensor
    intercepts: Tensor

    def __init__(self, machine: Any):
        super().__init__()
        self.kernel: str = machine.kernel
        self.gamma, self.degree, self.offset = float(machine._gamma), int(machine.degree), float(machine.coef0)
        self.count = len(machine.classes_)
        self.break_ties = bool(machine.break_ties) and machine.decision_function_shape == "ovr" and self.count > 2
        for name, value in zip(("vectors", "coefficients", "intercepts"), _parameters(machine), strict=True):
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))
        self.eval()

    def forward(self, rows: Tensor) -> Tensor:
        pairs = self.pairs(rows)
        if self.count == 2:
            return torch.cat([-pairs, pairs], 1) / 2
        return self._confidences(pairs) if self.break_ties else self._wins(pairs)

    def pairs(self, rows: Tensor) -> Tensor:
        """Return the decisions ``[R, K (K - 1) / 2]`` between classes (0, 1), (0, 2), ...: positive for the first one.

        With two classes, positive for the second, as ``decision_function``.
        """
        return self._similarity(rows) @ self.coefficients.T + self.intercepts

    def _similarity(self, rows: Tensor) -> Tensor:
        """Return kernel values ``[R, V]``."""
        if self.kernel == "rbf":
            # Products of matrices, about the mean of the vectors so that little is lost to rounding.
            middle = self.vectors.mean(0)
            ours, theirs = rows - middle, self.vectors - middle
            squared = ours.square().sum(1, keepdim=True) + theirs.square().sum(1) - 2 * ours @ theirs.T
            return (-self.gamma * squared.clamp_min(0)).exp()
        product = rows @ self.vectors.T
        if self.kernel == "linear":
            return product
        scaled = self.gamma * product + self.offset
        return scaled.tanh() if self.kernel == "sigmoid" else scaled.pow(self.degree)

    def _table(self, pairs: Tensor) -> Tensor:
        """Return decisions as ``[R, K, K]``: (i, j) is positive where i beats j; the diagonal is minus infinity."""
        first, second = torch.triu_indices(self.count, self.count, 1)
        table = pairs.new_full((len(pairs), self.count, self.count), -math.inf)
        table[:, first, second] = pairs
        table[:, second, first] = -pairs
        return table

    def _wins(self, pairs: Tensor) -> Tensor:
        """Return the scores ``[R, K]`` that are positive exactly where a class has the most votes.

        A class has m votes or more exactly if the m-th largest of its decisions is positive. Class i wins with m votes
        if it has m or more, no class before it has m, and no class after it has m + 1.
        """
        sorted_ = self._table(pairs).sort(dim=2, descending=True).values  # the last one is the diagonal
        reached, passed = sorted_[:, :, :-1], -sorted_[:, :, 1:]  # m votes; not m + 1 votes: infinite for the most
        scores = []
        for i in range(self.count):
            parts = [reached[:, i : i + 1], -reached[:, :i], passed[:, i + 1 :]]
            scores.append(torch.cat(parts, 1).amin(1).amax(1))
        return torch.stack(scores, 1)

    def _confidences(self, pairs: Tensor) -> Tensor:
        """Return votes and, inside them, sums of decisions: the scores of ``decision_function_shape='ovr'``."""
        table = self._table(pairs)
        table = table.masked_fill(torch.eye(self.count, dtype=torch.bool), 0)
        votes, total = (table > 0).sum(2), table.sum(2)
        return votes + total / (3 * (total.abs() + 1))


def kernel_machine(estimator: Any) -> KernelMachine | None:
    """Return the machine of an ``SVC`` or ``NuSVC``; None if it is another kind.

    Raises:
        HoldfastError: Its kernel is a function or a matrix of values, or it was fitted on a sparse matrix.
    """
    from sklearn.svm import SVC, NuSVC

    if not isinstance(estimator, (SVC, NuSVC)):
        return None
    if estimator.kernel not in _KERNELS:
        shown = estimator.kernel if isinstance(estimator.kernel, str) else "a function"
        raise refused(estimator, f"its kernel is {shown}, and only {', '.join(_KERNELS)} are known")
    if hasattr(estimator.support_vectors_, "toarray"):
        raise refused(estimator, "it was fitted on a sparse matrix")
    return KernelMachine(estimator)


def _parameters(machine: Any) -> tuple[Any, Any, Any]:
    """Return support vectors, and coefficients ``[pairs, V]`` and intercepts of the decisions between pairs."""
    counts, dual = machine.n_support_, machine.dual_coef_
    if len(machine.classes_) == 2:
        return machine.support_vectors_, dual, machine.intercept_
    ends = np.cumsum(counts)
    places = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    coefficients = []
    for i in range(len(places)):
        for j in range(i + 1, len(places)):
            row = np.zeros(dual.shape[1])
            # Row j - 1 of libsvm's table belongs to class j where the vector is of a class before it, row i otherwise.
            row[places[i]], row[places[j]] = dual[j - 1, places[i]], dual[i, places[j]]
            coefficients.append(row)
    return machine.support_vectors_, np.array(coefficients), machine.intercept_
