"""The ``holdfast`` command: one file a subcommand."""

from holdfast.cli import demo, explain, export, listing, report, robustness, run, train
from holdfast.cli.app import app, main

__all__ = ["app", "demo", "explain", "export", "listing", "main", "report", "robustness", "run", "train"]
