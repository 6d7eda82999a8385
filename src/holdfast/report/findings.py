"""What probes show about criteria that the main method loses, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.experiment.record import MeasureRecord
from holdfast.experiment.results import Results
from holdfast.prose import capital, listed
from holdfast.table import number

Verdicts = Mapping[tuple[str, str], str]
Means = Mapping[tuple[str, str], float]


def findings(results: Results) -> list[str]:
    """Return sentences on what probes show about each criterion that the main method does not optimise and loses.

    Wins and losses are those that hold after Holm's correction.
    """
    tested, every = results.compared("table"), results.compared("table", "probe", measures=("table", "probe"))
    if tested is None or every is None or not results.methods("probe"):
        return []
    lost = {(c.criterion, c.other) for c in tested.comparisons if c.corrected == "loss"}
    verdicts = {(c.criterion, c.other): c.corrected for c in every.comparisons}
    areas = results.areas("table", "probe", measures=("table", "probe"))
    means = {(name, who): float(area.double().mean()) for name, by in areas.items() for who, area in by.items()}
    sentences = []
    for measure in results.measures("table"):
        rivals = [other for other in results.methods("table") if (measure.name, other) in lost]
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
