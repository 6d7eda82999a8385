"""The ``holdfast`` command: one file a subcommand."""

from holdfast.cli import demo, explain, listing, robustness, run, train
from holdfast.cli.app import app, main

__all__ = ["app", "demo", "explain", "listing", "main", "robustness", "run", "train"]
