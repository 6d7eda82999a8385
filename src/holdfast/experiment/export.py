"""Export every value of an experiment as one row of a table, for other tools."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.experiment.record import MeasureRecord
from holdfast.experiment.results import Results
from holdfast.files import atomic

COLUMNS = ("example", "explainer", "optimises", "criterion", "size", "value", "bound", "censored")
Row = tuple[str, str, str, str, float, float | None, str, bool]


def rows(results: Results) -> Iterator[Row]:
    """Yield one row for each value, ordered by criterion, explainer, ranking, example and size.

    Args:
        results: The results of an experiment.

    Yields:
        The values of ``COLUMNS``. ``optimises`` distinguishes the two rankings that some methods have. Censored values
        are None.
    """
    for measure in results.measures():
        for method in results.methods():
            for side in results.sides(method):
                yield from _of(results, method, measure, side)


def _of(results: Results, method: str, measure: MeasureRecord, side: str) -> Iterator[Row]:
    measured = results.whole_curve(method, measure, side)
    if measured is None:
        return
    examples, curve = measured
    names = [results.study.examples[example] for example in examples]
    values, censored = curve.values.double().tolist(), curve.censored.tolist()
    for name, line, unknown in zip(names, values, censored, strict=True):
        for size, value, none in zip(results.sizes, line, unknown, strict=True):
            known = None if none else value
            yield name, method, "" if side == "both" else side, measure.name, size, known, measure.bound, none


def export(results: Results, out: Path) -> int:
    """Write all values to a file. If this fails, no partial file is left.

    Names are written as they are, see ``Table.csv``.

    Args:
        results: The results of an experiment.
        out: The file to write; it ends in ``.csv`` or ``.parquet``.

    Returns:
        The number of rows.

    Raises:
        HoldfastError: The file has another suffix or cannot be written, or Parquet is not installed.
    """
    writers = {".csv": _csv, ".parquet": _parquet}
    if out.suffix.lower() not in writers:
        raise HoldfastError(f"{out} must end in .csv or .parquet.")
    with atomic(out) as part:
        return writers[out.suffix.lower()](results, part)


def _csv(results: Results, path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for count, (*first, value, bound, censored) in enumerate(rows(results), 1):  # noqa: B007  # the last one counts
            writer.writerow([*first, "" if value is None else repr(value), bound, "true" if censored else "false"])
    return count


def _parquet(results: Results, path: Path) -> int:
    try:
        import pyarrow as pa  # an optional extra
        from pyarrow import parquet
    except ImportError as error:
        raise HoldfastError('Parquet requires pyarrow: pip install "holdfast[parquet]".') from error
    values = list(rows(results))
    columns = list(zip(*values, strict=True)) if values else [() for _ in COLUMNS]
    kinds = (pa.string(), pa.string(), pa.string(), pa.string(), pa.float64(), pa.float64(), pa.string(), pa.bool_())
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]
    parquet.write_table(pa.table(arrays, names=list(COLUMNS)), path)
    return len(values)
