"""The templates of pages, and how they are filled: what stands in a page is escaped."""

from __future__ import annotations

from importlib.resources import files

import jinja2


def template_file(name: str) -> str:
    """The text of a template, style sheet or script."""
    return (files("holdfast.report") / "files" / name).read_text(encoding="utf-8")


def templates() -> jinja2.Environment:
    """All templates by name; one that asks for what is not given fails."""
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
    """How strongly a relevant word is coloured: the first wholly, the last a third."""
    return 1 - 2 / 3 * place / max(1, count - 1)
