"""Tables with columns of several kinds: incomes (Adult), cells, wines and houses.

The package contains 2,000 rows of Adult. The full file is read from a path, other tables from scikit-learn or a path.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from holdfast.columns import Category, Columns
from holdfast.columns.csv_tables import parsed, texts_of, with_categories
from holdfast.columns.stored import columns_of
from holdfast.data.idx import read_bytes
from holdfast.errors import HoldfastError
from holdfast.files import reading, shown
from holdfast.models.trees import TreeModel, trees

INCOMES = ("<=50K", ">50K")
"""Names of the classes of Adult: incomes of up to 50,000 US dollars a year, and larger ones."""
UNKNOWN = "unknown"
"""The category of missing values of Adult."""
_ADULT = "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain"
ADULT_FILE = (*_ADULT.split(), "capital_loss", "hours_per_week", "native_country", "income")
"""The columns of a file of Adult, in the order of UCI's, which does not name them."""
_PRICES = ("below the median", "above the median")
_CALIFORNIA = ("MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude")
_PRICE = "MedHouseVal"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a table and their classes.

    Attributes:
        columns: The columns.
        x: The rows as points ``[N, n]`` in scaled units, in double precision.
        y: Their classes ``[N]``.
        classes: Names of the classes.
    """

    columns: Columns
    x: Tensor
    y: Tensor
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)

    def row(self, number: int) -> dict[str, Category]:
        """Return the values of one row by column."""
        if not 0 <= number < len(self):
            raise HoldfastError(f"the table has the rows 0 to {len(self) - 1}, got {number}.")
        return self.columns.decode(self.x[number : number + 1])[0]


def adult(root: str | os.PathLike[str] | None = None) -> Table:
    """Read Adult (Becker and Kohavi 1996, CC BY 4.0): rows of the US census of 1994, and whether the income is high.

    Ranges and scales are those of all 48,842 rows. Sex and race are fixed; age and education only rise. A missing
    workclass or occupation is the category ``"unknown"``.

    Args:
        root: A file of Adult: ``adult.data`` or ``adult.test`` of UCI, or a .csv file with names of columns, such as
            that of OpenML; it may be compressed by gzip. None: the 2,000 rows that the package contains.

    Returns:
        Ten columns, their rows, and the classes ``INCOMES``.

    Raises:
        HoldfastError: The file cannot be read, or is another table.
    """
    folder = files("holdfast.data") / "files"
    columns = Columns(tuple(columns_of((folder / "adult-columns.json").read_text(encoding="utf-8"))))
    if root is not None:
        return _adult(Path(root), columns)
    with as_file(folder / "adult-2000.csv.gz") as path:
        return _adult(path, columns)


def adult_trees(columns: Columns | None = None) -> TreeModel:
    """Return the boosted trees for Adult that the package contains. XGBoost made them and is not needed to read them.

    They were trained on the rows of Adult that the package does not contain; ``MODEL-adult-trees.md`` says how, how
    often they are right, and what they must not be used for.

    Args:
        columns: The columns of ``adult()``, or the same ones with other ranges, or other ones fixed or rising. None:
            those of ``adult()``.

    Returns:
        The model, with the classes ``INCOMES``.

    Raises:
        HoldfastError: The columns are others.
    """
    folder = files("holdfast.data") / "files"
    own = Columns(tuple(columns_of((folder / "adult-columns.json").read_text(encoding="utf-8"))))
    if columns is not None and [(one.name, one.kind, one.categories) for one in columns] != [
        (one.name, one.kind, one.categories) for one in own
    ]:
        raise HoldfastError(
            f"the trees for Adult read its columns {', '.join(own.names)}, got {', '.join(columns.names)}."
        )
    with as_file(folder / "adult-trees.json") as path:
        return trees(path, columns=columns or own, classes=INCOMES)


def adult_texts(path: Path) -> dict[str, list[str]]:
    """Return the texts of each column of a file of Adult, whose names are those of ``ADULT_FILE``.

    Args:
        path: The file, as ``adult`` accepts it.

    Raises:
        HoldfastError: The file cannot be read, or has no column of incomes.
    """
    with reading(path, "Adult from"):
        try:
            text = read_bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise HoldfastError("it is not a text in UTF-8.") from error
        text = re.sub(r"^\|.*\n", "", text)  # adult.test begins with a remark
        if re.match(r"\s*[0-9]", text):
            text = ",".join(ADULT_FILE) + "\n" + text
        heading, _, rest = text.partition("\n")
        heading = re.sub(r"[-.]", "_", heading.strip().lower())
        heading = re.sub(r"(^|,)\s*(class|salary|target)\s*(?=,|$)", r"\1income", heading)
        texts = texts_of(io.StringIO(f"{heading}\n{rest}"), shown(path))
        if "income" not in texts:
            raise HoldfastError("it has no column of incomes: expected one called income or class.")
        return {name: [UNKNOWN if one in ("", "?") else one for one in values] for name, values in texts.items()}


def _adult(path: Path, columns: Columns) -> Table:
    texts = adult_texts(path)
    with reading(path, "Adult from"):
        lacking = next((name for name in columns.names if name not in texts), None)
        if lacking is not None:
            raise HoldfastError(f"it has no column {lacking!r}.")
        rows: dict[str, list[Any]] = {
            one.name: with_categories(texts[one.name], one.categories) if one.categories else parsed(texts[one.name])
            for one in columns
        }
        incomes = [one.rstrip(".") for one in texts["income"]]
        return Table(columns, columns.encode(rows), _numbers(incomes, INCOMES), INCOMES)


def _numbers(given: Sequence[str], classes: Sequence[str]) -> Tensor:
    """Return the numbers of classes by name."""
    wrong = next((n for n, one in enumerate(given) if one not in classes), None)
    if wrong is not None:
        raise HoldfastError(f"classes must be {' or '.join(classes)}, got {given[wrong][:60]!r} in row {wrong}.")
    return torch.tensor([classes.index(one) for one in given])


def breast_cancer() -> Table:
    """Read Breast Cancer Wisconsin (Wolberg et al. 1995) from scikit-learn: 569 rows of 30 measures of cells.

    Raises:
        HoldfastError: scikit-learn is not installed.
    """
    return _bundled("load_breast_cancer")


def wine() -> Table:
    """Read Wine (Aeberhard and Forina 1992) from scikit-learn: 178 rows of 13 measures, three cultivars.

    Raises:
        HoldfastError: scikit-learn is not installed.
    """
    return _bundled("load_wine")


def _bundled(name: str) -> Table:
    try:
        from sklearn import datasets  # not a dependency
    except ImportError as error:
        raise HoldfastError("this table comes with scikit-learn: pip install scikit-learn.") from error
    found: Any = getattr(datasets, name)()
    columns = Columns.read(found.data, names=list(map(str, found.feature_names)))
    classes = tuple(map(str, found.target_names))
    return Table(columns, columns.encode(found.data), torch.from_numpy(found.target).long(), classes)


def is_california(root: str | os.PathLike[str]) -> bool:
    """Return whether the first line of a file names the columns of California Housing.

    Args:
        root: The file. One that cannot be read is none: who reads it says why.
    """
    try:
        heading = read_bytes(Path(root)).split(b"\n", 1)[0].decode("utf-8-sig")
    except (OSError, ValueError, HoldfastError):
        return False
    return {*_CALIFORNIA, _PRICE} <= {name.strip().strip('"') for name in heading.split(",")}


def california_housing(root: str | os.PathLike[str]) -> Table:
    """Read California Housing (Pace and Barry 1997): districts, and whether the price of houses is above the median.

    Args:
        root: A .csv file with the columns of scikit-learn's ``fetch_california_housing(as_frame=True).frame``.

    Returns:
        Eight columns, their rows, and two classes: prices up to the median of the file, and above it.

    Raises:
        HoldfastError: The file cannot be read, or lacks a column.
    """
    path = Path(root)
    with reading(path, "California Housing from"):
        texts = texts_of(io.StringIO(read_bytes(path).decode("utf-8-sig")), shown(path))
        lacking = next((name for name in (*_CALIFORNIA, _PRICE) if name not in texts), None)
        if lacking is not None:
            raise HoldfastError(f"it has no column {lacking!r}.")
        rows = {name: parsed(texts[name]) for name in _CALIFORNIA}
        prices = parsed(texts[_PRICE])
        if not all(isinstance(one, (int, float)) for one in prices):
            raise HoldfastError(f"column {_PRICE!r} must hold numbers.")
        columns = Columns.read(rows)
        middle = median(prices)
        return Table(columns, columns.encode(rows), torch.tensor([int(one > middle) for one in prices]), _PRICES)
