"""Every value of an experiment, one a row, for other tools."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.experiment.results import Results

COLUMNS = ("example", "explainer", "optimises", "criterion", "size", "value", "bound", "censored")
Row = tuple[str, str, str, str, float, float | None, str, bool]


def rows(results: Results) -> Iterator[Row]:
    """One row a value, in the order of the study: criterion, explainer, example, size. Censored values are empty.

    ``optimises`` tells the two rankings apart that some methods have.
    """
    for measure in results.measures():
        for method in results.methods():
            for side in results.sides(method):
                yield from _of(results, method, measure, side)


def _of(results: Results, method: str, measure: dict[str, Any], side: str) -> Iterator[Row]:
    found = results.whole_curve(method, measure, side)
    if found is None:
        return
    examples, curve = found
    names = [results.study["examples"][example] for example in examples]
    values, censored = curve.values.double().tolist(), curve.censored.tolist()
    for name, line, unknown in zip(names, values, censored, strict=True):
        for size, value, none in zip(results.study["sizes"], line, unknown, strict=True):
            known = None if none else value
            yield name, method, "" if side == "both" else side, measure["name"], size, known, measure["bound"], none


def export(results: Results, out: Path) -> int:
    """Write them to a .csv or .parquet file, whole or not at all; returns how many."""
    writers = {".csv": _csv, ".parquet": _parquet}
    if out.suffix.lower() not in writers:
        raise HoldfastError(f"{out} must end in .csv or .parquet.")
    with written(out) as part:
        return writers[out.suffix.lower()](results, part)


@contextmanager
def written(out: Path) -> Iterator[Path]:
    """A file beside ``out`` to write to, which takes its place when all went well and is gone otherwise."""
    try:
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False) as part:
            pass
        try:
            yield Path(part.name)
            os.chmod(part.name, 0o644)
            os.replace(part.name, out)
        finally:
            Path(part.name).unlink(missing_ok=True)
    except OSError as error:
        raise HoldfastError(f"cannot write {out}: {error.strerror or error}.") from error


def write(out: Path, content: str) -> None:
    """A text file, whole or not at all; its folder is made if need be."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HoldfastError(f"cannot write {out}: {error.strerror or error}.") from error
    with written(out) as part:
        part.write_text(content, encoding="utf-8")


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
        raise HoldfastError('Parquet needs pyarrow: pip install "holdfast[parquet]".') from error
    found = list(rows(results))
    columns = list(zip(*found, strict=True)) if found else [() for _ in COLUMNS]
    kinds = (pa.string(), pa.string(), pa.string(), pa.string(), pa.float64(), pa.float64(), pa.string(), pa.bool_())
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]
    parquet.write_table(pa.table(arrays, names=list(COLUMNS)), path)
    return len(found)
