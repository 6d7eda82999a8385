"""Agreement: do explanations name the features that people mark?"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

import holdfast.published as published
from holdfast.analyses.analysis import Analysis, Draw, Stored, Subject
from holdfast.analyses.result import Result, Row, bars, estimate, known, means
from holdfast.analyses.significance import Significance, significance
from holdfast.errors import HoldfastError
from holdfast.ranking import Ranking
from holdfast.table import Cell, Estimate, Table


@dataclass(frozen=True)
class Marks:
    """What people marked: ``marks[example][annotator]`` is the set of features.

    From JSON lines ``{"example": "a7", "annotator": "x", "features": [3, 5]}``; annotators who mark nothing count, as
    people to whom nothing stood out.
    """

    marks: Mapping[str, Mapping[str, frozenset[int]]]

    @classmethod
    def read(cls, path: Path | str) -> Marks:
        """Marks from a file of JSON lines; every line that is not one is named."""
        marks: dict[str, dict[str, frozenset[int]]] = {}
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise HoldfastError(f"cannot read the marks {path}: {error}.") from error
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                example, annotator = str(entry["example"]), str(entry["annotator"])
                features = frozenset(_whole(feature) for feature in entry["features"])
            except (ValueError, KeyError, TypeError) as error:
                raise HoldfastError(
                    f'line {number} of {path} is not {{"example": …, "annotator": …, "features": [whole numbers]}}: '
                    f"{error}."
                ) from error
            if annotator in marks.setdefault(example, {}):
                raise HoldfastError(f"line {number} of {path}: {annotator} has marked {example} twice.")
            marks[example][annotator] = features
        if not marks:
            raise HoldfastError(f"{path} holds no marks.")
        return cls(marks)

    def majority(self, example: str) -> frozenset[int]:
        """Features that at least half of the annotators marked: of two who disagree, both count."""
        by = self.marks[example]
        every = frozenset().union(*by.values())
        return frozenset(f for f in every if 2 * sum(f in marked for marked in by.values()) >= len(by))

    def between_people(self, examples: Sequence[str] | None = None) -> float | None:
        """Mean F1 of the marks of two annotators of one example, over all such pairs; None without any.

        Two who both marked nothing agree.
        """
        scores = [
            2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0
            for by in (self.marks[name] for name in (self.marks if examples is None else examples))
            for a, b in itertools.combinations(by.values(), 2)
        ]
        return sum(scores) / len(scores) if scores else None


@dataclass(frozen=True, eq=False)
class Agreement(Result):
    """``precision [methods, K, examples]`` at 1, 2, … K features, and average precision ``[methods, examples]``.

    ``excluded`` examples have no feature that at least half of their annotators marked. ``between_people`` is how well
    annotators of these examples agree among themselves (mean pairwise F1), ``marked_nothing`` how often one of them
    marked no feature at all.
    """

    methods: tuple[str, ...]
    precision: Tensor
    average_precision: Tensor
    excluded: tuple[str, ...]
    between_people: float | None
    marked_nothing: int

    def table(self) -> list[Row]:
        rows = []
        for m, (name, mean, low, high) in enumerate(zip(self.methods, *means(self.average_precision), strict=True)):
            at = {f"p@{k + 1}": float(precision.mean()) for k, precision in enumerate(self.precision[m])}
            row: Row = {"method": name, **at, "mAP": mean, "low": known(low), "high": known(high)}
            row |= {"examples": self.precision.shape[2], "excluded": len(self.excluded)}
            rows.append(row | {"F1 between people": self.between_people, "marked nothing": self.marked_nothing})
        return rows

    def plot(self, ax: Any) -> None:
        bars(ax, list(self.methods), *means(self.average_precision), "mAP")
        ax.set_xlim(0, 1)


def agreement(rankings: Mapping[str, Ranking], examples: Sequence[str], marks: Marks, *, most: int = 5) -> Agreement:
    """Hold every ranking against the majority's marks; ``examples`` names the case of each row of the rankings.

    Precision at k counts k features even where fewer are marked. A ranking has no ties: its explainer settled them.
    """
    if not rankings or most < 1:
        raise HoldfastError("agreement needs at least one ranking and most >= 1.")
    examples = [str(name) for name in examples]
    missing = [name for name in examples if name not in marks.marks]
    if missing:
        raise HoldfastError(f"nobody marked {missing[0]!r} ({len(missing)} such examples).")
    wanted = [marks.majority(name) for name in examples]
    kept = [place for place, features in enumerate(wanted) if features]
    if not kept:
        raise HoldfastError("no example has a feature that at least half of its annotators marked.")
    precision, average = [], []
    for name, ranking in rankings.items():
        if len(ranking) != len(examples):
            raise HoldfastError(f"{name} ranks {len(ranking)} cases, {len(examples)} examples are named.")
        hits = _hits(name, ranking, examples, wanted)[kept]
        hits = torch.nn.functional.pad(hits, (0, max(0, most - hits.shape[1])))
        upto = hits.cumsum(1) / torch.arange(1, hits.shape[1] + 1)
        precision.append(upto[:, :most].T)
        average.append((upto * hits).sum(1) / hits.sum(1))
    excluded = tuple(name for name, features in zip(examples, wanted, strict=True) if not features)
    nothing = sum(not marked for name in examples for marked in marks.marks[name].values())
    between = marks.between_people(examples)
    return Agreement(tuple(rankings), torch.stack(precision), torch.stack(average), excluded, between, nothing)


def _hits(name: str, ranking: Ranking, examples: Sequence[str], wanted: list[frozenset[int]]) -> Tensor:
    """Whether the feature at each place is marked, ``[examples, d]`` of zeros and ones."""
    order, count = ranking.order.cpu(), ranking.count.cpu()
    hits = torch.zeros(order.shape, dtype=torch.double)
    for row, features in enumerate(wanted):
        outside = features - set(order[row, : count[row]].tolist())
        if outside:
            raise HoldfastError(
                f"{name}, example {examples[row]}: people marked feature {min(outside)}, which the case has not."
            )
        hits[row] = torch.isin(order[row], torch.tensor(sorted(features) or [-1])).double()
    return hits


def _whole(feature: Any) -> int:
    if isinstance(feature, bool) or not isinstance(feature, int) or feature < 0:
        raise ValueError(f"{feature!r} is not the number of a feature")
    return feature


def compared_by_people(result: Agreement, main: str) -> Significance | None:
    """Compare a method with the others by what people marked; None if there is nothing to compare."""
    if main not in result.methods or len(result.methods) < 2:
        return None
    by = {f"p@{result.precision.shape[1]}": result.precision[:, -1], "mAP": result.average_precision}
    values = {criterion: dict(zip(result.methods, scores, strict=True)) for criterion, scores in by.items()}
    return significance(values, main, dict.fromkeys(by, True))


@dataclass(frozen=True)
class AgreementAnalysis(Analysis):
    """The rankings of all methods against what people marked in the examples."""

    name: ClassVar[str] = "agreement"
    title: ClassVar[str] = "Agreement with people"
    subject: ClassVar[Subject] = Subject.STORED
    automatic: ClassVar[bool] = True

    @classmethod
    def read(cls, stored: Stored) -> Agreement | None:
        if not stored.marks:
            return None
        rankings = stored.rankings("table") | stored.rankings("probe")
        return agreement(rankings, stored.example_names, Marks(stored.marks)) if rankings else None

    @classmethod
    def tables(cls, result: Agreement, stored: Stored) -> list[Table]:
        rows: list[tuple[Cell, ...]] = []
        count = result.precision.shape[1]
        for m, method in enumerate(result.methods):
            values = [*result.precision[m], result.average_precision[m]]
            paper = published.people(method)
            rows.append((method, *map(estimate, values), *((paper[4], paper[5]) if paper else (None, None))))
        columns = ("method", *(f"p@{k + 1}" for k in range(count)), "mAP", "paper's p@5", "paper's mAP")
        note = (
            "The share of the top 1, 2, … words that people marked, and mean average precision, on "
            f"{result.precision.shape[2]} examples with 95 % bootstrap intervals. The paper's are of other texts, "
            "marked by its own users."
        )
        first = Table("people", "Agreement with people", columns, tuple(rows), note)
        compared = compared_by_people(result, stored.main)
        return [first] if compared is None else [first, cls._pairs(compared, stored.main)]

    @classmethod
    def _pairs(cls, compared: Significance, main: str) -> Table:
        by_pair = {(c.criterion, c.other): c for c in compared.comparisons}
        criteria, others = (list(dict.fromkeys(names)) for names in zip(*by_pair, strict=True))
        rows = []
        for other in others:
            row: list[Cell] = [other]
            for criterion in criteria:
                c = by_pair[criterion, other]
                row += [Estimate(c.gain, *c.interval), c.verdict]
            rows.append(tuple(row))
        columns = [name for criterion in criteria for name in (f"gain in {criterion}", f"{main} by {criterion}")]
        note = (
            f"How much more of what {main} names people marked, in pairs over the same {compared.comparisons[0].cases} "
            "examples, with 95 % bootstrap intervals. Verdicts are those of a paired t-test at 95 %."
        )
        title = f"{main} against each method, by agreement with people"
        return Table("people-in-pairs", title, ("against", *columns), tuple(rows), note)

    @classmethod
    def figures(cls, result: Agreement) -> dict[str, Draw]:
        return {"Mean average precision": result.plot}
