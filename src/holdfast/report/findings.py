"""A report in sentences: the verdict, and what probes show about criteria that the main method loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.analyses import Agreement, Significance
from holdfast.analyses.agreement import AgreementAnalysis, compared_by_people
from holdfast.experiment.record import MeasureRecord
from holdfast.experiment.results import Results
from holdfast.table import number

_FEW = 10  # with fewer examples, a draw shows little
Verdicts = Mapping[tuple[str, str], str]
Means = Mapping[tuple[str, str], float]


def verdict(results: Results) -> str:
    """Return one or two sentences that compare the main method with the others."""
    tested = results.compared("table")
    name, count = results.main, len(results.examples)
    if tested is None:
        return f"{name} was measured on {count} examples; there is nothing to compare it with."
    if count == 1:
        others = len(results.methods("table")) - 1
        return f"{name} and {others} other methods were measured on one example, which is too few to compare them."
    few = " So few examples show only large differences." if count < _FEW else ""
    corrected = ", ".join(f"{n} {kind}" for kind, n in tested.counts(corrected=True).items() if n)
    tests = f"paired t-tests at 95 %; after Holm's correction over all of them: {corrected}"
    text = f"On {count} examples, {name} {_summary(tested)} ({tests}).{few}"
    agreement = results.analysis(AgreementAnalysis)
    people = compared_by_people(agreement, name) if isinstance(agreement, Agreement) else None
    if people is None:
        return text
    table = tuple(c for c in people.comparisons if c.other in results.methods("table"))
    return f"Compared with what people marked, {name} {_summary(replace(people, comparisons=table))}. {text}"


def _summary(tested: Significance) -> str:
    """Return how the main method compares with the others, criterion by criterion."""
    parts = []
    for criterion in dict.fromkeys(c.criterion for c in tested.comparisons):
        of = [c for c in tested.comparisons if c.criterion == criterion]
        by = {kind: [c.other for c in of if c.verdict == kind] for kind in ("win", "draw", "loss", "undefined")}
        if len(by["win"]) == len(of):
            others = f"all {len(of)} others" if len(of) > 1 else of[0].other
            parts.append(f"beats {others} by {criterion}")
            continue
        clauses = [f"beats {len(by['win'])} of {len(of)}"] if by["win"] else []
        clauses += [f"draws with {listed(by['draw'])}"] if by["draw"] else []
        clauses += [f"loses to {listed(by['loss'])}"] if by["loss"] else []
        clauses += [f"cannot be compared with {listed(by['undefined'])}"] if by["undefined"] else []
        parts.append(f"{listed(clauses)} by {criterion}")
    return "; it ".join(parts)


def findings(results: Results) -> list[str]:
    """Return sentences on what probes show about each criterion that the main method does not optimise and loses."""
    tested = results.compared("table", "probe", measures=("table", "probe"))
    if tested is None or not results.methods("probe"):
        return []
    verdicts = {(c.criterion, c.other): c.verdict for c in tested.comparisons}
    areas = results.areas("table", "probe", measures=("table", "probe"))
    means = {(name, who): float(area.double().mean()) for name, by in areas.items() for who, area in by.items()}
    sentences = []
    for measure in results.measures("table"):
        rivals = [other for other in results.methods("table") if verdicts.get((measure.name, other)) == "loss"]
        if not measure.judge and rivals:
            theirs = listed([f"{rival} {number(means[measure.name, rival])}" for rival in rivals])
            ours = number(means[measure.name, results.main])
            sentences.append(f"By {measure.name} {results.main} has {ours} and loses to {theirs}.")
            sentences += _by_variants(results, measure, rivals, verdicts, means)
            sentences += _by_other_scores(results, measure, rivals, verdicts, means)
    return sentences


def _by_variants(
    results: Results, measure: MeasureRecord, rivals: list[str], verdicts: Verdicts, means: Means
) -> list[str]:
    """Return what variants of a rival, or of the main method, show about a lost criterion."""
    name, sign, sentences = measure.name, 1 if measure.higher else -1, []
    for method in results.study.methods:
        if method.group != "probe" or (name, method.name) not in means:
            continue
        outcome = verdicts.get((name, method.name))
        if method.of in rivals:
            answer = _answer(results.main, outcome, "without that")
        elif method.of == results.main:
            ahead = [rival for rival in rivals if sign * means[name, method.name] > sign * means[name, rival]]
            behind = [rival for rival in rivals if rival not in ahead]
            answer = "No: it is no better" if outcome != "loss" else "Yes: it is then ahead of them"
            if answer.startswith("Yes") and behind:
                partly = f"and is ahead of {listed(ahead)}, " if ahead else ""
                answer = f"In part: it is better {partly}but behind {listed(behind)}"
        else:
            continue
        sentences.append(f"{capital(method.why)} {answer} ({method.name}: {number(means[name, method.name])}).")
    return sentences


def _by_other_scores(
    results: Results, measure: MeasureRecord, rivals: list[str], verdicts: Verdicts, means: Means
) -> list[str]:
    """Return what another score shows about a lost criterion."""
    sentences = []
    for other in results.measures("probe"):
        same = other.family == measure.family and other.higher == measure.higher
        for rival in rivals if same else ():
            if (other.name, rival) in means and (other.name, results.main) in means:
                answer = _answer(results.main, verdicts.get((other.name, rival)), f"by {other.name}")
                values = listed([f"{who} {number(means[other.name, who])}" for who in (results.main, rival)])
                sentences.append(f"{capital(other.why)} {answer} ({values}).")
    return sentences


def _answer(main: str, outcome: str | None, when: str) -> str:
    """Answer whether the main method loses for a reason that the variant removes."""
    return {
        "win": f"Yes: {when} {main} wins",
        "draw": f"For the most part: {when} it is a draw",
        "loss": f"Not that alone: {when} {main} still loses",
    }.get(str(outcome), "That is not known")


def capital(words: str) -> str:
    """Return words with a capital first letter."""
    return words[:1].upper() + words[1:]


def listed(words: list[str]) -> str:
    """Return words joined by commas and "and"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
