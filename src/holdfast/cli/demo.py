"""``holdfast demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app import Device, app
from holdfast.cli.app import out as console
from holdfast.cli.arguments import usable_device
from holdfast.cli.run import carry_out, finish
from holdfast.experiment import Local, Study
from holdfast.experiment.results import Results
from holdfast.report.page import verdict, write_page

_EXPERIMENT = "paper-mnist-quick"


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results and the page.")] = Path("holdfast-demo"),
    digits: Annotated[int, typer.Option(min=1, max=20, help="How many embedded digits.")] = 4,
    device: Device = "cpu",
) -> None:
    """Run the paper's MNIST experiment, cut to a few digits and minutes, and make a page of it."""
    from holdfast.experiment.settings import load, study  # pydantic takes a while to load

    usable_device(device)
    settings = load(_EXPERIMENT)
    console.print(
        f"Explaining {digits} digits with {len(settings.explainers)} methods and judging each by how small a change "
        "turns the digits: about three minutes on two cores. Ctrl-C stops; the same command goes on.",
        highlight=False,
    )

    def make() -> Study:
        return study(settings, _EXPERIMENT, out, limit=digits, device=device)

    summary = carry_out(make, out, Local, quiet=False, as_json=False)
    if summary.missing:
        finish(summary, out, False)
    results, page = Results(out / "results.db"), out / "report.html"
    write_page(results, page)
    console.print(verdict(results), highlight=False, markup=False)
    console.print(f"report: {page}", soft_wrap=True, highlight=False, markup=False)
