"""The tables of a report, except those that analyses define."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import torch

import holdfast.published as published
from holdfast.analyses import Significance
from holdfast.analyses.intervals import Sampled, bootstraps
from holdfast.experiment.record import MeasureRecord
from holdfast.experiment.results import Results
from holdfast.prose import counted
from holdfast.ranking import size_text
from holdfast.report.verdict import outcomes
from holdfast.table import Cell, Estimate, Table

_PROVEN = (
    " These radii are exact: an infinite one is a proof that no change within the ranges does it, unless the method "
    "stopped at its limit."
)


class Section(NamedTuple):
    """A section of a report.

    Attributes:
        key: Its name in links.
        title: Its heading.
        tables: Its tables.
    """

    key: str
    title: str
    tables: list[Table]


def sections(results: Results) -> list[Section]:
    """Return all sections of a report that have a table or a figure, in order."""
    tested = results.compared("table")
    families = dict.fromkeys(measure.family for measure in results.measures("table"))
    made: list[tuple[str, str, Sequence[Table | None]]] = [
        ("curves", "How values change with the number of relevant features", [_censored(results)]),
        *((_key(family), f"{family}: all methods compared", [_areas(results, family, tested)]) for family in families),
        ("compared", f"Where {results.main} is better or worse", [_verdicts(results, tested), _tests(tested)]),
        ("pairs", "Methods with two rankings, by every criterion", [_crossed(results)]),
        ("ablation", f"{results.main} against its own parts", [_ablation(results)]),
        ("probes", "Why methods win or lose", [_probes(results)]),
    ]
    for cls, result in results.analyses.items():
        made.append((cls.name, cls.title, [*cls.tables(result, results)]))
    filled = [Section(key, title, [table for table in tables if table]) for key, title, tables in made]
    drawn = {"curves", *(cls.name for cls, result in results.analyses.items() if cls.figures(result))}
    return [section for section in filled if section.tables or section.key in drawn]


def every_table(results: Results) -> list[Table]:
    """Return all tables of a report, in order."""
    return [table for section in sections(results) for table in section.tables]


def _key(family: str) -> str:
    return re.sub(r"\W+", "-", family.lower()).strip("-")


def _heading(measure: MeasureRecord) -> str:
    """Return the heading of a criterion's column: its name, and an arrow in the better direction."""
    return f"{measure.name} {'↑' if measure.higher else '↓'}"


def _estimates(values: dict[str, torch.Tensor], higher: bool) -> dict[str, Estimate]:
    """Return the mean and interval of each method, with the best one marked."""
    means = {name: float(value.double().mean()) for name, value in values.items()}
    best = (max if higher else min)(means.values(), default=0.0)
    ends = bootstraps([Sampled(value) for value in values.values()])
    return {name: Estimate(means[name], *of, means[name] == best) for name, of in zip(means, ends, strict=True)}


def _columns(
    areas: dict[str, dict[str, torch.Tensor]], measures: Sequence[MeasureRecord], names: Sequence[str]
) -> dict[str, dict[str, Estimate]]:
    """Return the estimates of these methods, by criterion."""
    some = {m.name: {name: of for name, of in areas.get(m.name, {}).items() if name in names} for m in measures}
    return {measure.name: _estimates(some[measure.name], measure.higher) for measure in measures}


def _areas(results: Results, family: str, tested: Significance | None) -> Table | None:
    """Return the areas of all methods by the criteria of a family."""
    areas, data = results.areas("table"), results.published
    measures = [one for one in results.measures("table") if one.family == family and one.name in areas]
    if not measures:
        return None
    verdicts = {(c.criterion, c.other): c.corrected for c in tested.comparisons} if tested else {}
    known = {m.name: any(published.area(data, m.name, method) for method in results.methods()) for m in measures}
    columns: list[str] = ["method"]
    for measure in measures:
        paper = [f"paper's {measure.name}"] if known[measure.name] else []
        columns += [_heading(measure), *paper, f"{results.main} by {measure.name}"]
    estimates = {measure.name: _estimates(areas[measure.name], measure.higher) for measure in measures}
    rows = []
    for method in results.methods("table"):
        row: list[Cell] = [method]
        for name in (measure.name for measure in measures):
            row.append(estimates[name].get(method))
            row += [published.area(data, name, method)] if known[name] else []
            row.append(verdicts.get((name, method)))
        rows.append(tuple(row))
    note = (
        f"Areas under the curves from {_span(results.sizes)}; means over {counted(len(results.examples), 'example')} "
        "with 95 % bootstrap intervals. ↑ higher is better, ↓ lower. Verdicts are those of a paired t-test at 95 % "
        "after Holm's correction."
    )
    capped = {measure.name: said for measure in measures if (said := _capped(results, measure))}
    note = " ".join([note, *capped.values()])
    note += _PROVEN if any(one.bound == "exact" for one in measures if one.name in capped) else ""
    if any(known.values()):
        note += " The paper's are of another network, other inputs and a less exact search: compare orders, not sizes."
    return Table(_key(family), family, tuple(columns), tuple(rows), note)


def _span(sizes: tuple[float, ...] | tuple[int, ...]) -> str:
    ends = " to ".join(size_text(size) for size in (sizes[0], sizes[-1]))
    return f"{ends} of the features, x in percent" if isinstance(sizes[0], float) else f"{ends} features"


def _capped(results: Results, measure: MeasureRecord) -> str:
    """Return a sentence on the censored points of the main method's curve; empty without any."""
    curve = results.curve(results.main, measure)
    if curve is None or not bool(curve.censored.any()):
        return ""
    bounded = bool(torch.isfinite(curve.ceiling[curve.censored]).all())
    treated = "count as the largest possible change" if bounded else "have no bound, so there is no area"
    return (
        f"{int(curve.censored.sum())} of the {curve.censored.numel()} points of {results.main} by {measure.name} are "
        f"censored (no change was found) and {treated}."
    )


def _verdicts(results: Results, tested: Significance | None) -> Table | None:
    if tested is None:
        return None
    others = list(dict.fromkeys(c.other for c in tested.comparisons))
    by_pair = {(c.criterion, c.other): c for c in tested.comparisons}
    rows: list[tuple[Cell, ...]] = []
    for criterion in dict.fromkeys(c.criterion for c in tested.comparisons):
        comparisons = [by_pair.get((criterion, other)) for other in others]
        rows.append((criterion, "measured, after Holm", *(c.corrected if c else None for c in comparisons)))
        if any(c and c.corrected != c.verdict for c in comparisons):
            rows.append((criterion, "measured, before Holm", *(c.verdict if c else None for c in comparisons)))
        paper = [published.verdict(results.published, criterion, other) for other in others]
        if any(paper):
            rows.append((criterion, "paper", *paper))
    raw, corrected = (outcomes(tested, corrected) for corrected in (False, True))
    note = (
        f"{results.main} against each method, paired t-tests at 95 %, after Holm's correction: {corrected}. "
        f"Uncorrected, as the paper counts: {raw}."
    )
    return Table("verdicts", "Win, draw, loss", ("criterion", "source", *others), tuple(rows), note)


def _tests(tested: Significance | None) -> Table | None:
    if tested is None:
        return None
    rows = tuple(
        (
            f"{c.criterion} against {c.other}",
            Estimate(c.gain, *c.interval),
            Estimate(c.ratio, *c.ratio_interval),
            c.p_t,
            c.holm_t,
            c.p_wilcoxon,
            c.cases,
        )
        for c in tested.comparisons
    )
    columns = ("comparison", "gain", "ratio of means", "p, t-test", "p, Holm", "p, Wilcoxon", "pairs")
    note = "Gain: how much better the area is, in the better direction. Intervals are paired bootstraps at 95 %."
    return Table("tests", "Every comparison", columns, rows, note)


def _crossed(results: Results) -> Table | None:
    """Return the areas of rankings that optimise one criterion, by all criteria."""
    measures = results.measures("table")
    several = [method for method in results.methods("table", "ablation") if len(results.sides(method)) > 1]
    names = [(method, side) for method in several for side in results.sides(method)]
    if not names:
        return None
    areas = {(*name, m.name): results.area(*name[:1], m, name[1]) for name in names for m in measures}
    known = {place: area for place, area in areas.items() if area is not None}
    ends = dict(zip(known, bootstraps([Sampled(area) for area in known.values()]), strict=True))  # they share draws
    rows: list[tuple[Cell, ...]] = []
    for method, side in names:
        row: list[Cell] = [method, "Robustness-S̄r" if side == "rest" else "Robustness-Sr"]
        for measure in measures:
            place = (method, side, measure.name)
            mean = float(known[place].double().mean()) if place in known else math.nan
            row.append(Estimate(mean, *ends[place], measure.side == side) if place in known else None)
        rows.append(tuple(row))
    note = (
        "Methods that optimise a criterion have two rankings: one for Robustness-S̄r and criteria where higher is "
        "better, one for Robustness-Sr and criteria where lower is better (in bold: the pairs of the other tables)."
    )
    columns = ("method", "optimises", *(_heading(measure) for measure in measures))
    return Table("crossed", "Both rankings by every criterion", columns, tuple(rows), note)


def _ablation(results: Results) -> Table | None:
    if not results.methods("ablation"):
        return None
    measures = [m for m in results.measures("table") if m.judge]  # what these methods optimise
    names = [results.main, *results.methods("ablation")]
    tested = results.compared("table", "ablation")
    by_pair = {(c.criterion, c.other): c for c in tested.comparisons} if tested else {}
    columns_of = _columns(results.areas("table", "ablation"), measures, names)
    rows = []
    for name in names:
        row: list[Cell] = [name]
        for measure in measures:
            c = by_pair.get((measure.name, name))
            row += [columns_of[measure.name].get(name), Estimate(c.ratio, *c.ratio_interval) if c else None]
            row.append(c.corrected if c else None)
            row += [published.area(results.published, measure.name, name)] if results.published else []
        rows.append(tuple(row))
    columns = ["method"]
    for measure in measures:
        paper = [f"paper's {measure.name}"] if results.published else []
        ratio = f"{results.main} / this method by {measure.name}"
        columns += [_heading(measure), ratio, f"verdict by {measure.name}", *paper]
    note = (
        f"{results.main} against its parts: Greedy tries every feature alone, One-Step Banzhaf values all of them "
        "once. Where it was run, also against the paper's regression on a cheap attack. Verdicts are those after "
        "Holm's correction."
    )
    return Table("ablation", "Ablation", tuple(columns), tuple(rows), note)


def _probes(results: Results) -> Table | None:
    """Return the areas of variants by the criteria that the main method does not optimise."""
    measures = [m for m in results.measures("table", "probe") if not m.judge]
    probes = [name for name in results.methods("probe") if any(results.curve(name, m) for m in measures)]
    if not probes:
        return None
    tested = results.compared("table")
    lost = [c.other for c in tested.comparisons if c.corrected == "loss"] if tested else []
    names = list(dict.fromkeys([results.main, *lost, *probes]))
    columns_of = _columns(results.areas("table", "probe", measures=("table", "probe")), measures, names)
    why = {method.name: method.why for method in results.study.methods}
    rows = []
    for name in names:
        row: list[Cell] = [name, *(columns_of[measure.name].get(name) for measure in measures)]
        rows.append((*row, why.get(name, "")))
    columns = ("method", *(_heading(m) for m in measures), "question")
    questions = dict.fromkeys(m.why for m in measures if m.why)
    note = f"{results.main}, the methods that beat it, and variants that show why. " + " ".join(
        f"The probe criteria: {question}" for question in questions
    )
    return Table("probes", "Variants of methods", columns, tuple(rows), note)


def _censored(results: Results) -> Table | None:
    """Return the number of censored points of each curve, by size."""
    rows = []
    for measure in results.measures("table"):
        for method in results.methods():
            curve = results.curve(method, measure)
            if curve is not None and bool(curve.censored.any()):
                counts = curve.censored.sum(0).tolist()
                rows.append((f"{method}, {measure.name}", *counts, int(sum(counts))))
    if not rows:
        return None
    columns = ("curve", *(size_text(size) for size in results.sizes), "total")
    note = (
        f"For each size, how many of {counted(len(results.examples), 'point')} have no change of the decision that was "
        "found. They count as the largest change that the bounds allow. Without bounds, a curve with such a point has "
        "no area."
    )
    note += _PROVEN if any(measure.bound == "exact" and measure.judge for measure in results.measures("table")) else ""
    return Table("censored", "Points without a change", columns, tuple(rows), note)
