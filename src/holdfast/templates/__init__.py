"""Templates of pages. Everything that is put into a page is escaped."""

from __future__ import annotations

from importlib.resources import files

import jinja2


def template_file(name: str) -> str:
    """Return the text of a template, style sheet or script."""
    return (files("holdfast.templates") / "files" / name).read_text(encoding="utf-8")


def templates() -> jinja2.Environment:
    """Return all templates by name; one that uses an undefined name fails."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(template_file),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["shade"] = shade
    return environment


def shade(place: int, count: int) -> float:
    """Return how strongly a relevant word is coloured, from 1 for the first to a third for the last."""
    return 1 - 2 / 3 * place / max(1, count - 1)
