"""Rows of tables: a model of trees decides, exact radii, and changes that are read aloud."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from holdfast.as_model import as_model
from holdfast.cases import AskableModel, Cases
from holdfast.columns import Category, Columns
from holdfast.data import adult, adult_trees
from holdfast.errors import HoldfastError, unknown_name
from holdfast.explanation import Explanation
from holdfast.features import Features
from holdfast.figures import Plot
from holdfast.files import shown
from holdfast.modalities.bars import bars_figure
from holdfast.modalities.modality import Modality, Subject, radius_facts
from holdfast.modalities.rows import changed, described, plain_cells
from holdfast.modalities.shown import Shown
from holdfast.modalities.source import RowSource, Source
from holdfast.model_files import PICKLES, is_own, load_model
from holdfast.models.trees import trees
from holdfast.robustness import Judge, Radii
from holdfast.table import Table
from holdfast.text import Sentences, TextModel

_EMBEDDED = "adult-trees"


class TableModality(Modality):
    """Rows of tables. Features are columns.

    Three columns are relevant by default: what a sentence holds, and what a reader keeps in mind. The columns that the
    nearest change moves would not do, because it moves one column in most rows of Adult, and then the question what the
    others can do has an easy answer.
    """

    name: ClassVar[str] = "table"
    explainer: ClassVar[str] = "greedy"
    top: ClassVar[float | int] = 3
    ranks_all: ClassVar[bool] = True
    default_features: ClassVar[str] = "columns"
    unit: ClassVar[str] = "1 is one scale of a column, such as its standard deviation, or another category"
    template: ClassVar[str] = "row.html"
    marks: ClassVar[str] = (
        "Behind an arrow: the value after the smallest change of the relevant columns, or of all others, and by how "
        "many scales the column changes. Bars have that length; another category counts as 1."
    )
    legend: ClassVar[str] = (
        f"The columns of a row, the most relevant first by every method; the top {{top}} are above the line. {marks}"
    )

    def accepts(self, source: Source) -> bool:
        return source.rows is not None

    # ------------------------------------------------------------------ reading

    def read(self, source: Source) -> Subject:
        rows = source.rows
        assert rows is not None
        self._check(source, rows)
        columns = _with_changes(_columns(rows), rows)
        model = _model(source, columns, rows)
        x = _encoded(columns, rows)
        name = "Adult, embedded" if rows.table is None else shown(rows.table)
        assert rows.row is not None
        return Subject(self, model, x, rows.row, f"row {rows.row} of {name}", columns=columns)

    @staticmethod
    def _check(source: Source, rows: RowSource) -> None:
        """Refuse options that do not go together, before a file is opened."""
        if rows.row is None:
            raise HoldfastError(f"{rows.named[0]} is about a row of a table: name the row with --row, from 0.")
        if rows.row < 0:
            raise HoldfastError(f"--row must be the number of a row, counted from 0, got {rows.row}.")
        if source.resize or source.device != "cpu":
            option = "--resize" if source.resize else f"--device {source.device}"
            raise HoldfastError(f"{option} is not for tables, whose trees compute on the CPU: leave it out.")
        if rows.table is not None and source.model is None:
            raise HoldfastError("--table needs the trees that classify its rows: name their file with --model.")
        if rows.table is None and rows.label_column is not None:
            raise HoldfastError("--label-column is about the file of --table: leave it out for the embedded table.")
        if rows.classes and source.model in (None, _EMBEDDED):
            raise HoldfastError("the embedded trees have names of classes: leave --classes out.")

    def features(
        self, text: str | None, x: Tensor, sentences: Sentences | None = None, columns: Columns | None = None
    ) -> Features:
        if text not in (None, self.default_features):
            raise HoldfastError(f"features of tables must be columns, got {text!r}.")
        assert columns is not None
        return columns.features()

    def judge(self, p: float, seed: int) -> Judge:
        """Return the judge, which hands trees over to ``ExactTrees``."""
        return Judge(p, seed=seed)

    def explained(self, subject: Subject, cases: Cases, explanation: Explanation) -> Explanation:
        if subject.columns is None:  # numbers without a table
            return replace(explanation, cells=plain_cells(explanation))
        return described(explanation, subject.columns, subject.model)

    # ------------------------------------------------------------------ showing

    def facts(self, explanation: Explanation) -> list[tuple[str, str]]:
        return [*explanation.extra, ("measured by", explanation.judge)]

    def table(self, explanation: Explanation) -> Table:
        marks = [("●" if cell.rank <= explanation.size else "") if cell.rank else "fixed" for cell in explanation.cells]
        rows = tuple(
            (cell.rank, mark, cell.title, cell.text, cell.after_text, cell.amount_text)
            for cell, mark in zip(explanation.cells, marks, strict=True)
        )
        note = "● relevant: changed when only these move. The others are changed when these are held."
        return Table("columns", "Columns", ("rank", "", "column", "value", "becomes", "by"), rows, note)

    def plain(self, explanation: Explanation) -> dict[str, Any]:
        return {"columns": [cell.plain for cell in explanation.cells]}

    def changed(self, subject: Subject, cases: Cases, radii: Radii) -> list[tuple[str, str]]:
        assert subject.columns is not None
        new, columns, classes = int(radii.new_class[0, 0]), subject.columns, subject.model.classes
        if new < 0:
            return []
        changes = changed(columns, subject.model, cases.x[0], radii.witness[0, 0], new)
        return [("in words", columns.sentence(changes, classes[int(cases.label[0])], classes[new]))]

    def figure(self, explanations: Sequence[Explanation], title: str) -> Plot:
        """Draw one panel for each explanation: the columns with their values, and a bar for each change."""
        return bars_figure(explanations, title)

    def shown(self, explanation: Explanation, title: str) -> Shown:
        cells = explanation.cells or plain_cells(explanation)
        return Shown(title, (*radius_facts(explanation), *explanation.extra), cells=cells, top=explanation.size)


def _columns(rows: RowSource) -> Columns:
    if rows.columns is not None:
        columns = Columns.load(rows.columns)
        if rows.label_column in columns.names:
            raise HoldfastError(f"--columns has the column of the class {rows.label_column!r}: leave it out there.")
        return columns
    if rows.table is None:
        return adult().columns
    return Columns.read_csv(rows.table, without=[rows.label_column] if rows.label_column else [])


def _with_changes(columns: Columns, rows: RowSource) -> Columns:
    """Return the columns with those fixed, rising and falling that the options name."""
    made = {column.name: column for column in columns}
    for option in ("fixed", "rising", "falling"):
        for name in getattr(rows, option):
            if name not in made:
                raise unknown_name(f"column of --{option}", name, columns.names)
            stated: dict[str, Any] = {option: True}
            made[name] = replace(made[name], **stated)
    return Columns(tuple(made.values()))


def _model(source: Source, columns: Columns, rows: RowSource) -> AskableModel:
    name = source.model
    if name in (None, _EMBEDDED):
        return adult_trees(columns)
    assert name is not None
    if is_own(name) and Path(name).suffix.lower() not in PICKLES:  # trees say how to save them without pickle
        made = as_model(load_model(name, source.weights, source.device), columns=columns, classes=rows.classes)
        if isinstance(made, TextModel):
            raise HoldfastError(f"{name} gives a model of texts, and the input is a row of a table.")
        return made
    if "." not in Path(name).name:
        raise HoldfastError(
            f"--model must be {_EMBEDDED}, a file of trees (.json, .ubj, .txt, .skops), or "
            f"package.module:function, got {name!r}."
        )
    return trees(Path(name), columns=columns, classes=rows.classes)


def _encoded(columns: Columns, rows: RowSource) -> Tensor:
    """Return the row as a point ``[1, n]``."""
    assert rows.row is not None
    if rows.table is None:
        given: list[dict[str, Category]] = [adult().row(rows.row)]
    else:
        given = columns.read_rows(rows.table, rows.row, 1)
    try:
        return columns.encode(given)
    except HoldfastError as error:
        # One row alone is row 0 for what refuses it.
        reason = re.sub(r",? (in row 0|\(row 0\))", "", str(error))
        table = "the embedded table" if rows.table is None else shown(rows.table)
        raise HoldfastError(f"row {rows.row} of {table}: {reason}") from error
