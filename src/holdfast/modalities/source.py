"""What a command names: an input, a network and what is stated about columns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """The input and the network that a command names.

    Attributes:
        file: An image file.
        digit: The index of a digit that comes with the package.
        photo: The index of a photograph that comes with an installed package.
        text: A text.
        model: The name of the network; None: the default of the modality.
        resize: Whether an image is scaled to the size of the network's inputs.
        device: Where the network computes.
        rows: A row of a table, and what is stated about its columns; None: nothing.
        weights: Weights for the user's own network; None: it has its own.
        classes: Names of the classes of the user's own network.
    """

    file: Path | None = None
    digit: int | None = None
    photo: int | None = None
    text: str | None = None
    model: str | None = None
    resize: bool = False
    device: str = "cpu"
    rows: RowSource | None = None
    weights: Path | None = None
    classes: tuple[str, ...] = ()

    @property
    def named(self) -> list[str]:
        """What is named: the options that say which input is meant."""
        given = {"an image file": self.file, "--digit": self.digit, "--photo": self.photo, "--text": self.text}
        rows = [] if self.rows is None else self.rows.named
        return [name for name, value in given.items() if value is not None] + rows[:1]


@dataclass(frozen=True)
class RowSource:
    """A row of a table that a command names.

    Attributes:
        table: A .csv file; None: the table that comes with the package.
        row: The number of the row, from 0.
        columns: A file that ``Columns.save`` wrote; None: the columns are found out from the table.
        fixed: Names of further columns that never change.
        rising: Names of further columns whose values may only become larger.
        falling: Names of further columns whose values may only become smaller.
        classes: Names of the classes.
        label_column: The column of the table with the class, which the model does not see.
    """

    table: Path | None = None
    row: int | None = None
    columns: Path | None = None
    fixed: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    falling: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    label_column: str | None = None

    @property
    def named(self) -> list[str]:
        """The options that are given."""
        names = [field.name for field in fields(self) if getattr(self, field.name) not in (None, ())]
        return [f"--{name.replace('_', '-')}" for name in names]
