"""Rows: the flat batch every robustness method works on, one row a (case, subset)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.models.model import Model, differentiable


def margin(logits: Tensor, label: Tensor, target: Tensor, aim: Tensor | None = None) -> Tensor:
    """How far the decision is from the change asked for: negative once it has changed.

    Untargeted ``z_y - max_{j != y} z_j`` (Definition 3.1), targeted ``max_{j != t} z_j - z_t`` (eq. 2).
    A tie is no change. Where ``aim`` names a class j (untargeted) the boundary with that one counts: ``z_y - z_j``.
    """
    aimed = target != ANY
    pivot = torch.where(aimed, target, label)
    rival = logits.detach().scatter(1, pivot[:, None], -math.inf).argmax(1)
    # Chosen as indices: the gradient of a gather is cheap on a GPU, that of a where is not.
    high, low = torch.where(aimed, rival, pivot), torch.where(aimed, pivot, rival)
    low = low if aim is None else torch.where(aim == ANY, low, aim)
    pair = logits.gather(1, torch.stack([high, low], 1))
    return pair[:, 0] - pair[:, 1]


@dataclass(frozen=True, eq=False)
class Rows:
    """R questions: flat inputs ``x [R, n]`` and the interval ``low <= delta <= high`` each coordinate may move in.

    Mask and box in one: coordinates outside the row's subset have ``low = high = 0``.
    """

    model: Model
    shape: tuple[int, ...]
    x: Tensor
    low: Tensor
    high: Tensor
    label: Tensor
    target: Tensor

    def __len__(self) -> int:
        return len(self.x)

    @classmethod
    def of(cls, cases: Cases, subsets: Tensor, which: slice) -> Rows:
        """The rows ``which`` of all ``B * K`` rows of ``subsets [B, K, d]``."""
        k = subsets.shape[1]
        row = torch.arange(which.start, which.stop, device=cases.x.device)
        case = row // k
        x = cases.x[case]
        free = cases.features.expand(subsets.flatten(0, 1)[row], case).expand_as(x)
        low, high = (torch.where(free, edge, 0) for edge in box(cases.model, x))
        return cls(
            cases.model,
            tuple(x.shape[1:]),
            x.flatten(1),
            low.flatten(1),
            high.flatten(1),
            cases.label[case],
            cases.target[case],
        )

    def at(self, which: Tensor) -> Rows:
        """Some of these rows, by index or mask, in the order given and as often as named."""
        return Rows(
            self.model,
            self.shape,
            self.x[which],
            self.low[which],
            self.high[which],
            self.label[which],
            self.target[which],
        )

    @property
    def free(self) -> Tensor:
        """Which coordinates can move at all: ``[R, n]``."""
        return self.low < self.high

    def points(self, delta: Tensor) -> Tensor:
        """The inputs ``[R, *shape]`` that a move inside the interval leads to; rounding does not leave the box."""
        moved = (self.x + delta).reshape(-1, *self.shape)
        return moved if self.model.low is None else torch.clamp(moved, self.model.low, self.model.high)

    def look(
        self, delta: Tensor, loss: Callable[[Tensor], Tensor], *, low_precision: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Ask the model at ``x + delta``: logits, ``loss(logits) [R]`` and its slope ``[R, n]``, in one pass."""
        kept: list[Tensor] = []

        def value(logits: Tensor) -> Tensor:
            kept.append(loss(logits))
            return kept[0]

        logits, slope = differentiable(self.model).gradient(self.points(delta), value, low_precision=low_precision)
        return logits, kept[0].detach(), slope.flatten(1)

    def changed(self, logits: Tensor) -> Tensor:
        """Whether each decision has become what the row asks for."""
        return margin(logits, self.label, self.target) < 0


def box(model: Model, x: Tensor) -> tuple[Tensor, Tensor]:
    """The interval that each coordinate of ``x [R, *shape]`` could move in, whatever the subset."""
    inf = torch.full_like(x, math.inf)
    return (-inf if model.low is None else model.low - x), (inf if model.high is None else model.high - x)
