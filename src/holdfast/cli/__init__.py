"""The ``holdfast`` command: one file for each subcommand, imported when it is used."""

from holdfast.cli.app import app as app
from holdfast.cli.app import main as main
