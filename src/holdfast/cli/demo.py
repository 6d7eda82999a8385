"""``holdfast demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli import options
from holdfast.cli.app import out as console
from holdfast.cli.arguments import usable_device
from holdfast.cli.run import carry_out, finish
from holdfast.experiment import Local, Results, Study
from holdfast.experiment.build import build
from holdfast.experiment.toml import load
from holdfast.prose import counted, visible
from holdfast.report.page import write_page
from holdfast.report.verdict import how_tested, verdict

app = typer.Typer(add_completion=False)
_EXPERIMENT = "paper-mnist-quick"


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results and the page.")] = Path("holdfast-demo"),
    digits: Annotated[int, typer.Option(min=1, max=20, help="How many embedded digits.")] = 4,
    device: options.Device = "cpu",
) -> None:
    """Run the paper's MNIST experiment on a few digits and make a page of it."""
    usable_device(device)
    settings = load(_EXPERIMENT)
    console.print(
        f"Explaining {counted(digits, 'digit')} with {len(settings.explainers)} methods, and measuring how small a "
        "change of the relevant pixels, and of all others, changes the prediction. This takes one to three minutes on "
        "two cores. Ctrl-C stops; the same command continues.",
        highlight=False,
    )

    def make() -> Study:
        return build(settings, _EXPERIMENT, out, limit=digits, device=device)

    summary = carry_out(make, out, Local, quiet=False, as_json=False)
    if summary.missing:
        finish(summary, out, False)
    results, page = Results(out / "results.db"), out / "report.html"
    write_page(results, page)
    for told in filter(None, (verdict(results), how_tested(results))):
        console.print(visible(told), highlight=False, markup=False)
    console.print(f"report: {page}", soft_wrap=True, highlight=False, markup=False)
