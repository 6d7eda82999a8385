"""``holdfast export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app import err
from holdfast.cli.app import out as console
from holdfast.experiment.export import COLUMNS
from holdfast.experiment.export import export as write
from holdfast.experiment.results import Results

app = typer.Typer(add_completion=False)


@app.command()
def export(
    results: Annotated[Path, typer.Argument(help="The results.db of a run, finished or not.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="A .csv or .parquet file.")] = Path("values.csv"),
) -> None:
    """Write every value of an experiment to a table, one in each row."""
    loaded = Results(results)
    count = write(loaded, out)
    console.print(f"{out}: {count:,} values ({', '.join(COLUMNS)})", soft_wrap=True, highlight=False, markup=False)
    if loaded.missing:
        err.print(
            f"{loaded.missing:,} of {len(loaded.study.units):,} units are not computed yet: their values are left out.",
            highlight=False,
            soft_wrap=True,
        )
