"""Least squares for the regressions that estimate values of features: Banzhaf values and kernel SHAP."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def least_squares(
    design: Tensor, values: Tensor, weight: Tensor | None = None, total: float | None = None
) -> tuple[Tensor, Tensor]:
    """Fit a linear function in double precision.

    Args:
        design: ``[m, n]``.
        values: ``[m]``.
        weight: Weights of the rows, ``[m]``. None: all equal.
        total: The sum that the coefficients must have. None: any.

    Returns:
        The coefficients ``[n]`` and their standard errors ``[n]``. If the rows do not determine the coefficients: the
        least-norm solution, with infinite errors.
    """
    if design.device.type == "mps":  # has no double precision
        design, values, weight = design.cpu(), values.cpu(), None if weight is None else weight.cpu()
    rows, values = design.double(), values.double()
    m, n = rows.shape
    weighted = rows if weight is None else rows * weight.double()[:, None]
    gram = weighted.T @ rows
    factor, failed = torch.linalg.cholesky_ex(gram)
    pivots = factor.diagonal()
    determined = not bool(failed) and bool(pivots.min() > 1e-6 * pivots.max())
    inverse = torch.cholesky_inverse(factor) if determined else torch.linalg.pinv(gram, hermitian=True, rtol=1e-10)
    solution = inverse @ (weighted.T @ values)
    if total is not None:
        # The nearest solution, in the metric of the gram matrix, whose sum is the total.
        direction = inverse.sum(1)
        inverse = inverse - torch.outer(direction, direction) / direction.sum()
        solution = solution + (total - solution.sum()) * direction / direction.sum()
    if not determined:
        return solution, torch.full_like(solution, math.inf)
    residual = (values - rows @ solution).square()
    noise = (residual if weight is None else residual * weight).sum() / max(m - n + (total is not None), 1)
    return solution, (inverse.diagonal().clamp_min(0) * noise).sqrt()


def least_norm(design: Tensor, values: Tensor, total: float, width: int = 4096) -> Tensor:
    """Fit a linear function with fewer rows than columns, in double precision.

    Args:
        design: ``[m, n]``.
        values: ``[m]``.
        total: The sum that the coefficients must have.
        width: Columns converted at a time: only the m x m products are in memory as a whole.

    Returns:
        The coefficients ``[n]``: of those that fit best, the ones with the smallest variance.
    """
    if design.device.type == "mps":  # has no double precision
        design, values = design.cpu(), values.cpu()
    # Centred rows are orthogonal to the sum, which is then distributed evenly.
    count = design.shape[1]
    share = design.sum(1, keepdim=True, dtype=torch.double) / count
    products = torch.zeros(len(design), len(design), dtype=torch.double, device=design.device)
    for part in design.split(width, 1):
        centred = part.double() - share
        products += centred @ centred.T
    rest = values.double() - total * share[:, 0]
    weights = torch.linalg.lstsq(products.cpu(), rest.cpu()[:, None], driver="gelsd").solution[:, 0].to(share)
    return total / count + torch.cat([(part.double() - share).T @ weights for part in design.split(width, 1)])
