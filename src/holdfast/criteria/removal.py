"""Insertion and Deletion: the score of the label when features are removed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.draws import mixed
from holdfast.models.model import Access
from holdfast.reference import (
    Reference,
    Score,
    is_random,
    kept_scores,
    live_features,
    reference_points,
)
from holdfast.settings import Count

_FIRST_DRAW = 500_009  # explainers count draws from 0: they must not share the noise that they are evaluated with


@dataclass(frozen=True)
class _Removal(Criterion):
    """The label's score with some features kept and the others at their reference values."""

    reference: Reference = "uniform"
    score: Score = "logit"
    draws: Count = 10
    seed: int = 0
    family: ClassVar[str] = "Insertion and Deletion"
    requires: ClassVar[Access] = Access.DECISIONS

    @abstractmethod
    def kept(self, relevant: Tensor) -> Tensor:
        """Return the features that are kept, bool ``[B, K, d]``, when ``relevant`` ones are called relevant."""

    @property
    @final
    def rows(self) -> int:
        return self.draws if is_random(self.reference) else 1

    @final
    def measure(self, cases: Cases, relevant: Tensor, progress: Progress | None) -> Tensor:
        kept = self.kept(relevant)
        b, k = kept.shape[:2]
        values = torch.zeros(b, k, dtype=cases.x.dtype, device=kept.device)
        for draw in range(self.rows):
            points = reference_points(cases, self.reference, mixed(self.seed, draw + _FIRST_DRAW))
            new = _differs_from_previous(kept, live_features(cases, points))
            case, subset = new.nonzero(as_tuple=True)
            report = None if progress is None else _of_all_rounds(progress, draw, self.rows)
            scores = kept_scores(cases, points, case, _rows_of(kept, case, subset), report, self.score)
            values += scores[new.flatten().cumsum(0) - 1].view(b, k)
        return values / self.rows


@dataclass(frozen=True)
class Insertion(_Removal):
    """The score of the label when only the relevant features are shown. Higher is better: they are sufficient.

    Attributes:
        reference: What removed features become: a number, a tensor, ``"blur"``, ``"mean"`` or ``"uniform"``.
        score: The score of the label: ``"logit"`` as in the paper, ``"probability"`` or ``"margin"``. For a model that
            does not return logits, ``"logit"`` is the score as the model returns it.
        draws: Average over this many draws of a random reference.
        seed: Seed of random references.
    """

    name: ClassVar[str] = "insertion"
    higher_is_better: ClassVar[bool] = True

    def kept(self, relevant: Tensor) -> Tensor:
        return relevant


@dataclass(frozen=True)
class Deletion(_Removal):
    """The score of the label when the relevant features are removed. Lower is better: they are necessary.

    Attributes:
        reference: What removed features become: a number, a tensor, ``"blur"``, ``"mean"`` or ``"uniform"``.
        score: The score of the label: ``"logit"`` as in the paper, ``"probability"`` or ``"margin"``. For a model that
            does not return logits, ``"logit"`` is the score as the model returns it.
        draws: Average over this many draws of a random reference.
        seed: Seed of random references.
    """

    name: ClassVar[str] = "deletion"
    higher_is_better: ClassVar[bool] = False

    def kept(self, relevant: Tensor) -> Tensor:
        return ~relevant


def _differs_from_previous(kept: Tensor, live: Tensor) -> Tensor:
    """Which subsets ``[B, K]`` make another input than the subset before; features at their reference make none."""
    new = torch.ones(kept.shape[:2], dtype=torch.bool, device=kept.device)
    new[:, 1:] = ((kept[:, 1:] != kept[:, :-1]) & live[:, None]).any(2)
    return new


def _rows_of(kept: Tensor, case: Tensor, subset: Tensor) -> Callable[[slice], Tensor]:
    return lambda piece: kept[case[piece], subset[piece]]


def _of_all_rounds(progress: Progress, before: int, rounds: int) -> Progress:
    """Report the progress of one of several equal rounds as a part of all of them."""
    return lambda done, total: progress(before * total + done, rounds * total)
