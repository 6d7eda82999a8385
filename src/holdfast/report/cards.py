"""Example cards: a few inputs, each explained by the best method and by a baseline, with radii to compare."""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.experiment.results import Results
from holdfast.explainers.random import Random
from holdfast.explanation import HELD, MOVED, SUBSETS, Explanation
from holdfast.modalities.modality import Modality
from holdfast.modalities.shown import Shown
from holdfast.prose import counted
from holdfast.table import number

CARDS = 3
_SAME = 0.05  # radii that differ by a smaller share are called equal


class Pair(NamedTuple):
    """The two methods on the cards.

    Attributes:
        best: The method with the best mean value of the first robustness criterion, or the main one.
        baseline: A random order, or else the method with the worst mean value; None if there is no other method.
        why: A sentence on how they were chosen.
    """

    best: str
    baseline: str | None
    why: str


class Card(NamedTuple):
    """One example.

    Attributes:
        name: The name of the example.
        label: The explained class and its probability.
        image: A picture of the input as a data URL; empty if there is none.
        explanations: By method: the best one, then the baseline, if there is one.
        radii: Rows of a small table: what may move, and the radius of each method.
        compared: Sentences that compare the radii.
        more: Further facts about the explanation of the best method: pairs of a name and a value.
    """

    name: str
    label: str
    image: str
    explanations: dict[str, Shown]
    radii: list[tuple[str, ...]]
    compared: list[str]
    more: tuple[tuple[str, str], ...]


def pair_of(results: Results) -> Pair:
    """Return the best method of the tables and a baseline.

    Args:
        results: The results of an experiment.
    """
    measure = next((m for m in results.measures("table") if m.judge), None)
    areas = {} if measure is None else results.areas("table").get(measure.name, {})
    means = {name: float(area.double().mean()) for name, area in areas.items()}
    ranked = sorted(means, key=lambda name: means[name], reverse=measure is None or measure.higher)
    best = ranked[0] if len(ranked) > 1 else results.main
    others = [name for name in results.methods("table") if name != best]
    draws = [m.name for m in results.study.methods if m.name in others and Random.name in m.kinds]
    baseline = draws[0] if draws else ranked[-1] if len(ranked) > 1 else next(iter(others), None)
    if baseline is None or measure is None or len(ranked) < 2:
        return Pair(best, baseline, "")
    why = f"{best} has the best mean {measure.name} of {counted(len(ranked), 'method')}"
    return Pair(best, baseline, f"{why}; {baseline} {'is the baseline' if draws else 'has the worst'}.")


def cards(results: Results, modality: Modality, pair: Pair) -> list[Card]:
    """Return cards of the first examples of the gallery.

    Args:
        results: The results of an experiment.
        modality: The kind of its inputs.
        pair: The methods to show.
    """
    made = []
    for example, by_method in sorted(results.explanations().items()):
        of = {name: by_method[name] for name in (pair.best, pair.baseline) if name in by_method}
        if pair.best in of and can_be_shown(of[pair.best]):
            made.append(_card(results.study.examples[example], modality, {str(k): v for k, v in of.items()}))
    return made[:CARDS]


def can_be_shown(explanation: Explanation) -> bool:
    """Return whether an input can be shown: a text, a row of a table, or an image with one or three channels."""
    x = explanation.x
    return bool(explanation.text or explanation.cells) or (x.ndim == 3 and x.shape[0] in (1, 3))


def _card(name: str, modality: Modality, of: dict[str, Explanation]) -> Card:
    first, *others = of.items()
    shown = {method: modality.shown(one, method) for method, one in of.items()}
    radii = [(subset, *(_radius(one, which) for one in of.values())) for which, subset in enumerate(SUBSETS)]
    compared = _compared(first, others[0]) if others else []
    more = shown[first[0]].facts[len(SUBSETS) :]  # behind the radii
    return Card(name, first[1].prediction, modality.input_image(first[1]), shown, radii, compared, more)


def _radius(explanation: Explanation, which: int) -> str:
    new, radius = explanation.new_class[which], explanation.radius[which]
    if new < 0:
        return "none exists (proven)" if explanation.proven[which] else "none found"
    return f"{number(radius)} → {explanation.classes[new]}"


def _compared(best: tuple[str, Explanation], other: tuple[str, Explanation]) -> list[str]:
    """Return what the radii of two methods say about them, where both have one."""
    (name, one), (baseline, two) = best, other
    sentences = []
    for which, subject, better in (
        (HELD, "with its features held", "larger"),
        (MOVED, "of its features alone", "smaller"),
    ):
        ours, theirs = one.radius[which], two.radius[which]
        if not (math.isfinite(ours) and math.isfinite(theirs) and theirs > 0):
            continue
        ratio = ours / theirs
        times = "as large as" if abs(ratio - 1) < _SAME else f"{number(ratio)} times"
        sentences.append(f"{name}: the smallest change {subject} is {times} that of {baseline} ({better} is better).")
    return sentences
