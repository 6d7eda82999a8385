"""Substitution: do real words change the decision, like the smallest change of word vectors?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from holdfast.analyses.analysis import Analysis, Computed, Stored, Subject, Vocabulary
from holdfast.analyses.result import Result, Row, bars, estimate, means
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.prose import counted
from holdfast.ranking import Ranking
from holdfast.reference import FixedReference
from holdfast.robustness import Judge, Robustness
from holdfast.settings import Count
from holdfast.table import Cell, Table
from holdfast.text import by_word, substitute


@dataclass(frozen=True, eq=False)
class Substitutions(Result):
    """Whether decisions change when the top words change. All attributes are by method.

    Attributes:
        radius: The radius of the top words, ``[B]``.
        changed: Whether the first real word in the direction of each change changes the decision too, bool ``[B]``.
        rounded: Whether rounding each changed vector to the nearest word changes the decision, bool ``[B]``.
        by_chance: The share of draws in which random words change the decision, ``[B]``.
    """

    radius: Mapping[str, Tensor]
    changed: Mapping[str, Tensor]
    rounded: Mapping[str, Tensor]
    by_chance: Mapping[str, Tensor]

    def table(self) -> list[Row]:
        return [
            {
                "method": method,
                "a change of vectors": float(torch.isfinite(radius).double().mean()),
                "real words": float(self.changed[method].double().mean()),
                "random words": float(self.by_chance[method].double().mean()),
                "rounding": float(self.rounded[method].double().mean()),
            }
            for method, radius in self.radius.items()
        ]

    def draw(self, ax: Any) -> None:
        changed = torch.stack([value.double() for value in self.changed.values()])
        bars(ax, list(self.changed), *means(changed), "decisions that real words change")


@dataclass(frozen=True)
class SubstitutionAnalysis(Analysis):
    """Whether real words in place of the top ones change decisions. For texts.

    Attributes:
        top: The number of top words to replace.
        judge: The robustness method that finds the smallest change of their vectors.
        vectors: The vectors of all words; set from the model.
    """

    top: Count = 5
    judge: Robustness = field(default_factory=Judge.quick)
    vectors: FixedReference | None = field(default=None, metadata={"from_data": True})
    name: ClassVar[str] = "substitution"
    title: ClassVar[str] = "Real words in place of the top words"
    subject: ClassVar[Subject] = Subject.RANKINGS
    together: ClassVar[bool] = True
    uses_words: ClassVar[bool] = True

    def with_vocabulary(self, vocabulary: Vocabulary | None) -> SubstitutionAnalysis:
        if vocabulary is None:
            raise HoldfastError("analyses.substitution is about words: leave it out for inputs that are no texts.")
        return replace(self, vectors=vocabulary.vectors)

    def compute(self, cases: Cases, subject: Explainer | Ranking, progress: Progress | None) -> Computed:
        assert isinstance(subject, Ranking)
        assert self.vectors is not None
        radii = self.judge(cases, subject.top([self.top]), progress=progress)
        new = substitute(cases, radii.witness, self.vectors.values)
        tensors = {"radius": radii.radius, "rows": new.rows.int()}
        tensors |= {"changed": new.changed, "rounded": new.rounded, "by_chance": new.by_chance}
        owner = cases.features.ids[:, :, 0].expand(len(cases), -1).int()
        arrays = {name: value[:, 0].cpu().numpy() for name, value in tensors.items()}
        return Computed({"owner": owner.cpu().numpy()} | arrays, radii.notes)

    def rows(self, cases: Cases, explainer: Explainer) -> int | None:
        return None if self.judge.rows is None else self.judge.rows * len(cases)

    @classmethod
    def read(cls, stored: Stored) -> Substitutions | None:
        blocks = {
            method: of
            for method, of in stored.arrays(cls.name, "relevant").items()
            if method in stored.methods("table", "ablation")
        }
        if not blocks:
            return None
        columns = {
            name: {m: torch.cat([torch.from_numpy(one[name]) for one in of]) for m, of in blocks.items()}
            for name in ("radius", "changed", "rounded", "by_chance")
        }
        return Substitutions(**columns)

    @classmethod
    def replacements(cls, arrays: Mapping[str, np.ndarray], vocabulary: Sequence[str]) -> list[dict[int, str]]:
        both = zip(arrays["rows"].tolist(), arrays["owner"].tolist(), strict=True)
        return [by_word(rows, owner, vocabulary) for rows, owner in both]

    @classmethod
    def tables(cls, result: Substitutions, stored: Stored) -> list[Table]:
        rows: list[tuple[Cell, ...]] = []
        for method, radius in result.radius.items():
            changed = torch.isfinite(radius)
            shares = (changed, result.changed[method], result.by_chance[method], result.rounded[method])
            finite = radius[changed].double()
            mean = float(finite.mean()) if len(finite) else None
            rows.append((method, *(estimate(share.double()) for share in shares), mean))
        columns = ("method", "a change of vectors", "real words", "random words", "rounding", "mean radius")
        decisions = counted(len(next(iter(result.radius.values()))), "decision")
        note = (
            f"The share of {decisions} that change when only the top words change. A change of vectors: the "
            "smallest one found. Real words: the first other word that each vector meets in the direction of that "
            "change, however far. Random words: any in their place, ten draws. Rounding: each changed vector becomes "
            "the nearest word, which is mostly its own."
        )
        return [Table("substitution", cls.title, columns, tuple(rows), note)]
