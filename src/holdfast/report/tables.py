"""The tables of a report, made from results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from holdfast.analyses import bootstrap
from holdfast.analyses.significance import Comparison, Significance
from holdfast.experiment.results import Results
from holdfast.ranking import size_text
from holdfast.report import published
from holdfast.report.table import Cell, Estimate, Table


def every_table(results: Results) -> list[Table]:
    """All tables there is something to put into, in the order of the report."""
    tested = results.compared("table")
    made = [
        _areas(results, "table-1", "Robustness", ("RobustnessRest", "RobustnessRelevant"), tested),
        _areas(results, "table-2", "Insertion and Deletion", ("Insertion", "Deletion"), tested),
        _verdicts(results, tested),
        _tests(tested),
        _crossed(results),
        _ablation(results),
        _probes(results),
        _references(results, "Insertion"),
        _references(results, "Deletion"),
        _ranks(results),
        _censored(results),
        _sanity(results),
        _sensitivity(results),
        _agreement(results),
        _agreement_in_pairs(results),
        _substitution(results),
        _runtime(results),
        _diagnostics(results),
    ]
    return [table for table in made if table is not None]


def _arrow(measure: dict[str, Any]) -> str:
    return f"{measure['name']} {'↑' if measure['higher'] else '↓'}"


def _estimates(values: dict[str, torch.Tensor], higher: bool) -> dict[str, Estimate]:
    if not values:
        return {}
    means = {name: float(value.double().mean()) for name, value in values.items()}
    best = (max if higher else min)(means.values())
    return {name: Estimate(means[name], *bootstrap(value), means[name] == best) for name, value in values.items()}


def _areas(results: Results, key: str, title: str, kinds: Sequence[str], tested: Significance | None) -> Table | None:
    measures = [measure for measure in results.measures("table") if measure["kind"] in kinds]
    areas = results.areas("table")
    measures = [measure for measure in measures if measure["name"] in areas]
    if not measures:
        return None
    known = results.study["published"]
    verdicts = {(c.criterion, c.other): c.verdict for c in tested.comparisons} if tested else {}
    columns: list[str] = ["method"]
    for measure in measures:
        paper = [f"paper's {measure['name']}"] if known else []
        columns += [_arrow(measure), *paper, f"{results.main} by {measure['name']}"]
    found = {measure["name"]: _estimates(areas[measure["name"]], measure["higher"]) for measure in measures}
    rows = []
    for method in results.methods("table"):
        row: list[Cell] = [method]
        for measure in measures:
            name = measure["name"]
            row += [found[name].get(method), *([published.area(known, name, method)] if known else [])]
            row.append(verdicts.get((name, method)))
        rows.append(tuple(row))
    span = results.study["sizes"]
    capped = [_capped(results, measure) for measure in measures]
    note = (
        f"Areas under the curves from {_span(span)}; means over "
        f"{len(results.examples)} examples with 95 % bootstrap intervals. ↑ higher is better, ↓ lower. Verdicts are "
        f"those of a paired t-test at 95 %. {' '.join(one for one in capped if one)}"
    ).strip()
    if known:
        note += " The paper's are of another network, other inputs and a looser judge: compare orders, not sizes."
    return Table(key, title, tuple(columns), tuple(rows), note)


def _span(sizes: list[float | int]) -> str:
    ends = " to ".join(size_text(size) for size in (sizes[0], sizes[-1]))
    return f"{ends} of the features, x in percent" if isinstance(sizes[0], float) else f"{ends} features"


def _capped(results: Results, measure: dict[str, Any]) -> str:
    """How many points of the main method's curve are not known."""
    curve = results.curve(results.main, measure)
    if curve is None or not bool(curve.censored.any()):
        return ""
    bounded = bool(torch.isfinite(curve.ceiling[curve.censored]).all())
    stands = "the largest move possible stands in" if bounded else "as nothing bounds a move there is no area"
    return (
        f"{int(curve.censored.sum())} of the {curve.censored.numel()} points of {results.main} by {measure['name']} "
        f"are censored: no change was found, and {stands}."
    )


def _verdicts(results: Results, tested: Significance | None) -> Table | None:
    if tested is None:
        return None
    known = results.study["published"]
    others = list(dict.fromkeys(c.other for c in tested.comparisons))
    told = {(c.criterion, c.other): c for c in tested.comparisons}
    rows: list[tuple[Cell, ...]] = []
    for criterion in dict.fromkeys(c.criterion for c in tested.comparisons):
        found = [told.get((criterion, other)) for other in others]
        rows.append((criterion, "ours", *(c.verdict if c else None for c in found)))
        if any(c and c.corrected != c.verdict for c in found):
            rows.append((criterion, "ours, after Holm", *(c.corrected if c else None for c in found)))
        theirs = [published.verdict(known, criterion, other) for other in others] if known else []
        if any(theirs):
            rows.append((criterion, "paper", *theirs))
    counts = tested.counts()
    note = f"{results.main} against each method, paired t-tests at 95 %: {_told(counts)}."
    note += f" After Holm's correction over all of them: {_told(tested.counts(corrected=True))}."
    return Table("verdicts", "Win, draw, loss", ("criterion", "whose", *others), tuple(rows), note)


def _told(counts: Any) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


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
    note = "Gain: by how much the area is better, whichever way is better. Intervals are paired bootstraps at 95 %."
    return Table("tests", "Every comparison", columns, rows, note)


def _crossed(results: Results) -> Table | None:
    """Rankings made for one side, judged by the criteria of the other."""
    rows = []
    measures = results.measures("table")
    for method in results.methods("table", "ablation"):
        for side in results.sides(method) if len(results.sides(method)) > 1 else ():
            row: list[Cell] = [method, "Robustness-S̄r" if side == "rest" else "Robustness-Sr"]
            for measure in measures:
                value = results.area(method, measure, side)
                own = measure["side"] == side
                row.append(None if value is None else Estimate(float(value.double().mean()), *bootstrap(value), own))
            rows.append(tuple(row))
    if not rows:
        return None
    note = (
        "Methods that optimise a criterion have two rankings: one for Robustness-S̄r and Insertion, one for "
        "Robustness-Sr and Deletion (in bold: the pairs of the other tables). A reader has one explanation: these are "
        "all pairs."
    )
    columns = ("method", "optimises", *(_arrow(measure) for measure in measures))
    return Table("crossed", "Both rankings by every criterion", columns, tuple(rows), note)


def _ablation(results: Results) -> Table | None:
    if not results.methods("ablation"):
        return None
    measures = [m for m in results.measures("table") if m["kind"] in ("RobustnessRest", "RobustnessRelevant")]
    names = [results.main, *results.methods("ablation")]
    known = results.study["published"]
    tested = results.compared("table", "ablation")
    told = {(c.criterion, c.other): c for c in tested.comparisons} if tested else {}
    areas = results.areas("table", "ablation")
    rows = []
    for name in names:
        row: list[Cell] = [name]
        for measure in measures:
            by = {n: v for n, v in areas.get(measure["name"], {}).items() if n in names}
            c = told.get((measure["name"], name))
            row.append(_estimates(by, measure["higher"]).get(name) if by else None)
            row.append(Estimate(c.ratio, *c.ratio_interval) if c else None)
            row.append(c.verdict if c else None)
            row += [published.area(known, measure["name"], name)] if known else []
        rows.append(tuple(row))
    columns = ["method"]
    for measure in measures:
        name = measure["name"]
        paper = [f"paper's {name}"] if known else []
        columns += [_arrow(measure), f"{results.main} / it by {name}", f"verdict by {name}", *paper]
    note = (
        f"{results.main} against its own halves (Greedy tries every feature alone, One-Step Banzhaf values all of them "
        "once) and, where it was run, against the paper's regression on a cheap attack."
    )
    return Table("ablation", "Ablation", tuple(columns), tuple(rows), note)


def _probes(results: Results) -> Table | None:
    """Why a method beats the main one: variants of both, by the criteria that were lost."""
    measures = [m for m in results.measures("table", "probe") if m["kind"] in ("Insertion", "Deletion")]
    probes = [name for name in results.methods("probe") if any(results.curve(name, m) for m in measures)]
    if not probes:
        return None
    tested = results.compared("table")
    lost = [c.other for c in tested.comparisons if c.verdict == "loss"] if tested else []
    names = [results.main, *lost, *probes]
    higher = {m["name"]: m["higher"] for m in measures}
    areas = results.areas("table", "probe", measures=("table", "probe"))
    why = {m["name"]: m["why"] for m in results.study["methods"]}
    rows = []
    for name in dict.fromkeys(names):
        row: list[Cell] = [name]
        for criterion in higher:
            by = {n: v for n, v in areas.get(criterion, {}).items() if n in names}
            row.append(_estimates(by, higher[criterion]).get(name))
        rows.append((*row, why.get(name, "")))
    columns = ("method", *(_arrow(m) for m in measures), "what it is there to tell")
    asked = dict.fromkeys(m["why"] for m in measures if m["why"])
    note = f"{results.main}, the methods that beat it, and variants that tell why. " + " ".join(
        f"The columns of margins: {question}" for question in asked
    )
    return Table("probes", "Variants that tell what decides", columns, tuple(rows), note)


def _references(results: Results, criterion: str) -> Table | None:
    found = results.references
    if found is None:
        return None
    known = results.study["published"]
    which = ("Insertion", "Deletion").index(criterion)
    rows: list[tuple[Cell, ...]] = []
    for r, reference in enumerate(found.references):
        by = {method: found.areas[m, r, which] for m, method in enumerate(found.methods)}
        ours = _estimates(by, criterion == "Insertion")
        rows.append((reference, "ours", *(ours[method] for method in found.methods)))
        if known:
            theirs = (published.reference(known, criterion, reference, method) for method in found.methods)
            rows.append((reference, "paper", *theirs))
    return Table(
        f"references-{criterion.lower()}",
        f"{criterion} under other references",
        ("reference", "whose", *found.methods),
        tuple(rows),
        f"{'Higher' if criterion == 'Insertion' else 'Lower'} is better; the best of ours in bold.",
    )


def _ranks(results: Results) -> Table | None:
    found = results.references
    if found is None:
        return None
    mean = found.ranks().double().mean(1)
    rows = tuple((method, float(mean[m, 0]), float(mean[m, 1])) for m, method in enumerate(found.methods))
    return Table("ranks", "Mean rank over references", ("method", "Insertion ↓", "Deletion ↓"), rows, "1 is best.")


def _censored(results: Results) -> Table | None:
    """How many points of each curve are not known, size by size."""
    sizes = results.study["sizes"]
    rows = []
    for measure in results.measures("table"):
        for method in results.methods():
            curve = results.curve(method, measure)
            if curve is not None and bool(curve.censored.any()):
                counts = curve.censored.sum(0).tolist()
                rows.append((f"{method}, {measure['name']}", *counts, int(sum(counts))))
    if not rows:
        return None
    columns = ("curve", *(size_text(size) for size in sizes), "in all")
    note = (
        f"Points, of {len(results.examples)} a size, at which no change of the decision was found. They count as the "
        "largest move that the box allows, in areas and curves; without a box a curve with such a point has no area."
    )
    return Table("censored", "Censored points", columns, tuple(rows), note)


def _sanity(results: Results) -> Table | None:
    found = results.sanity
    if found is None:
        return None
    theirs = published.sanity(results.study["published"])
    rows = []
    for e, name in enumerate(found.explainers):
        row: list[Cell] = [name]
        for s in range(len(found.stages)):
            values = found.correlation[e, s]
            told = values[~values.isnan()]
            row.append(Estimate(float(told.mean()), *bootstrap(told)) if len(told) else None)
            row += [theirs.get(name)] if theirs and s == 0 else []
        rows.append(tuple(row))
    columns = ["method", found.stages[0], *(["paper"] if theirs else []), *found.stages[1:]]
    note = (
        "Rank correlation of an explanation with that of the network with layers re-initialised, from the last one "
        f"back, on {found.correlation.shape[2]} examples. Near 0 is sane."
    )
    return Table("sanity", "Sanity", tuple(columns), tuple(rows), note)


def _sensitivity(results: Results) -> Table | None:
    found = results.sensitivity
    if found is None:
        return None
    theirs = published.sensitivity(results.study["published"])
    rows = []
    for name, values in zip(found.explainers, found.values, strict=True):
        told = values[~values.isnan()]
        paper = [theirs.get(name)] if theirs else []
        rows.append((name, Estimate(float(told.mean()), *bootstrap(told)) if len(told) else None, *paper))
    note = (
        f"1 less the smallest share of the top {found.top:.0%} that stays when the input moves by at most "
        f"{found.radius:g}, over {found.samples} neighbours of {found.values.shape[1]} examples: a lower bound."
    )
    columns = ("method", "sensitivity", *(["paper"] if theirs else []))
    return Table("sensitivity", "Sensitivity", columns, tuple(rows), note)


def _agreement(results: Results) -> Table | None:
    found = results.agreement
    if found is None:
        return None
    rows: list[tuple[Cell, ...]] = []
    for m, method in enumerate(found.methods):
        values = [found.precision[m, k] for k in range(found.precision.shape[1])] + [found.average_precision[m]]
        ours = [_mean(value) for value in values]
        theirs = published.people(method)
        rows.append((method, *ours, *((theirs[4], theirs[5]) if theirs else (None, None))))
    columns = ("method", *(f"p@{k + 1}" for k in range(found.precision.shape[1])), "mAP", "paper's p@5", "paper's mAP")
    note = (
        "The share of the top 1, 2, … words that people marked, and mean average precision, on "
        f"{found.precision.shape[2]} examples with 95 % bootstrap intervals. The paper's are of other texts, marked by "
        "its own users."
    )
    return Table("people", "Agreement with people", columns, tuple(rows), note)


def _agreement_in_pairs(results: Results) -> Table | None:
    tested = results.compared_by_people
    if tested is None:
        return None
    told = {(c.criterion, c.other): c for c in tested.comparisons}
    by, others = (list(dict.fromkeys(names)) for names in zip(*told, strict=True))
    rows = [(other, *(cell for name in by for cell in _gain(told[name, other]))) for other in others]
    columns = [name for criterion in by for name in (f"gain in {criterion}", f"{results.main} by {criterion}")]
    note = (
        f"By how much more of what {results.main} names people marked, the same {tested.comparisons[0].cases} examples "
        "in pairs, with 95 % bootstrap intervals; verdicts are those of a paired t-test at 95 %."
    )
    title = f"{results.main} against each method, by agreement with people"
    return Table("people-in-pairs", title, ("against", *columns), tuple(rows), note)


def _gain(compared: Comparison) -> tuple[Cell, Cell]:
    return Estimate(compared.gain, *compared.interval), compared.verdict


def _mean(values: torch.Tensor) -> Estimate:
    return Estimate(float(values.mean()), *bootstrap(values))


def _substitution(results: Results) -> Table | None:
    found = results.substitutions()
    if not found:
        return None
    rows: list[tuple[Cell, ...]] = []
    for method, held in found.items():
        turned = torch.isfinite(held["radius"])
        known = held["radius"][turned].double()
        shares = (turned, held["changed"], held.get("by_chance"), held["rounded"])
        told = [None if one is None else _mean(one.double()) for one in shares]
        rows.append((method, *told, float(known.mean()) if len(known) else None))
    columns = (
        "method",
        "a change of vectors turns it",
        "so do real words",
        "so do random words",
        "so does rounding",
        "mean radius",
    )
    note = (
        "The top words alone are changed, by the smallest change of their vectors that turns the prediction. Real "
        "words: the first other word that each vector meets on its way, however far. Random words: any in their place, "
        "ten draws. Rounding: each changed vector becomes the word nearest to it, its own more often than not. Shares "
        f"of {len(next(iter(found.values()))['radius'])} examples."
    )
    return Table("substitution", "Do real words do it too?", columns, tuple(rows), note)


def _runtime(results: Results) -> Table | None:
    found = results.runtime
    if found is None:
        return None
    theirs = published.seconds(results.study["published"])
    rows = []
    for row in found.table():
        paper = [theirs.get(str(row["explainer"]))] if theirs else []
        rows.append((row["explainer"], row["s a case"], *paper, row["rows a case"], row["of them with gradient"]))
    note = (
        f"One ranking, {len(results.examples)} examples in blocks of up to "
        f"{max(stop - start for start, stop in results.study['blocks'])}, as the experiment ran: {found.device}."
    )
    if theirs:
        note += " The paper's seconds are of a GTX 1080 Ti, those of Greedy and Greedy-AS for the top 20 % alone."
    columns = ("method", "seconds an example", *(["paper"] if theirs else []), "model rows", "with gradient")
    return Table("runtime", "Cost", columns, tuple(rows), note)


def _diagnostics(results: Results) -> Table | None:
    found = results.diagnostics
    if found is None:
        return None
    table = found.table()
    kept = [key for key in table[0] if key not in ("cases", "of ratios")]
    rows = tuple((size_text(row["held"]), *(row[key] for key in kept[1:])) for row in table)
    note = (
        f"The top features of {results.main} held, {len(found.judged)} examples: how many times larger one search's "
        "radius is than the judge's, how far seeds differ, and how often more freedom was found harder."
    )
    return Table("diagnostics", "How far radii can be trusted", tuple(kept), rows, note)
