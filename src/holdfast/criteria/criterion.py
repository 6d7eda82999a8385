"""What every criterion is: a number for each subset of features called relevant."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError


@dataclass(frozen=True, eq=False)
class Marginals:
    """``values [B, K]`` of the criterion, estimated, and their change when a feature joins: ``effects [B, K, d]``.

    For a feature that is in the subset the effect is that of its having joined. ``turned [B]``: whether the decision
    was seen to change at all. ``state`` makes the next call on similar subsets cheaper; it means nothing elsewhere.
    """

    values: Tensor
    effects: Tensor
    turned: Tensor
    state: Any = None


class Criterion(ABC):
    """``criterion(cases, relevant) -> values [B, K]`` for ``relevant`` bool ``[B, K, d]``. A frozen dataclass."""

    higher_is_better: ClassVar[bool]

    @abstractmethod
    def __call__(self, cases: Cases, relevant: Any, *, progress: Progress | None = None) -> Tensor:
        """The value of every subset; ``inf`` where it is censored."""

    @property
    def rows(self) -> int | None:
        """About how many rows a subset puts through the model; None if not known."""
        return None

    def ceiling(self, cases: Cases, relevant: Tensor) -> Tensor:
        """The largest possible value of each subset, ``[B, K]``: what a censored one is at most, ``inf`` if unknown."""
        return torch.full(relevant.shape[:2], math.inf, dtype=cases.x.dtype, device=cases.x.device)

    def marginals(
        self, cases: Cases, relevant: Tensor, *, steps: int, classes: int, soft: float, state: Any
    ) -> Marginals:
        """The effect of every feature on every subset, where one search tells them all."""
        raise HoldfastError(f"{type(self).__name__} does not know marginal effects: use the estimator Regression().")
