"""The command itself: its options, where it prints, and how it ends."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.markup import escape

from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.version import __version__

app = typer.Typer(
    help="Which features does a prediction hold fast to, and how fast does it hold?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()
err = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ImageFile = Annotated[
    Path | None, typer.Argument(help="An image file: of a digit, light on dark, or a photograph for --model imagenet.")
]
Digit = Annotated[int | None, typer.Option(help="An embedded test digit, 0 to 999, instead of a file.")]
Photo = Annotated[int | None, typer.Option(help="A photograph that comes with a package, by number, for imagenet.")]
Model = Annotated[
    str | None,
    typer.Option(
        help="digits, imagenet (if --photo is given), or a network torchvision:NAME or timm:NAME; of a text topics, a "
        "file that holdfast train wrote, or huggingface:NAME, a name or a folder."
    ),
]
FeatureKind = Annotated[
    str | None, typer.Option(help="pixels, patches:N or superpixels:N; of a photograph patches:16 if not given.")
]
Device = Annotated[str, typer.Option(help="Where the network runs: cpu, cuda, cuda:1, mps.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")]


def main() -> None:
    """Run the command; what goes wrong is one sentence on stderr and exit code 2."""
    warnings.showwarning = _say
    try:
        app()
    except HoldfastError as error:
        err.print(f"[bold red]holdfast:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)


def _say(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, HoldfastWarning):
        err.print(f"[bold yellow]holdfast:[/] {escape(str(message))}", highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {__version__} (torch {torch.__version__})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
