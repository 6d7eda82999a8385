"""The verdict of a report: what of the main method's wins and losses holds after Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.analyses import Agreement, Comparison, Significance
from holdfast.analyses.agreement import AgreementAnalysis, compared_by_people
from holdfast.experiment.results import Results
from holdfast.prose import capital, counted, listed

_FEW = 10  # with fewer examples, tests find only large differences
_NAMED = 3  # so many methods without a difference are named one by one


def verdict(results: Results) -> str:
    """Return one or two sentences on what holds after Holm's correction, robustness criteria first.

    Args:
        results: The results of an experiment, finished or not.
    """
    tested, main, count = results.compared("table"), results.main, len(results.examples)
    examples = counted(count, "example")
    if tested is None:
        return f"{main} was measured on {examples}; there is nothing to compare it with."
    if count == 1:
        others = counted(len(results.methods("table")) - 1, "other method")
        return f"{main} and {others} were measured on {examples}, which is too few to compare them."
    judged = [measure.name for measure in results.measures("table") if measure.judge]
    first = [c for c in tested.comparisons if c.criterion in judged]
    rest = [c for c in tested.comparisons if c.criterion not in judged]
    alike = len(_by_outcome(tested.comparisons)) == 1
    parts = [part for part in ((first + rest,) if alike else (first, rest)) if part]
    more = [capital(_sentence(part, main, "it")) for part in parts[1:]]
    return " ".join(
        [*_people(results), f"On {examples}, after Holm's correction, {_sentence(parts[0], main, main)}", *more]
    )


def how_tested(results: Results) -> str:
    """Return how the verdict was tested, and what the tests say without the correction; empty without tests."""
    tested = results.compared("table")
    if tested is None or len(results.examples) == 1:
        return ""
    before = outcomes(tested, corrected=False)
    text = (
        f"Paired t-tests at 95 %, with Holm's correction over {counted(len(tested.comparisons), 'comparison')}: "
        f"{outcomes(tested, corrected=True)}. Without the correction: {before}."
    )
    few = len(results.examples) < _FEW
    return f"{text} So few examples can show only large differences." if few else text


def outcomes(tested: Significance, corrected: bool) -> str:
    """Return how many comparisons have which outcome, such as "3 wins, 1 draw"."""
    nouns = {"win": ("win", "wins"), "draw": ("draw", "draws"), "loss": ("loss", "losses")}
    pairs = tested.counts(corrected).items()
    return ", ".join(counted(n, *nouns.get(kind, (kind, kind))) for kind, n in pairs if n)


def _people(results: Results) -> list[str]:
    """Return the sentence on what people marked, if they marked anything."""
    agreement, main = results.analysis(AgreementAnalysis), results.main
    compared = compared_by_people(agreement, main) if isinstance(agreement, Agreement) else None
    if compared is None:
        return []
    table = tuple(c for c in compared.comparisons if c.other in results.methods("table"))
    if not table:
        return []
    return [f"Compared with what people marked, after Holm's correction, {_sentence(table, main, main)}"]


_Outcome = tuple[bool, str, str]
"""Whether there are neither wins nor losses, the outcome, and what is said behind the criterion."""


def _by_outcome(comparisons: Sequence[Comparison]) -> dict[_Outcome, list[str]]:
    """Return the criteria of each outcome."""
    criteria: dict[_Outcome, list[str]] = {}
    for criterion in dict.fromkeys(c.criterion for c in comparisons):
        criteria.setdefault(_outcome([c for c in comparisons if c.criterion == criterion]), []).append(criterion)
    return criteria


def _sentence(comparisons: Sequence[Comparison], main: str, subject: str) -> str:
    """Return how the main method compares with the others; criteria with the same outcome share a clause."""
    clauses: list[str] = []
    for (alike, outcome, more), criteria in _by_outcome(comparisons).items():
        by = f"by {listed(criteria, 'or' if alike else 'and')}"
        clauses.append(
            f"no difference between {main} and {outcome} can be shown {by}{more}"
            if alike
            else f"{'it' if clauses else subject} is {outcome} {by}{more}"
        )
    return f"{'; '.join(clauses)}."


def _outcome(comparisons: Sequence[Comparison]) -> _Outcome:
    """Return the outcome of one criterion."""
    by = {kind: [c.other for c in comparisons if c.corrected == kind] for kind in ("win", "loss", "draw", "undefined")}
    unknown = f", and it cannot be compared with {_few(by['undefined'])}" if by["undefined"] else ""
    if len(by["undefined"]) == len(comparisons):
        return False, f"not comparable with {_few(by['undefined'])}", ""
    if not by["win"] and not by["loss"]:
        several = len(by["draw"]) > 1
        return True, f"any of the {len(by['draw'])} other methods" if several else by["draw"][0], unknown
    parts = []
    if by["win"]:
        wins, of = len(by["win"]), len(comparisons)
        whole = by["win"][0] if of == 1 else "both other methods" if of == 2 else f"all {of} other methods"
        parts.append(f"better than {whole if wins == of else f'{wins} of {of} other methods'}")
    if by["loss"]:
        parts.append(f"worse than {listed(by['loss'])}")
    even = f" (no difference from {_few(by['draw'])} can be shown)" if by["draw"] else ""
    return False, " and ".join(parts), even + unknown


def _few(names: Sequence[str]) -> str:
    return listed(names) if len(names) <= _NAMED else f"{len(names)} others"
