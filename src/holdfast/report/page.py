"""One self-contained page of an experiment: verdict, tables, figures, gallery, provenance. It needs no network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.analyses import Significance
from holdfast.data.photographs import is_photograph
from holdfast.experiment.export import write
from holdfast.experiment.results import Picture, Results
from holdfast.ranking import size_text
from holdfast.report import figures
from holdfast.report.table import Estimate, Table, number, text
from holdfast.report.tables import every_table
from holdfast.report.templates import template_file, templates
from holdfast.report.texts import text_gallery, why_not

_FEW = 10  # examples below which a draw says little
_SECTIONS = (
    ("robustness", "How fast does it hold?", ("table-1",)),
    ("removal", "Taking features away", ("table-2",)),
    ("compared", "Is it significant?", ("verdicts", "tests")),
    ("pairs", "One explanation, every criterion", ("crossed",)),
    ("ablation", "What its halves do", ("ablation",)),
    ("probes", "What decides Insertion and Deletion?", ("probes",)),
    ("curves", "Curves", ("censored",)),
    ("references", "Does the reference value decide?", ("ranks", "references-insertion", "references-deletion")),
    ("sanity", "Sanity and sensitivity", ("sanity", "sensitivity")),
    ("people", "Does it name what people name?", ("people", "people-in-pairs")),
    ("words", "Do real words do it too?", ("substitution",)),
    ("cost", "What it costs", ("runtime",)),
    ("trust", "How far radii can be trusted", ("diagnostics",)),
)


def write_page(results: Results, out: Path) -> list[Table]:
    """Write the page, and return the tables it shows."""
    tables = every_table(results)
    write(out, _page(results, tables))
    return tables


def as_markdown(results: Results, tables: list[Table]) -> str:
    """Verdict, facts, what the probes say, and all tables."""
    facts = "; ".join(f"{name}: {value}" for name, value in _facts(results))
    parts = [f"# {results.study['title'] or results.study['name']}", verdict(results), f"{_capital(facts)}."]
    said = findings(results)
    parts += ["## What decides Insertion and Deletion?", "\n".join(f"- {one}" for one in said)] if said else []
    return "\n\n".join([*parts, *(table.markdown() for table in tables)]) + "\n"


def _page(results: Results, tables: list[Table]) -> str:
    read = {name: template_file(name) for name in ("page.css", "page.js")}
    environment = templates()
    environment.filters |= {"size": size_text, "cell": text, "sort": _sort_value, "figure": number}
    environment.tests["estimate"] = lambda cell: isinstance(cell, Estimate)
    environment.tests["verdict"] = lambda cell: cell in ("win", "draw", "loss", "undefined")
    shown = {key for _, _, keys in _SECTIONS for key in keys}
    assert all(table.key in shown for table in tables), "a table without a section would be missing from the page"
    drawn = figures.analyses(results)
    drawn["censored"] = figures.curves(results)
    by_key = {table.key: table for table in tables}
    sections = [
        {
            "key": key,
            "title": title,
            "tables": [by_key[name] for name in names if name in by_key],
            "figures": {name: drawn[name] for name in names if name in drawn},
        }
        for key, title, names in _SECTIONS
    ]
    gallery = _gallery(results)
    return environment.get_template("page.html").render(
        css=read["page.css"],
        js=read["page.js"],
        study=results.study,
        verdict=verdict(results),
        facts=_facts(results),
        findings=findings(results),
        sections=[section for section in sections if section["tables"] or section["figures"]],
        gallery=gallery,
        targeted=_targeted(results),
        texts=text_gallery(results),
        why_not=why_not(results),
        photographs=any(shown["photograph"] for shown in gallery),
        spent=sorted(results.spent().items(), key=lambda item: -item[1][1]),
        notes=results.notes,
        refused=results.refused,
        results=results,
    )


# ---------------------------------------------------------------------- in words


def verdict(results: Results) -> str:
    """What the experiment shows, in a sentence or two."""
    tested = results.compared("table")
    name, count = results.main, len(results.examples)
    if tested is None:
        return f"{name} was measured on {count} examples; there is nothing to compare it with."
    few = " So few examples tell only large differences apart." if count < _FEW else ""
    said = f"On {count} examples, {name} {_verdicts(tested)} (paired t-tests at 95 %).{few}"
    people = results.compared_by_people
    if people is None:
        return said
    told = replace(people, comparisons=tuple(c for c in people.comparisons if c.other in results.methods("table")))
    return f"Held against what people marked, {name} {_verdicts(told)}. {said}"


def _verdicts(tested: Significance) -> str:
    """What the main method does against the others, criterion by criterion."""
    told = []
    for criterion in dict.fromkeys(c.criterion for c in tested.comparisons):
        of = [c for c in tested.comparisons if c.criterion == criterion]
        by = {kind: [c.other for c in of if c.verdict == kind] for kind in ("win", "draw", "loss", "undefined")}
        if len(by["win"]) == len(of):
            told.append(f"beats all {len(of)} others by {criterion}")
            continue
        parts = [f"beats {len(by['win'])} of {len(of)}"] if by["win"] else []
        parts += [f"draws with {_list(by['draw'])}"] if by["draw"] else []
        parts += [f"loses to {_list(by['loss'])}"] if by["loss"] else []
        parts += [f"cannot be told from {_list(by['undefined'])}"] if by["undefined"] else []
        told.append(f"{_list(parts)} by {criterion}")
    return "; it ".join(told)


def findings(results: Results) -> list[str]:
    """What the probes say about Insertion and Deletion where the main method loses: each asks, and is answered."""
    tested = results.compared("table", "probe", measures=("table", "probe"))
    if tested is None or not results.methods("probe"):
        return []
    told = {(c.criterion, c.other): c.verdict for c in tested.comparisons}
    areas = results.areas("table", "probe", measures=("table", "probe"))
    means = {(name, who): float(area.double().mean()) for name, by in areas.items() for who, area in by.items()}
    said = []
    for measure in results.measures("table"):
        rivals = [other for other in results.methods("table") if told.get((measure["name"], other)) == "loss"]
        if measure["kind"] in ("Insertion", "Deletion") and rivals:
            theirs = _list([f"{rival} {number(means[measure['name'], rival])}" for rival in rivals])
            ours = number(means[measure["name"], results.main])
            said.append(f"By {measure['name']} {results.main} has {ours} and loses to {theirs}.")
            said += _by_variants(results, measure, rivals, told, means)
            said += _by_margins(results, measure, rivals, told, means)
    return said


Told = Mapping[tuple[str, str], str]
Means = Mapping[tuple[str, str], float]


def _by_variants(results: Results, measure: dict[str, Any], rivals: list[str], told: Told, means: Means) -> list[str]:
    """What variants of a rival, or of the main method itself, say about a criterion that was lost."""
    name, sign, said = measure["name"], 1 if measure["higher"] else -1, []
    for method in results.study["methods"]:
        probe, of = method["name"], method["of"]
        if method["group"] != "probe" or (name, probe) not in means:
            continue
        if of in rivals:
            answer = _answer(results.main, told.get((name, probe)), "without that")
        elif of == results.main:
            ahead = [rival for rival in rivals if sign * means[name, probe] > sign * means[name, rival]]
            behind = [rival for rival in rivals if rival not in ahead]
            answer = "No: it does no better" if told.get((name, probe)) != "loss" else "Yes: so it is ahead of them"
            if answer.startswith("Yes") and behind:
                found = f"and is ahead of {_list(ahead)}, " if ahead else ""
                answer = f"In part: it does better {found}but is behind {_list(behind)}"
        else:
            continue
        said.append(f"{_capital(method['why'])} {answer} ({probe}: {number(means[name, probe])}).")
    return said


def _by_margins(results: Results, measure: dict[str, Any], rivals: list[str], told: Told, means: Means) -> list[str]:
    """What another way of scoring says about a criterion that was lost."""
    said = []
    for other in results.measures("probe"):
        name = other["name"]
        for rival in rivals if other["kind"] == measure["kind"] else ():
            if (name, rival) in means and (name, results.main) in means:
                answer = _answer(results.main, told.get((name, rival)), f"by {name}")
                shown = _list([f"{who} {number(means[name, who])}" for who in (results.main, rival)])
                said.append(f"{_capital(other['why'])} {answer} ({shown}).")
    return said


def _answer(main: str, told: str | None, when: str) -> str:
    """To the question whether the main method loses for a reason that is now taken away."""
    return {
        "win": f"Yes: {when} {main} wins",
        "draw": f"For the most part: {when} it is a draw",
        "loss": f"Not that alone: {when} {main} still loses",
    }.get(str(told), "That cannot be told")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _facts(results: Results) -> list[tuple[str, str]]:
    study = results.study
    judge = next((m["criterion"] for m in results.measures("table") if m["kind"] == "RobustnessRest"), "")
    facts = [
        ("examples", f"{len(results.examples)} of {study['blocks'][-1][1]}"),
        ("features", study["features"]),
        ("methods", str(len(results.methods()))),
        ("judge", judge.removeprefix("RobustnessRest(robustness=").removesuffix(")")),
        ("made on", "; ".join(results.machines)),
        ("units", f"{len(results.units):,}" + (f", {results.missing:,} missing" if results.missing else "")),
        ("model rows", f"{sum(unit.forward for unit in results.units.values()):,}"),
        ("holdfast", study["version"]),
        *study["about"].items(),
    ]
    return [(name, value) for name, value in facts if value]


def _sort_value(cell: Any) -> str:
    """What a table is sorted by: empty cells come last either way."""
    if isinstance(cell, Estimate):
        cell = cell.value
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return str(cell)


# ---------------------------------------------------------------------- pictures


def _gallery(results: Results) -> list[dict[str, Any]]:
    """Every example of the gallery with all its explanations."""
    shown = []
    for example, by_method in sorted(results.pictures().items()):
        one = next(iter(by_method.values()))
        if figures.is_image(one):
            shown.append(
                {
                    "name": results.study["examples"][example],
                    "label": f"{_class(results, one.label)} ({one.before:.0%})",
                    "image": figures.input_image(one),
                    "photograph": is_photograph(one.x.shape),
                    "explanations": [_explained(results, name, picture) for name, picture in by_method.items()],
                }
            )
    return shown


def _targeted(results: Results) -> list[dict[str, Any]]:
    """Every example with the classes it was asked not to be."""
    shown = []
    for example, pictures in sorted(results.targeted().items()):
        if figures.is_image(pictures[0]):
            label = f"{_class(results, pictures[0].label)} ({pictures[0].before:.0%})"
            asked = [_explained(results, f"Why not {_class(results, one.target)}?", one) for one in pictures]
            shown.append(
                {
                    "name": results.study["examples"][example],
                    "label": label,
                    "image": figures.input_image(pictures[0]),
                    "photograph": is_photograph(pictures[0].x.shape),
                    "explanations": asked,
                }
            )
    return shown


def _explained(results: Results, name: str, picture: Picture) -> dict[str, Any]:
    turned = [_class(results, one) if one >= 0 else None for one in picture.turned]
    if picture.after is not None:
        shares = zip(turned, picture.after, strict=True)
        turned = [None if name is None else f"{name} ({share:.0%})" for name, share in shares]
    radii = [None if math.isinf(radius) else number(radius) for radius in picture.radius]
    return {
        "name": name,
        "relevant": figures.relevant_image(picture),
        "smaller": figures.smaller_images(picture),
        "turned": turned,
        "radii": radii,
    }


def _class(results: Results, number: int) -> str:
    name: str = results.study["classes"][number]
    return name
