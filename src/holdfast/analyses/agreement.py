"""Agreement: do explanations rank first the features that people marked?"""

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
from holdfast.errors import HoldfastError, first_line
from holdfast.files import MEGABYTE, reading
from holdfast.prose import counted
from holdfast.ranking import Ranking
from holdfast.table import Cell, Estimate, Table


@dataclass(frozen=True)
class Marks:
    """Features that people marked in examples.

    >>> marks = Marks({"a7": {"x": frozenset({3, 5}), "y": frozenset({5}), "z": frozenset()}})
    >>> sorted(marks.majority("a7"))
    [5]

    Attributes:
        marks: ``marks[example][annotator]`` is the set of features that the annotator marked; it may be empty.
    """

    marks: Mapping[str, Mapping[str, frozenset[int]]]

    @classmethod
    def read(cls, path: Path | str) -> Marks:
        """Read marks from a file of JSON lines.

        A line is ``{"example": "a7", "annotator": "x", "features": [3, 5]}``. An annotator who saw an example and
        marked nothing has a line without features.

        Args:
            path: The file, in UTF-8.

        Raises:
            HoldfastError: The file cannot be read, a line is malformed or repeats an annotator, or there is no line.
        """
        marks: dict[str, dict[str, frozenset[int]]] = {}
        with reading(path, "the marks", 64 * MEGABYTE):
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                example, annotator = str(entry["example"]), str(entry["annotator"])
                features = frozenset(_feature(feature) for feature in entry["features"])
            except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
                raise HoldfastError(
                    f'line {number} of {path} is not {{"example": …, "annotator": …, "features": [whole numbers]}}: '
                    f"{first_line(error)}"
                ) from error
            if annotator in marks.setdefault(example, {}):
                raise HoldfastError(f"line {number} of {path}: {annotator} has marked {example} twice.")
            marks[example][annotator] = features
        if not marks:
            raise HoldfastError(f"{path} holds no marks.")
        return cls(marks)

    def majority(self, example: str) -> frozenset[int]:
        """Return the features of an example that at least half of its annotators marked."""
        annotators = self.marks[example].values()
        every = frozenset().union(*annotators)
        return frozenset(f for f in every if 2 * sum(f in marked for marked in annotators) >= len(annotators))

    def between_people(self, examples: Sequence[str] | None = None) -> float | None:
        """Return the agreement of annotators: the mean F1 of two annotators of the same example.

        F1 is 1 for two annotators who both marked nothing.

        Args:
            examples: Names of the examples. None: all of them.

        Returns:
            The mean over all pairs; None if no example has two annotators.
        """
        scores = [
            2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0
            for name in (self.marks if examples is None else examples)
            for a, b in itertools.combinations(self.marks[name].values(), 2)
        ]
        return sum(scores) / len(scores) if scores else None


@dataclass(frozen=True, eq=False)
class Agreement(Result):
    """Agreement of rankings with the features that people marked.

    Attributes:
        methods: Names of the rankings.
        precision: Precision at 1, 2, … K features, ``[methods, K, examples]``.
        average_precision: Average precision, ``[methods, examples]``.
        excluded: Names of examples that were left out, because no feature was marked by at least half of their
            annotators.
        between_people: The agreement of annotators of all examples among themselves, see ``Marks.between_people``.
        marked_nothing: How often an annotator of an example marked no feature.
    """

    methods: tuple[str, ...]
    precision: Tensor
    average_precision: Tensor
    excluded: tuple[str, ...]
    between_people: float | None
    marked_nothing: int

    def table(self) -> list[Row]:
        """Return one row for each ranking."""
        rows = []
        for m, (name, mean, low, high) in enumerate(zip(self.methods, *means(self.average_precision), strict=True)):
            at = {f"p@{k + 1}": float(precision.mean()) for k, precision in enumerate(self.precision[m])}
            row: Row = {"method": name, **at, "mAP": mean, "low": known(low), "high": known(high)}
            row |= {"examples": self.precision.shape[2], "excluded": len(self.excluded)}
            rows.append(row | {"F1 between people": self.between_people, "marked nothing": self.marked_nothing})
        return rows

    def draw(self, ax: Any) -> None:
        """Draw the mean average precision of each ranking with its interval."""
        bars(ax, list(self.methods), *means(self.average_precision), "mAP")
        ax.set_xlim(0, 1)


def agreement(rankings: Mapping[str, Ranking], examples: Sequence[str], marks: Marks, *, most: int = 5) -> Agreement:
    """Compare rankings with the features that people marked.

    A feature counts as marked if at least half of the annotators marked it. Precision at k divides by k even if fewer
    features are marked.

    Args:
        rankings: Rankings of the same cases, by name.
        examples: The name in ``marks`` of each case.
        marks: Features that people marked.
        most: The largest k of precision at k.

    Returns:
        The agreement of each ranking.

    Raises:
        HoldfastError: There is no ranking, an example has no marks, marks do not fit the rankings, or no feature is
            marked by at least half of the annotators of its example.
    """
    if not rankings or most < 1:
        raise HoldfastError("agreement needs at least one ranking and most >= 1.")
    examples = [str(name) for name in examples]
    missing = [name for name in examples if name not in marks.marks]
    if missing:
        raise HoldfastError(f"nobody marked {missing[0]!r} ({len(missing)} such examples).")
    marked = [marks.majority(name) for name in examples]
    used = [place for place, features in enumerate(marked) if features]
    if not used:
        raise HoldfastError("no example has a feature that at least half of its annotators marked.")
    precision, average = [], []
    for name, ranking in rankings.items():
        if len(ranking) != len(examples):
            raise HoldfastError(f"{name} ranks {len(ranking)} cases, {len(examples)} examples are named.")
        hits = _hits(name, ranking, examples, marked)[used]
        hits = torch.nn.functional.pad(hits, (0, max(0, most - hits.shape[1])))
        precision_at = hits.cumsum(1) / torch.arange(1, hits.shape[1] + 1)
        precision.append(precision_at[:, :most].T)
        average.append((precision_at * hits).sum(1) / hits.sum(1))
    excluded = tuple(name for name, features in zip(examples, marked, strict=True) if not features)
    nothing = sum(not features for name in examples for features in marks.marks[name].values())
    between = marks.between_people(examples)
    return Agreement(tuple(rankings), torch.stack(precision), torch.stack(average), excluded, between, nothing)


def _hits(name: str, ranking: Ranking, examples: Sequence[str], marked: list[frozenset[int]]) -> Tensor:
    """Return 1 where the feature at a place of the ranking is marked, 0 elsewhere, ``[examples, d]``."""
    order, count = ranking.order.cpu(), ranking.count.cpu()
    hits = torch.zeros(order.shape, dtype=torch.double)
    for row, features in enumerate(marked):
        outside = features - set(order[row, : count[row]].tolist())
        if outside:
            raise HoldfastError(
                f"{name}, example {examples[row]}: people marked feature {min(outside)}, which the case does not have."
            )
        hits[row] = torch.isin(order[row], torch.tensor(sorted(features) or [-1])).double()
    return hits


def _feature(feature: Any) -> int:
    """Return the number of a feature; raises ValueError for anything else."""
    if isinstance(feature, bool) or not isinstance(feature, int) or feature < 0:
        raise ValueError(f"{feature!r} is not the number of a feature")
    return feature


def compared_by_people(result: Agreement, main: str) -> Significance | None:
    """Compare a method with the others by precision at K and average precision.

    Args:
        result: The agreement of several methods.
        main: The method to compare with the others.

    Returns:
        The comparisons; None if ``main`` is not among the methods or is the only one.
    """
    if main not in result.methods or len(result.methods) < 2:
        return None
    scores = {f"p@{result.precision.shape[1]}": result.precision[:, -1], "mAP": result.average_precision}
    values = {criterion: dict(zip(result.methods, rows, strict=True)) for criterion, rows in scores.items()}
    return significance(values, main, dict.fromkeys(scores, True))


@dataclass(frozen=True)
class AgreementAnalysis(Analysis):
    """The agreement of all rankings with the features that people marked in the examples."""

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
        examples = counted(result.precision.shape[2], "example")
        note = (
            f"The share of the top 1, 2, … words that people marked, and mean average precision, on {examples} with "
            "95 % bootstrap intervals. The paper's values are those of other texts, which its own users marked."
        )
        first = Table("people", "Agreement with people", columns, tuple(rows), note)
        compared = compared_by_people(result, stored.main)
        return [first] if compared is None else [first, cls._pairs(compared, stored.main)]

    @classmethod
    def _pairs(cls, compared: Significance, main: str) -> Table:
        """Return the table of the gains of the main method over each other one."""
        by_pair = {(c.criterion, c.other): c for c in compared.comparisons}
        criteria, others = (list(dict.fromkeys(names)) for names in zip(*by_pair, strict=True))
        rows = []
        for other in others:
            row: list[Cell] = [other]
            for criterion in criteria:
                c = by_pair[criterion, other]
                row += [Estimate(c.gain, *c.interval), c.corrected]
            rows.append(tuple(row))
        columns = [name for criterion in criteria for name in (f"gain in {criterion}", f"{main} by {criterion}")]
        examples = counted(compared.comparisons[0].cases, "example")
        note = (
            f"By how much {main} agrees better with people than each method, in pairs over the same {examples}, with "
            "95 % bootstrap intervals. Verdicts are those of a paired t-test at 95 % after Holm's correction."
        )
        title = f"{main} against each method, by agreement with people"
        return Table("people-in-pairs", title, ("against", *columns), tuple(rows), note)

    @classmethod
    def figures(cls, result: Agreement) -> dict[str, Draw]:
        return {"Mean average precision": result.draw}
