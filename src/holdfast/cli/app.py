"""The command itself: its subcommands, where it prints, and how it ends.

Nothing here imports torch, so that ``holdfast --help`` and ``holdfast --version`` answer at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from holdfast.cli.signals import imports_ended
from holdfast.errors import HoldfastError, HoldfastWarning, first_line
from holdfast.version import __version__

_COMMANDS = {
    "demo": "Run the paper's MNIST experiment on a few digits and make a page of it.",
    "explain": "Find the features that the prediction for one image, text or row of a table depends on.",
    "robustness": "Measure how small a change, inside some features, changes a prediction.",
    "list": "Show explainers, criteria, robustness methods and everything else that has a name.",
    "run": "Compute an experiment, or what is missing of it.",
    "report": "Make one self-contained HTML page of an experiment's results.",
    "export": "Write every value of an experiment to a table.",
    "check": "Verify the results of an experiment, and repair them if they are damaged.",
    "train": "Train a network that the package has weights for.",
}
out = Console()
err = Console(stderr=True)


class _LazyCommand(TyperCommand):
    """A subcommand whose module is imported when it is used."""

    def load(self) -> Any:
        module = import_module(f"holdfast.cli.{str(self.name).replace('list', 'listing')}")
        imports_ended()
        return typer.main.get_command(module.app)

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        return self.load().make_context(*arguments, **settings)


class _LazyGroup(TyperGroup):
    """The subcommands by name."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _LazyCommand(cmd_name, help=_COMMANDS[cmd_name]) if cmd_name in _COMMANDS else None


app = typer.Typer(
    cls=_LazyGroup,
    help="Find the features that a prediction depends on, and measure how far they can move before it changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command. An error is one sentence on stderr and exit code 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except HoldfastError as error:
        err.print(f"[bold red]holdfast:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except OSError as error:  # files have sentences of their own: this is the output, on a full disk
        with contextlib.suppress(OSError):
            err.print(f"[bold red]holdfast:[/] cannot print: {escape(first_line(error))}", highlight=False)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to print would fail again
        sys.exit(2)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, HoldfastWarning):
        err.print(f"[bold yellow]holdfast:[/] {escape(str(message))}", highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
