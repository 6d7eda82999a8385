"""The result of ``compare``: curves, areas, tests, and what they allow to say."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from holdfast.analyses.intervals import bootstrap
from holdfast.analyses.result import known
from holdfast.analyses.significance import Significance
from holdfast.criteria.criterion import Criterion
from holdfast.curve import Curve
from holdfast.errors import HoldfastError
from holdfast.evaluation.verdicts import how_tested, verdict
from holdfast.palette import Style, styles
from holdfast.prose import counted, visible
from holdfast.ranking import Ranking
from holdfast.table import Cell, Estimate, Table, text

if TYPE_CHECKING:
    from holdfast.figures import Plot  # imports matplotlib

Part = Literal["areas", "tests", "curves"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Explanations of the same cases, judged by several criteria.

    Attributes:
        methods: Names of the methods, in the order given.
        main: The method that was tested against all others; None if every pair was tested.
        criteria: The criteria by name.
        rankings: The ranking of each method.
        curves: ``curves[criterion][method]``.
        areas: ``areas[criterion][method]``: the area under each curve, ``[B]``, censored points at the largest change
            that the bounds allow; with one size the value itself. NaN where it is unknown.
        tests: Paired tests, corrected together; None for one method alone.
        notes: Sentences of the rankings that the reader needs.
    """

    methods: tuple[str, ...]
    main: str | None
    criteria: Mapping[str, Criterion]
    rankings: Mapping[str, Ranking]
    curves: Mapping[str, Mapping[str, Curve]]
    areas: Mapping[str, Mapping[str, Tensor]]
    tests: Significance | None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.rankings.values())))

    @property
    def verdicts(self) -> dict[str, str]:
        """By criterion: one sentence on the differences that hold after Holm's correction."""
        return self.said({name: name for name in self.methods})

    def said(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return the verdicts with other names of the methods.

        Args:
            names: What each method is called.
        """
        return {criterion: verdict(criterion, self.tests, names) for criterion in self.criteria}

    @property
    def styles(self) -> dict[str, Style]:
        """The style of each method in figures; the main method has the first one."""
        return styles(self.methods if self.main is None else (self.main, *self.methods))

    def shared(self, criterion: str) -> Tensor:
        """Return the cases in which every method has an area, bool ``[B]``: means are over these."""
        return torch.stack([*self.areas[criterion].values()]).isfinite().all(0)

    def table(self) -> list[dict[str, Any]]:
        """Return one row for each criterion and method: the mean area with its 95 % interval, over shared cases."""
        return [self._row(criterion, method) for criterion in self.criteria for method in self.methods]

    def to_frame(self, of: Part = "areas") -> Any:
        """Return a part of the result as a data frame of pandas.

        Args:
            of: ``"areas"``: one row for each criterion and method; ``"tests"``: one for each pair of methods and
                criterion; ``"curves"``: one for each point of a curve.

        Raises:
            HoldfastError: pandas is not installed, or there is no such part.
        """
        rows = {"areas": self.table, "tests": self._test_rows, "curves": self._points}
        if of not in rows:
            raise HoldfastError(f"there is no part {of!r} of an evaluation: use one of {', '.join(rows)}.")
        try:
            pandas = import_module("pandas")  # optional, and slow to import
        except ImportError as error:
            raise HoldfastError("a data frame requires pandas: pip install pandas.") from error
        return pandas.DataFrame(rows[of]())

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the rankings as numbers, texts, lists and dicts that JSON can hold. Unknown is None."""
        return {
            "cases": len(self),
            "methods": list(self.methods),
            "main": self.main,
            "criteria": {name: repr(criterion) for name, criterion in self.criteria.items()},
            "areas": self.table(),
            "tests": self._test_rows(),
            "curves": self._points(),
            "verdicts": self.verdicts,
            "notes": list(self.notes),
        }

    def plot(self) -> Plot:
        """Draw the mean curve of every method by every criterion, with bands of one standard error."""
        from holdfast.evaluation.figure import draw, short_name  # imports matplotlib

        verdicts = self.said({name: short_name(name) for name in self.methods})
        return draw(self.curves, self.criteria, verdicts, self.styles, self.main)

    def __repr__(self) -> str:
        return "\n".join([self._title(), "", self._summary().plain(), "", *map(visible, self._sentences())])

    def _repr_html_(self) -> str:
        table = self._summary()
        head = "".join(f"<th>{_html(column)}</th>" for column in table.columns)
        rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in table.rows)
        sentences = "".join(f"<p>{_html(sentence)}</p>" for sentence in self._sentences())
        picture = base64.b64encode(self.plot()._repr_png_()).decode()
        return (
            f"<p><b>{_html(self._title())}</b></p>"
            '<div style="overflow-x: auto">'
            f"<table><tr>{head}</tr>{rows}</table></div>{sentences}"
            f'<img style="max-width: 100%" alt="Mean curves of all methods" src="data:image/png;base64,{picture}">'
        )

    # ------------------------------------------------------------------ parts

    def _row(self, criterion: str, method: str) -> dict[str, Any]:
        shared = self.shared(criterion)
        values = self.areas[criterion][method][shared]
        low, high = bootstrap(values)
        return {
            "criterion": criterion,
            "method": method,
            "area": known(values.mean()),
            "low": known(low),
            "high": known(high),
            "higher is better": self.criteria[criterion].higher_is_better,
            "cases": int(shared.sum()),
            "excluded": int((~shared).sum()),
        }

    def _test_rows(self) -> list[dict[str, Any]]:
        return [] if self.tests is None else self.tests.table()

    def _points(self) -> list[dict[str, Any]]:
        rows = []
        for criterion, by_method in self.curves.items():
            for method, curve in by_method.items():
                means, missing = curve.drawable().nanmean(0), curve.censored.sum(0)
                for size, mean, censored in zip(curve.sizes.tolist(), means, missing, strict=True):
                    row = {"criterion": criterion, "method": method, "size": size}
                    rows.append({**row, "mean": known(mean), "censored": int(censored)})
        return rows

    def _title(self) -> str:
        kind = "values" if len(self._any_curve().sizes) == 1 else "areas under the curves"
        methods, cases = counted(len(self.methods), "method"), counted(len(self), "case")
        return f"{methods} on {cases}: {kind} (mean, * best mean)"

    def _any_curve(self) -> Curve:
        return next(iter(next(iter(self.curves.values())).values()))

    def _summary(self) -> Table:
        """Return the means of all methods: one column for each criterion, the best one marked."""
        columns = [(name, one.higher_is_better, self._means(name)) for name, one in self.criteria.items()]
        best = {name: (max if higher else min)(means.values(), default=None) for name, higher, means in columns}
        rows = []
        for method in self.methods:
            cells: list[Cell] = []
            for name, _, means in columns:
                value = means.get(method)
                cells.append(None if value is None else Estimate(value, best=value == best[name]))
            rows.append((method, *cells))
        heads = ("method", *(f"{name} {'↑' if higher else '↓'}" for name, higher, _ in columns))
        return Table("areas", "Areas", heads, tuple(tuple(map(_starred, row)) for row in rows))

    def _means(self, criterion: str) -> dict[str, float]:
        shared = self.shared(criterion)
        means = {name: known(values[shared].mean()) for name, values in self.areas[criterion].items()}
        return {name: value for name, value in means.items() if value is not None}

    def _sentences(self) -> list[str]:
        """Return the verdicts, how they were tested, cases that were left out, and notes."""
        said = [f"{name}: {sentence}" for name, sentence in self.verdicts.items()] if self.tests is not None else []
        left_out = {name: int((~self.shared(name)).sum()) for name in self.criteria}
        gaps = [
            f"{name}: {counted(count, 'case')} without an area by some method left out of the means."
            for name, count in left_out.items()
            if count
        ]
        return [*said, *how_tested(self.tests, len(self)), *gaps, *self.notes]


def _starred(cell: Cell) -> Cell:
    """Mark the best mean of a column by a star, which text shows as well."""
    return f"{text(cell)} *" if isinstance(cell, Estimate) and cell.best else cell


def _html(words: str) -> str:
    return escape(visible(words))


def _html_cell(cell: Cell) -> str:
    return f"<td>{_html(text(cell))}</td>"
