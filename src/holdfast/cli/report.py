"""``holdfast report``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app import out as console
from holdfast.cli.arguments import check_picture
from holdfast.errors import HoldfastError
from holdfast.experiment.results import Results
from holdfast.files import write_text
from holdfast.prose import visible
from holdfast.report.figures import draw_gallery, has_photographs
from holdfast.report.page import as_markdown, write_page
from holdfast.report.verdict import how_tested, verdict

app = typer.Typer(add_completion=False)


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="The results.db of a run, finished or not.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the page.")] = Path("report.html"),
    latex: Annotated[Path | None, typer.Option(help="Also write all tables as LaTeX (booktabs) to this file.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write every table as a CSV file into this folder.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write all tables as Markdown to this file.")] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw photographs with all explanations side by side, to this picture.")
    ] = None,
) -> None:
    """Make one self-contained HTML page of an experiment's results."""
    if os.path.isdir(out) or out.suffix.lower() not in (".html", ".htm"):
        raise HoldfastError(f"-o {out} must be an HTML file.")
    if figure is not None:
        check_picture(figure, "--figure")
    loaded = Results(results)
    if figure is not None and not has_photographs(loaded):
        raise HoldfastError(f"{results} holds no photographs to draw side by side: leave --figure out.")
    tables = write_page(loaded, out)
    written = [out]
    if latex is not None:
        write_text(latex, "\n\n".join(table.latex() for table in tables) + "\n")
        written.append(latex)
    if markdown is not None:
        write_text(markdown, as_markdown(loaded, tables))
        written.append(markdown)
    if csv is not None:
        for table in tables:
            write_text(csv / f"{table.key}.csv", table.csv())
        written.append(csv)
    if figure is not None:
        draw_gallery(loaded, figure)
        written.append(figure)
    for told in filter(None, (verdict(loaded), how_tested(loaded))):
        console.print(visible(told), highlight=False, markup=False)
    for path in written:
        console.print(f"{path}", soft_wrap=True, highlight=False, markup=False)
