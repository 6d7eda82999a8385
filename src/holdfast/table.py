"""A table as plain data, written as Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from typing import Any
from unicodedata import combining, east_asian_width

from holdfast.prose import visible


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval.

    >>> str(Estimate(0.5, 0.25, 0.75))
    '0.50 (0.25 to 0.75)'

    Attributes:
        value: The mean.
        low: The lower end of the interval; NaN if there is none.
        high: The upper end of the interval; NaN if there is none.
        best: Whether to highlight it as the best of its column.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    best: bool = False

    def __str__(self) -> str:
        value = number(self.value)
        return value if math.isnan(self.low) else f"{value} ({number(self.low)} to {number(self.high)})"


Cell = Estimate | float | int | str | None
"""One value of a table; None is an empty cell."""


@dataclass(frozen=True)
class Table:
    """A table.

    >>> print(Table("areas", "Areas", ("method", "area"), (("Grad", 1.5), ("IG", None))).markdown())
    ## Areas
    <BLANKLINE>
    | method | area |
    | ------ | ---- |
    | Grad   | 1.50 |
    | IG     |      |

    Attributes:
        key: A short name for links and files.
        title: The heading.
        columns: Headings of the columns.
        rows: Rows with one cell for each column.
        note: How to read the table.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """Return the table in Markdown, under its title and above its note."""
        cells = [self.columns, *([text(cell) for cell in row] for row in self.rows)]
        cells = [[markdown_text(cell) for cell in row] for row in cells]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
        lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
        return "\n".join(
            [f"## {markdown_text(self.title)}", "", *lines, *(["", markdown_text(self.note)] if self.note else [])]
        )

    def plain(self) -> str:
        """Return the columns and rows as lines of text, aligned, without title and note.

        >>> print(Table("areas", "Areas", ("method", "area"), (("Grad", 1.5), ("IG", 12.25))).plain())
        method  area
        Grad    1.50
        IG      12.2
        """
        cells = [[_one_line(text(cell)) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
        lines = [[cell + " " * (w - _width(cell)) for cell, w in zip(row, widths, strict=True)] for row in cells]
        return "\n".join("  ".join(line).rstrip() for line in lines)

    def latex(self) -> str:
        """Return the table in LaTeX for the package booktabs, with the best of a column in bold."""
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
        """Return the table as comma-separated values in full precision. An estimate takes three columns.

        Names are written as they are, so that other programs find them again. Spreadsheets take a name that begins with
        ``=``, ``+``, ``-`` or ``@`` for a formula: import the column as text if you do not trust the names.
        """
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
                values = (cell.value, cell.low, cell.high) if isinstance(cell, Estimate) else (cell, "", "")
                line += values if estimates else values[:1]
            writer.writerow(["" if value is None else value for value in line])
        return out.getvalue()


def number(value: float) -> str:
    """Return a number rounded for reading.

    It has two decimals below 10, one below 100 and none from there on. Numbers below 0.01, or from 100,000 on, have two
    significant digits.

    >>> [number(value) for value in (0.5, 12.345, 1234.5, 0.001234, float("nan"))]
    ['0.50', '12.3', '1,234', '0.0012', '']

    Args:
        value: Any number; NaN gives an empty text.
    """
    if math.isnan(value):
        return ""
    if value == 0 or 0.01 <= abs(value) < 100_000:
        return f"{value:,.{max(0, min(3, 3 - len(str(int(abs(value))))))}f}"
    return f"{value:.2g}"


def text(cell: Cell) -> str:
    """Return a cell as text: rounded numbers, estimates with their interval, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, int):
        return f"{cell:,}"
    return number(cell) if isinstance(cell, float) else str(cell)


def _one_line(words: str) -> str:
    return " ".join(visible(words).split())


def _width(words: str) -> int:
    """Return how many columns of a terminal a text takes: none for marks above letters, two for wide letters."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in words)


def markdown_text(words: str) -> str:
    """Return text in one line that Markdown shows as it is.

    >>> print(markdown_text("a|b <i> [link](x)"))
    a\\|b \\<i\\> \\[link\\](x)

    Args:
        words: Any text, such as a name from data.
    """
    plain = " ".join("".join(letter for letter in words if letter.isprintable() or letter.isspace()).split())
    plain = re.sub(r"[\\`*_\[\]<>|~$]|&(?=#?\w+;)|^[#+-](?=\s|#|$)", r"\\\g<0>", plain)
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", plain)  # the beginning of a list


_SPECIAL = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}"}
_SPECIAL |= {sign: "\\" + sign for sign in "&%$#_"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "∞": r"$\infty$", "–": "--", "≤": r"$\leq$", "…": r"\dots{}"}
_SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
_SPECIAL |= {"[": "{[}", "*": "{*}"}  # after the end of a row, they would be its arguments


def _tex(words: str) -> str:
    """Return text escaped for LaTeX, with the sets of the paper as formulas."""
    words = " ".join("".join(letter for letter in words if letter.isprintable() or letter.isspace()).split())
    words = words.replace("S̄r", "\0").replace("-Sr", "-\1")
    escaped = "".join(_SPECIAL.get(letter, letter) for letter in words)
    return escaped.replace("\0", r"$\overline{S_r}$").replace("\1", "$S_r$")


def _tex_cell(cell: Cell) -> str:
    """Return a cell for LaTeX."""
    escaped = _tex(text(cell))
    return rf"\textbf{{{escaped}}}" if isinstance(cell, Estimate) and cell.best else escaped
