"""Least squares, shared by the regressions that value features: Banzhaf values and kernel SHAP."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def least_squares(
    design: Tensor, values: Tensor, weight: Tensor | None = None, total: float | None = None
) -> tuple[Tensor, Tensor]:
    """Coefficients ``[n]`` of ``values [m]`` on ``design [m, n]`` and their standard errors, in double precision.

    ``weight [m]`` counts rows, ``total`` fixes the sum of the coefficients. Where the rows do not tell coefficients
    apart, the least-norm answer stands, with no limit to its error.
    """
    if design.device.type == "mps":  # knows no double precision
        design, values, weight = design.cpu(), values.cpu(), None if weight is None else weight.cpu()
    rows, values = design.double(), values.double()
    m, n = rows.shape
    weighted = rows if weight is None else rows * weight.double()[:, None]
    gram = weighted.T @ rows
    factor, failed = torch.linalg.cholesky_ex(gram)
    pivots = factor.diagonal()
    settled = not bool(failed) and bool(pivots.min() > 1e-6 * pivots.max())
    inverse = torch.cholesky_inverse(factor) if settled else torch.linalg.pinv(gram, hermitian=True, rtol=1e-10)
    solution = inverse @ (weighted.T @ values)
    if total is not None:
        # The nearest solution, in the metric of the gram matrix, whose sum is the total.
        towards = inverse.sum(1)
        inverse = inverse - torch.outer(towards, towards) / towards.sum()
        solution = solution + (total - solution.sum()) * towards / towards.sum()
    if not settled:
        return solution, torch.full_like(solution, math.inf)
    left = (values - rows @ solution).square()
    noise = (left if weight is None else left * weight).sum() / max(m - n + (total is not None), 1)
    return solution, (inverse.diagonal().clamp_min(0) * noise).sqrt()


def least_norm(design: Tensor, values: Tensor, total: float, width: int = 4096) -> Tensor:
    """Coefficients ``[n]`` of ``values [m]`` on ``design [m, n]`` for fewer rows than columns, adding up to ``total``.

    Of those that fit best, the ones nearest to each other. In double precision, ``width`` columns at a time: of many
    columns only the m x m products are ever whole.
    """
    if design.device.type == "mps":  # knows no double precision
        design, values = design.cpu(), values.cpu()
    # Less their mean, rows say nothing about the sum: what they leave open is then shared out evenly.
    count = design.shape[1]
    share = design.sum(1, keepdim=True, dtype=torch.double) / count
    products = torch.zeros(len(design), len(design), dtype=torch.double, device=design.device)
    for part in design.split(width, 1):
        centred = part.double() - share
        products += centred @ centred.T
    left = values.double() - total * share[:, 0]
    weights = torch.linalg.lstsq(products.cpu(), left.cpu()[:, None], driver="gelsd").solution[:, 0].to(share)
    return total / count + torch.cat([(part.double() - share).T @ weights for part in design.split(width, 1)])
