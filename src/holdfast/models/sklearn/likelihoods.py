"""Classifiers by likelihood: naive Bayes with normal distributions, and quadratic discriminant analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class NormalLikelihoods(nn.Module):
    """Logarithms of prior times normal density of each class; constants that all classes share are left out.

    The score of class c is ``constant_c - |scale_c @ (x - mean_c)|^2 / 2``.

    Args:
        means: ``[K, n]``.
        scales: ``[K, m, n]``; ``[K, n]`` for distributions without correlation.
        constants: ``[K]``.
    """

    means: Tensor
    scales: Tensor
    constants: Tensor

    def __init__(self, means: Any, scales: Any, constants: Any):
        super().__init__()
        for name, value in (("means", means), ("scales", scales), ("constants", constants)):
            self.register_buffer(name, torch.tensor(np.asarray(value), dtype=torch.float64))
        self.eval()

    def forward(self, rows: Tensor) -> Tensor:
        away = rows[:, None] - self.means
        scaled = away * self.scales if self.scales.ndim == 2 else torch.einsum("kmn,rkn->rkm", self.scales, away)
        return self.constants - scaled.square().sum(2) / 2


def likelihoods(estimator: Any) -> NormalLikelihoods | None:
    """Return the scores of ``GaussianNB`` or ``QuadraticDiscriminantAnalysis``; None if it is another kind."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.naive_bayes import GaussianNB

    if isinstance(estimator, GaussianNB):
        constants = np.log(estimator.class_prior_) - np.log(2 * np.pi * estimator.var_).sum(1) / 2
        return NormalLikelihoods(estimator.theta_, 1 / np.sqrt(estimator.var_), constants)
    if isinstance(estimator, QuadraticDiscriminantAnalysis):
        pairs = list(zip(estimator.rotations_, estimator.scalings_, strict=True))
        widest = max(len(scaling) for _, scaling in pairs)
        scales = np.zeros((len(pairs), widest, len(estimator.means_[0])))
        for place, (rotation, scaling) in enumerate(pairs):
            scales[place, : len(scaling)] = (rotation / np.sqrt(scaling)).T
        logs = np.array([np.log(scaling).sum() for _, scaling in pairs])
        return NormalLikelihoods(estimator.means_, scales, np.log(estimator.priors_) - logs / 2)
    return None
