"""The package's version, readable without an installation."""

__version__ = "0.1.0"
