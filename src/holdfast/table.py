"""A table as plain data, written as Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval; ``best``: the best of its column, or what is to be seen first."""

    value: float
    low: float = math.nan
    high: float = math.nan
    best: bool = False

    def __str__(self) -> str:
        told = number(self.value)
        return told if math.isnan(self.low) else f"{told} ({number(self.low)} to {number(self.high)})"


Cell = Estimate | float | int | str | None


@dataclass(frozen=True)
class Table:
    """Rows under columns. ``key`` names it in links and files; ``note`` says how to read it."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """As a Markdown table under its title."""
        cells = [self.columns, *([text(cell) for cell in row] for row in self.rows)]
        cells = [[cell.replace("|", r"\|") for cell in row] for row in cells]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
        lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
        return "\n".join([f"## {self.title}", "", *lines, *(["", self.note] if self.note else [])])

    def latex(self) -> str:
        """As a booktabs table; the best of a column in bold."""
        head = " & ".join(_tex(column) for column in self.columns)
        body = [" & ".join(_tex_cell(cell) for cell in row) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_tex(self.title)}. {_tex(self.note)}}}",
                rf"\label{{tab:{self.key}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
                r"\toprule",
                head + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
            ]
        )

    def csv(self) -> str:
        """As comma-separated values in full precision; an estimate takes three columns."""
        wide = [any(isinstance(row[place], Estimate) for row in self.rows) for place in range(len(self.columns))]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        head: list[str] = []
        for column, estimates in zip(self.columns, wide, strict=True):
            head += [column, f"{column}, low", f"{column}, high"] if estimates else [column]
        writer.writerow(head)
        for row in self.rows:
            line: list[Any] = []
            for cell, estimates in zip(row, wide, strict=True):
                given = (cell.value, cell.low, cell.high) if isinstance(cell, Estimate) else (cell, "", "")
                line += given if estimates else given[:1]
            writer.writerow(["" if value is None else value for value in line])
        return out.getvalue()


def number(value: float) -> str:
    """Three figures, or two decimals: no more than one would read."""
    if math.isnan(value):
        return ""
    if value == 0 or 0.01 <= abs(value) < 100_000:
        return f"{value:,.{max(0, min(3, 3 - len(str(int(abs(value))))))}f}"
    return f"{value:.2g}"


def text(cell: Cell) -> str:
    """A cell as a reader sees it."""
    if cell is None:
        return ""
    if isinstance(cell, int):
        return f"{cell:,}"
    return number(cell) if isinstance(cell, float) else str(cell)


_SPECIAL = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}"}
_SPECIAL |= {sign: "\\" + sign for sign in "&%$#_"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "∞": r"$\infty$", "–": "--", "≤": r"$\leq$", "…": r"\dots{}"}


def _tex(words: str) -> str:
    words = words.replace("S̄r", "\0").replace("-Sr", "-\1")
    escaped = "".join(_SPECIAL.get(letter, letter) for letter in words)
    return escaped.replace("\0", r"$\overline{S_r}$").replace("\1", "$S_r$")


def _tex_cell(cell: Cell) -> str:
    told = _tex(text(cell))
    return rf"\textbf{{{told}}}" if isinstance(cell, Estimate) and cell.best else told
