"""Sentences on tests: which differences between methods hold after Holm's correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.analyses.significance import Comparison, Significance
from holdfast.prose import counted, listed

_FEW_CASES = 10  # with fewer, tests find only large differences
_FEW_NAMES = 2  # so many worse methods are named even if they are all others
_FEW_PAIRS = 2  # so many pairs without a difference are named one by one


def verdict(criterion: str, tests: Significance | None, names: Mapping[str, str]) -> str:
    """Return one sentence on the differences that hold by one criterion.

    Args:
        criterion: The name of the criterion.
        tests: All comparisons; None: there was nothing to compare.
        names: What each method is called, in the order in which they are named.
    """
    pairs = [] if tests is None else [one for one in tests.comparisons if one.criterion == criterion]
    if not pairs:
        return "there is one method, so nothing is compared."
    winners: dict[tuple[str, ...], list[str]] = {}  # those that are better than the same methods share a clause
    for name in names:
        losers = tuple(_loser(one) for one in pairs if _winner(one) == name)
        winners.setdefault(losers, []).append(name)
    said = [
        f"{listed([names[one] for one in better])} {'is' if len(better) == 1 else 'are'} better than "
        f"{_worse(losers, better, names)}"
        for losers, better in winners.items()
        if losers
    ]
    even = [one for one in pairs if one.corrected == "draw"]
    unknown = [one for one in pairs if one.corrected == "undefined"]
    if unknown:
        which = "" if len(unknown) == len(pairs) else f"{counted(len(unknown), 'pair')} of methods: "
        said.append(f"{which}too few cases to compare")
    if even:
        said.append(_draws(even, bool(said), names))
    return f"{'; '.join(said)}."


def how_tested(tests: Significance | None, cases: int) -> list[str]:
    """Return how the verdicts were tested, and how many more differences the tests show without the correction.

    Args:
        tests: All comparisons; None: there was nothing to compare.
        cases: The number of cases.
    """
    if tests is None or all(one.corrected == "undefined" for one in tests.comparisons):
        return []
    holding, raw = (_differences(tests, corrected) for corrected in (True, False))
    text = (
        f"Paired t-tests at {1 - tests.comparisons[0].level:.0%}, with Holm's correction over "
        f"{counted(len(tests.comparisons), 'comparison')}: {counted(holding, 'difference')} can be shown "
        f"({raw} without the correction)."
    )
    return [f"{text} So few cases can show only large differences." if cases < _FEW_CASES else text]


def _differences(tests: Significance, corrected: bool) -> int:
    counts = tests.counts(corrected)
    return counts["win"] + counts["loss"]


def _worse(losers: Sequence[str], better: Sequence[str], names: Mapping[str, str]) -> str:
    """Name the methods that others are better than."""
    if len(losers) > _FEW_NAMES and len(losers) + len(better) == len(names):
        return f"all {len(losers)} others"
    return listed([names[one] for one in losers])


def _draws(even: Sequence[Comparison], other: bool, names: Mapping[str, str]) -> str:
    pairs = [f"{names[one.method]} and {names[one.other]}" for one in even]
    if len(pairs) <= _FEW_PAIRS:
        return f"no difference between {listed(pairs, 'or between')} can be shown"
    which = "other " if other else ""
    return f"no {which}difference can be shown ({counted(len(pairs), 'pair')})"


def _winner(one: Comparison) -> str | None:
    return {"win": one.method, "loss": one.other}.get(one.corrected)


def _loser(one: Comparison) -> str:
    return one.other if one.corrected == "win" else one.method
