"""How much Insertion and Deletion depend on what stands in for a feature that is taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast.analyses.result import Result, Row, plain
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.removal import Deletion, Insertion
from holdfast.curve import SIZES, trace
from holdfast.errors import HoldfastError
from holdfast.ranking import Ranking
from holdfast.reference import Reference, Score, read_reference

REFERENCES: tuple[Reference, ...] = ("uniform", 0.0, 0.25, 0.5, 0.75, 1.0)
"""The paper's."""


@dataclass(frozen=True, eq=False)
class ReferenceValues(Result):
    """Areas ``[methods, references, 2, B]``: Insertion, then Deletion, of every case.

    The standard error is over cases; random references are the same draws for all of them, and that error is not in it.
    """

    methods: tuple[str, ...]
    references: tuple[str, ...]
    areas: Tensor
    draws: int

    def ranks(self) -> Tensor:
        """The place of each method's mean area among all, ``[methods, references, 2]``; 1 is best, equals share one."""
        mean = self.areas.mean(3)
        better = torch.stack([mean[..., 0], -mean[..., 1]], -1)
        return 1 + (better[None] > better[:, None]).sum(1)

    def table(self) -> list[Row]:
        ranks, mean = self.ranks(), self.areas.mean(3)
        spread = self.areas.std(3) / self.areas.shape[3] ** 0.5 if self.areas.shape[3] > 1 else None
        return [
            {
                "reference": reference,
                "criterion": criterion,
                "method": method,
                "area": float(mean[m, r, c]),
                "standard error": None if spread is None else float(spread[m, r, c]),
                "rank": int(ranks[m, r, c]),
                "cases": self.areas.shape[3],
                "draws": self.draws,
            }
            for r, reference in enumerate(self.references)
            for c, criterion in enumerate(("Insertion", "Deletion"))
            for m, method in enumerate(self.methods)
        ]

    def plot(self, ax: Any, criterion: int = 0) -> None:
        """The place of every method along the references (the paper's ranking figure): 0 Insertion, 1 Deletion."""
        for method, places in zip(self.methods, self.ranks()[..., criterion].tolist(), strict=True):
            ax.plot(self.references, places, marker="o", label=plain(method))
        ax.set_yticks(range(1, len(self.methods) + 1))
        ax.invert_yaxis()
        ax.set_xlabel("reference value")
        ax.set_ylabel(f"rank by {('Insertion', 'Deletion')[criterion]}")
        ax.legend(fontsize="small")


def reference_values(
    cases: Cases,
    rankings: Mapping[str, Ranking | tuple[Ranking, Ranking]],
    references: Sequence[Reference] = REFERENCES,
    *,
    sizes: Sequence[float] = SIZES,
    score: Score = "logit",
    draws: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> ReferenceValues:
    """Insertion and Deletion of every ranking under every reference.

    A pair of rankings is one for Insertion and one for Deletion, as the paper's methods have (S̄r and Sr).
    """
    if not rankings or not references:
        raise HoldfastError("name at least one ranking and one reference.")
    read = [read_reference(reference) for reference in references]
    names = [reference if isinstance(reference, str) else f"{reference!r}".removesuffix(".0") for reference in read]
    if len(set(names)) != len(names):
        raise HoldfastError(f"a reference is named twice: {', '.join(names)}.")
    areas, total = [], len(rankings) * len(references)
    for name, given in rankings.items():
        both = given if isinstance(given, tuple) else (given, given)
        if len(both) != 2:
            raise HoldfastError(f"{name} must be one ranking, or one for Insertion and one for Deletion.")
        for reference in read:
            judges = Insertion(reference, score, draws, seed), Deletion(reference, score, draws, seed)
            pair = zip(both, judges, strict=True)
            areas.append(torch.stack([trace(cases, ranking, judge, sizes).auc() for ranking, judge in pair]))
            if progress is not None:
                progress(len(areas), total)
    found = torch.stack(areas).reshape(len(rankings), len(read), 2, len(cases)).cpu()
    return ReferenceValues(tuple(rankings), tuple(names), found, draws)
