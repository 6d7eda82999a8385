"""A certificate for the tests: the global Lipschitz bound of a network of linear layers and ReLU."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.cases import ANY
from holdfast.robustness import Rows


@dataclass(frozen=True)
class Lipschitz(hf.Certificate):
    """Margin divided by the Lipschitz constant of the logit differences, over the free coordinates alone.

    For a linear model the constant is ``||w_y - w_j on S||_q``. Deeper networks multiply the operator norms of their
    layers. ``factor`` above 1 makes the bound wrong.
    """

    factor: float = 1 - 1e-9  # leaves room for rounding
    p: float = 2

    def certify(self, rows: Rows) -> Tensor:
        weights = _weights(rows.model)
        logits = rows.model(rows.points(torch.zeros_like(rows.x)))
        aimed = rows.target != ANY
        pivot = torch.where(aimed, rows.target, rows.label)
        bounds = []
        for row in range(len(rows)):
            first, *hidden = [weights[0] * rows.free[row], *weights[1:]]
            margins = (logits[row, pivot[row]] - logits[row]) * (-1 if aimed[row] else 1)
            if hidden:
                differences = hidden[-1][pivot[row]] - hidden[-1]
                constants = torch.linalg.vector_norm(differences, dim=1) * self._operator_norm(first)
                for weight in hidden[:-1]:
                    constants = constants * torch.linalg.matrix_norm(weight, 2)
            else:
                q = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[self.p]
                constants = torch.linalg.vector_norm(first[pivot[row]] - first, q, dim=1)
            others = torch.arange(len(margins)) != pivot[row]
            lengths = (margins.clamp_min(0) / constants)[others]
            bounds.append(lengths.max() if aimed[row] else lengths.min())
        return self.factor * torch.stack(bounds)

    def _operator_norm(self, weight: Tensor) -> Tensor:
        """Return a bound on ``||W delta||_2`` for ``||delta||_p = 1``."""
        columns: Tensor = torch.linalg.vector_norm(weight, dim=0)
        if self.p == 1:
            return columns.max()
        norm: Tensor = torch.linalg.matrix_norm(weight, 2)
        return norm if self.p == 2 else torch.minimum(columns.sum(), norm * math.sqrt(len(columns)))


def _weights(model: hf.Model) -> list[Tensor]:
    module = model.module if isinstance(model, hf.TorchModel) else nn.Identity()
    layers = list(module) if isinstance(module, nn.Sequential) else [module]
    if not all(isinstance(layer, (nn.Linear, nn.ReLU)) for layer in layers):
        raise hf.HoldfastError("Lipschitz needs a network of linear layers and ReLU.")
    return [layer.weight for layer in layers if isinstance(layer, nn.Linear)]
