"""One HTML page of an experiment: verdict, tables, figures, gallery, provenance. It loads nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from holdfast.experiment.results import Results
from holdfast.explanation import Explanation
from holdfast.files import write_text
from holdfast.modalities.modality import Modality
from holdfast.modalities.shown import Shown
from holdfast.palette import styles
from holdfast.prose import capital, counted
from holdfast.ranking import size_text
from holdfast.report import figures
from holdfast.report.cards import can_be_shown, cards, pair_of
from holdfast.report.findings import findings
from holdfast.report.glossary import Glossary, glossary
from holdfast.report.painting import swatch
from holdfast.report.tables import Section, sections
from holdfast.report.verdict import how_tested, verdict
from holdfast.table import Estimate, Table, markdown_text, number, text
from holdfast.templates import template_file, templates


class ShownExample(NamedTuple):
    """One example of the gallery, in the form that the page template needs.

    Attributes:
        name: The name of the example.
        label: The explained class and its probability.
        image: A picture of the input as a data URL; empty if there is none.
        explanations: One for each method or question.
    """

    name: str
    label: str
    image: str
    explanations: list[Shown]


def write_page(results: Results, path: Path) -> list[Table]:
    """Write the page of an experiment.

    Args:
        results: The results of the experiment.
        path: The HTML file to write.

    Returns:
        The tables of the page.

    Raises:
        HoldfastError: The results hold no curve, or the file cannot be written.
    """
    parts = sections(results)
    write_text(path, _page(results, parts))
    return [table for section in parts for table in section.tables]


def as_markdown(results: Results, tables: Sequence[Table]) -> str:
    """Return the verdict, facts, findings and tables as Markdown.

    Args:
        results: The results of the experiment.
        tables: The tables to include, in order.
    """
    facts = "; ".join(f"{name}: {value}" for name, value in _facts(results))
    title = markdown_text(results.study.title or results.study.name)
    parts = [f"# {title}", markdown_text(verdict(results))]
    parts += [markdown_text(tested)] if (tested := how_tested(results)) else []
    parts.append(markdown_text(f"{capital(facts)}."))
    sentences = findings(results)
    parts += (
        ["## Why methods win or lose", "\n".join(f"- {markdown_text(one)}" for one in sentences)] if sentences else []
    )
    return "\n\n".join([*parts, *(table.markdown() for table in tables)]) + "\n"


def _page(results: Results, parts: Sequence[Section]) -> str:
    environment = templates()
    environment.filters |= {"size": size_text, "cell": text, "sort": _sort_value, "figure": number}
    environment.tests["estimate"] = lambda cell: isinstance(cell, Estimate)
    environment.tests["verdict"] = lambda cell: cell in ("win", "draw", "loss", "undefined")
    modality, words = Modality.registry.make(results.study.modality), glossary(results)
    known, pair = styles([results.main, *results.methods()]), pair_of(results)
    top = size_text(results.study.top) if results.study.top is not None else ""
    return environment.get_template("page.html").render(
        css=template_file("page.css"),
        js=template_file("page.js"),
        study=results.study,
        verdict=verdict(results),
        how_tested=how_tested(results),
        facts=_facts(results),
        findings=findings(results),
        sections=parts,
        figures=figures.analyses(results, known) | {"curves": figures.curves(results, known)},
        modality=modality,
        legend=modality.legend.format(top=top, main=results.main),
        cards=cards(results, modality, pair),
        cards_note=" ".join(filter(None, [pair.why, _lengths(results, modality), modality.marks])),
        gallery=_gallery(results, modality),
        targeted=_targeted(results, modality),
        glossary=words,
        keys=words.keys,
        headings=_headings(results, words),
        swatches={name: Markup(swatch(style)) for name, style in known.items()},  # made of our own words
        spent=sorted(results.spent().items(), key=lambda item: -item[1][1]),
        notes=results.notes,
        refused=results.refused,
        missing=results.missing,
        missing_units=counted(results.missing, "unit"),
    )


def _headings(results: Results, words: Glossary) -> dict[str, str]:
    """Return the links of headings of tables: names of criteria and methods, also with an arrow."""
    keys = words.keys
    named = [measure.name for measure in results.measures("table", "probe")]
    return keys | {f"{name} {arrow}": keys[name] for name in named for arrow in "↑↓"}


def _lengths(results: Results, modality: Modality) -> str:
    """Return what the radii are lengths of; empty if that is not known."""
    norm = f"Radii are lengths in {results.study.norm}" if results.study.norm else "Radii are lengths"
    return f"{norm}: {modality.unit}." if modality.unit else ""


def _gallery(results: Results, modality: Modality) -> list[ShownExample]:
    """Return every example of the gallery with all its explanations."""
    return [
        _example(results, modality, example, list(by_method.values()), list(by_method))
        for example, by_method in sorted(results.explanations().items())
        if can_be_shown(next(iter(by_method.values())))
    ]


def _targeted(results: Results, modality: Modality) -> list[ShownExample]:
    """Return every example of the gallery with its targeted explanations."""
    return [
        _example(results, modality, example, of, [f"Why not {one.classes[one.target]}?" for one in of])
        for example, of in sorted(results.targeted().items())
        if can_be_shown(of[0])
    ]


def _example(
    results: Results, modality: Modality, example: int, of: Sequence[Explanation], titles: Sequence[str]
) -> ShownExample:
    shown = [modality.shown(one, title) for one, title in zip(of, titles, strict=True)]
    return ShownExample(results.study.examples[example], of[0].prediction, modality.input_image(of[0]), shown)


def _facts(results: Results) -> list[tuple[str, str]]:
    study = results.study
    judge = next((measure.judge for measure in results.measures("table") if measure.judge), "")
    facts = [
        ("examples", f"{len(results.examples)} of {study.blocks[-1][1]}"),
        ("features", f"{study.feature_count} {study.feature_kind}"),
        ("methods", _method_count(results)),
        ("judge", judge),
        ("computed on", "; ".join(results.machines)),
        ("units", f"{len(results.units):,}" + (f", {results.missing:,} missing" if results.missing else "")),
        ("model rows", f"{sum(unit.forward for unit in results.units.values()):,}"),
        ("holdfast", study.version),
        *study.about.items(),
    ]
    return [(name, value) for name, value in facts if value]


def _method_count(results: Results) -> str:
    compared, every = len(results.methods("table")), len(results.methods())
    return f"{compared}, and {counted(every - compared, 'variant')}" if every > compared else str(compared)


def _sort_value(cell: Any) -> str:
    """Return the value to sort a table by; empty for cells that come last."""
    if isinstance(cell, Estimate):
        cell = cell.value
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return str(cell)
