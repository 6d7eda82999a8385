"""Reference values: how much Insertion and Deletion depend on the value that replaces a removed feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

import holdfast.published as published
from holdfast.analyses.analysis import Analysis, Draw, ExtraMeasure, Stored, Subject
from holdfast.analyses.intervals import Sampled, bootstraps
from holdfast.analyses.result import Result, Row, lines
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.removal import Deletion, Insertion
from holdfast.curve import SIZES, trace
from holdfast.errors import HoldfastError
from holdfast.ranking import Ranking
from holdfast.reference import RandomWords, Reference, Score, read_reference
from holdfast.settings import Count
from holdfast.table import Cell, Estimate, Table

REFERENCES: tuple[Reference, ...] = ("uniform", 0.0, 0.25, 0.5, 0.75, 1.0)
"""The paper's reference values."""


@dataclass(frozen=True, eq=False)
class ReferenceValues(Result):
    """Areas under Insertion and Deletion with several reference values.

    Attributes:
        methods: Names of the methods.
        references: Names of the reference values.
        areas: ``[methods, references, 2, B]``: Insertion, then Deletion. All cases share the draws of random
            references, so standard errors over cases do not include the error of the draws.
        draws: The number of draws of a random reference that are averaged; None: unknown.
    """

    methods: tuple[str, ...]
    references: tuple[str, ...]
    areas: Tensor
    draws: int | None = None

    def ranks(self) -> Tensor:
        """Return the rank of each method's mean area, ``[methods, references, 2]``; 1 is best, equal areas tie."""
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

    def draw(self, ax: Any, criterion: int = 0) -> None:
        """Draw the rank of every method over the references.

        Args:
            ax: Matplotlib axes.
            criterion: 0 for Insertion, 1 for Deletion.
        """
        lines(ax, self.methods, self.references, self.ranks()[..., criterion].tolist())
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
    """Measure Insertion and Deletion of every ranking with every reference.

    Args:
        cases: The cases of the rankings.
        rankings: By name: one ranking, or one for Insertion and one for Deletion.
        references: The reference values.
        sizes: The sizes of the relevant set.
        score: The score of the label to measure.
        draws: The number of draws of a random reference that are averaged.
        seed: Seed of the draws.
        progress: Called with (done, total).

    Returns:
        The areas ``[methods, references, 2, B]``.

    Raises:
        HoldfastError: There is no ranking or reference, or a reference occurs twice.
    """
    if not rankings or not references:
        raise HoldfastError("name at least one ranking and one reference.")
    read = [read_reference(reference) for reference in references]
    names = [reference_name(reference) for reference in read]
    if len(set(names)) != len(names):
        raise HoldfastError(f"a reference is named twice: {', '.join(names)}.")
    areas, total = [], len(rankings) * len(references)
    for name, own in rankings.items():
        both = own if isinstance(own, tuple) else (own, own)
        if len(both) != 2:
            raise HoldfastError(f"{name} must be one ranking, or one for Insertion and one for Deletion.")
        for reference in read:
            judges = Insertion(reference, score, draws, seed), Deletion(reference, score, draws, seed)
            pair = zip(both, judges, strict=True)
            areas.append(torch.stack([trace(cases, ranking, judge, sizes).auc() for ranking, judge in pair]))
            if progress is not None:
                progress(len(areas), total)
    stacked = torch.stack(areas).reshape(len(rankings), len(read), 2, len(cases)).cpu()
    return ReferenceValues(tuple(rankings), tuple(names), stacked, draws)


def reference_name(reference: Reference) -> str:
    """Return the name of a reference value in tables."""
    value = read_reference(reference)
    if isinstance(value, RandomWords):
        return "words"
    return value if isinstance(value, str) else f"{value!r}".removesuffix(".0")


@dataclass(frozen=True)
class ReferenceAnalysis(Analysis):
    """Insertion and Deletion with several reference values.

    Attributes:
        values: The reference values.
        score: The score of the label to measure.
        draws: The number of draws of a random reference that are averaged.
        seed: Seed of the draws.
    """

    values: tuple[Reference, ...] = REFERENCES
    score: Score = "logit"
    draws: Count = 10
    seed: int = 0
    name: ClassVar[str] = "references"
    title: ClassVar[str] = "Insertion and Deletion with other reference values"
    subject: ClassVar[Subject] = Subject.STORED

    def measures(self) -> list[ExtraMeasure]:
        extra = []
        for value in self.values:
            name = reference_name(value)
            settings = (value, self.score, self.draws, self.seed)
            extra += [
                ExtraMeasure(f"{kind.__name__}, reference {name}", kind(*settings), name)
                for kind in (Insertion, Deletion)
            ]
        return extra

    @classmethod
    def read(cls, stored: Stored) -> ReferenceValues | None:
        names, areas = stored.variant_areas(cls.name, "table")
        return ReferenceValues(tuple(areas), tuple(names), torch.stack(list(areas.values()))) if areas else None

    @classmethod
    def tables(cls, result: ReferenceValues, stored: Stored) -> list[Table]:
        mean = result.ranks().double().mean(1)
        ranks = tuple((method, float(mean[m, 0]), float(mean[m, 1])) for m, method in enumerate(result.methods))
        columns = ("method", "Insertion ↓", "Deletion ↓")
        return [
            Table("ranks", "Mean rank over references", columns, ranks, "1 is best."),
            *(cls._areas(result, which, stored.published) for which in (0, 1)),
        ]

    @classmethod
    def _areas(cls, result: ReferenceValues, which: int, data: str | None) -> Table:
        criterion = ("Insertion", "Deletion")[which]
        rows: list[tuple[Cell, ...]] = []
        for r, reference in enumerate(result.references):
            areas = [result.areas[m, r, which] for m in range(len(result.methods))]
            means = [float(area.double().mean()) for area in areas]
            best = (max, min)[which](means)
            ends = bootstraps([Sampled(area) for area in areas])
            ours = [Estimate(m, *between, m == best) for m, between in zip(means, ends, strict=True)]
            rows.append((reference, "measured", *ours))
            if data:
                paper = (published.reference(data, criterion, reference, method) for method in result.methods)
                rows.append((reference, "paper", *paper))
        return Table(
            f"references-{criterion.lower()}",
            f"{criterion} with other references",
            ("reference", "source", *result.methods),
            tuple(rows),
            f"{('Higher', 'Lower')[which]} is better; the best measured value in bold.",
        )

    @classmethod
    def figures(cls, result: ReferenceValues) -> dict[str, Draw]:
        return {
            "Rank by Insertion": lambda axes: result.draw(axes, 0),
            "Rank by Deletion": lambda axes: result.draw(axes, 1),
        }
