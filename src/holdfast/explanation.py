"""The explanation of one input: its relevant features, and the smallest changes that change the decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.chunks import Progress
from holdfast.columns import Cell
from holdfast.explainers.explainer import Explainer
from holdfast.features import Features
from holdfast.models.model import Queries
from holdfast.ranking import Ranking
from holdfast.robustness import Radii, Robustness

MOVED, HELD = 0, 1
SUBSETS = ("only these move", "these are held")
"""The two sets of features that may move: the relevant ones, or all others."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """A ranking of the features of one input, the relevant ones, and the smallest changes that change the decision.

    Pairs are for ``SUBSETS``: only the relevant features move, or they are fixed and all others move.

    Attributes:
        method: The name of the explainer.
        x: The input ``[*shape]``.
        features: The features of the input, with their names.
        classes: Names of the classes.
        label: The class that is explained.
        target: The other class of a targeted explanation ("why not this class?"); ``ANY`` for none.
        order: Numbers of the features, most relevant first, without padding.
        top: The number of relevant features, the first of ``order``.
        radius: The length of the smallest change found; ``inf`` if none was found.
        new_class: The class after the change; -1 if none was found.
        moves: The changes, ``[2, *shape]``; None if they were not stored.
        probability: The probability of the label at ``x``.
        new_probability: The probabilities of the new classes after the changes; NaN if there is none.
        bound: Which side of the true radius the radii lie on.
        proven: Whether it is proven that no smaller change exists.
        lower: Proven lower bounds on the radii; 0 where nothing is known.
        uncertain: The share of features whose rank is uncertain; None if unknown.
        cost: Rows put through the model for the ranking.
        judging: Rows put through the model for the radii.
        notes: Remarks on how to interpret the ranking and the radii.
        explainer: The settings of the explainer.
        judge: The settings of the robustness method.
        key: The key of its ranking in a store; empty if it is not stored.
        text: The text, if the input is one.
        spans: The start and end of each word in the text, by feature.
        replacements: Real words or values that the smallest change leads to, by feature.
        witness: The inputs after the changes, ``[2, *shape]``, if the model has a domain: in a row of a table, adding a
            move may round a number. None otherwise.
        cells: The columns, if the input is a row of a table.
        extra: Further facts for this kind of input: pairs of a name and a value.
    """

    method: str
    x: Tensor
    features: Features
    classes: tuple[str, ...]
    label: int
    target: int
    order: tuple[int, ...]
    top: int
    radius: tuple[float, float]
    new_class: tuple[int, int]
    moves: Tensor | None
    probability: float
    new_probability: tuple[float, float]
    bound: str = "upper"
    proven: tuple[bool, bool] = (False, False)
    lower: tuple[float, float] = (0.0, 0.0)
    uncertain: float | None = None
    cost: Queries = field(default_factory=Queries)
    judging: Queries = field(default_factory=Queries)
    notes: tuple[str, ...] = ()
    explainer: str = ""
    judge: str = ""
    key: str = ""
    text: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    replacements: Mapping[int, str] = field(default_factory=dict)
    witness: Tensor | None = None
    cells: tuple[Cell, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def relevant(self) -> tuple[int, ...]:
        """The relevant features, most relevant first."""
        return self.order[: self.top]

    @property
    def relevant_mask(self) -> Tensor:
        """Bool, broadcastable to ``x``: the coordinates of the relevant features."""
        chosen = torch.zeros(1, self.features.count, dtype=torch.bool)
        chosen[0, list(self.relevant)] = True
        return self.features.expand(chosen)[0]

    @property
    def heat(self) -> Tensor:
        """The rank of each coordinate's feature, from 1 (first) to 0 (last), broadcastable to ``x``."""
        heat = torch.zeros(1, self.features.count)
        heat[0, list(self.order)] = torch.linspace(1, 0, len(self.order))
        return torch.where(self.features.ids >= 0, self.features.spread(heat), 0)[0]

    @property
    def feature_changes(self) -> Tensor | None:
        """The smallest change of the relevant features, summed over each feature, ``[d]``; None without ``moves``."""
        return None if self.moves is None else self.features.pool(self.moves[MOVED][None])[0]

    @property
    def question(self) -> str:
        """The question that is answered, such as "why 7 and not 9?"."""
        return question(self.classes, self.label, self.target)

    @property
    def prediction(self) -> str:
        """The explained class and its probability."""
        return f"{self.classes[self.label]} ({self.probability:.0%})"

    def radius_text(self, which: int) -> str:
        """Return a radius as text; ``which`` is an index of ``SUBSETS``."""
        if math.isinf(self.radius[which]):
            return "unreachable (proven)" if self.proven[which] else "censored"
        return f"at least {self.radius[which]:.4g}" if self.bound == "lower" else f"{self.radius[which]:.4g}"

    def bound_text(self, which: int) -> str:
        """Return what is known of a finite radius: ``"exact"``, or on which side the true one lies."""
        if self.bound != "exact":
            return f"{self.bound} bound"
        if self.proven[which]:
            return "exact"
        return f"upper bound, at least {self.lower[which]:.4g}" if self.lower[which] > 0 else "upper bound"

    def change_text(self, which: int) -> str:
        """Return the effect of a smallest change as text; ``which`` is an index of ``SUBSETS``."""
        if self.new_class[which] < 0:
            return "no smaller change exists" if self.proven[which] else "no change found"
        return f"changes to {self.classes[self.new_class[which]]} ({self.new_probability[which]:.0%})"


def question(classes: Sequence[str], label: int, target: int) -> str:
    """Return the question that an explanation answers, such as "why 7 and not 9?".

    Args:
        classes: Names of the classes.
        label: The class that is explained.
        target: The other class; ``ANY`` for none.
    """
    return f"why {classes[label]}" + (f" and not {classes[target]}?" if target != ANY else "?")


def explain_cases(
    cases: Cases,
    method: str,
    explainer: Explainer,
    judge: Robustness,
    size: float | int,
    progress: Progress | None = None,
    judging: Progress | None = None,
) -> list[Explanation]:
    """Rank the features of every case, and measure both radii of the first ones.

    Args:
        cases: The cases to explain.
        method: The name of the explainer.
        explainer: Ranks the features.
        judge: Measures the radii.
        size: The size of the relevant set: a share (float) or a number (int).
        progress: Called with (done, total) during the ranking.
        judging: Called with (done, total) while radii are measured.

    Returns:
        One explanation for each case.
    """
    before = cases.model.queries
    ranking = explainer(cases, progress)
    cost = cases.model.queries - before
    return [
        replace(one, cost=cost, explainer=repr(explainer))
        for one in judge_ranking(cases, method, ranking, judge, size, judging)
    ]


def judge_ranking(
    cases: Cases,
    method: str,
    ranking: Ranking,
    judge: Robustness,
    size: float | int,
    progress: Progress | None = None,
) -> list[Explanation]:
    """Measure both radii of the first features of a ranking.

    Args:
        cases: The cases of the ranking.
        method: The name of the explainer.
        ranking: The ranking of the features.
        judge: Measures the radii.
        size: The size of the relevant set: a share (float) or a number (int).
        progress: Called with (done, total) while radii are measured.

    Returns:
        One explanation for each case.
    """
    relevant = ranking.top([size])
    radii = judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    model = cases.model
    before = model.probabilities(model(cases.x, exact=True)).gather(1, cases.label[:, None])[:, 0]
    after = model.probabilities(model(radii.witness.flatten(0, 1), exact=True))
    after = after.gather(1, radii.new_class.flatten().clamp_min(0)[:, None]).view_as(radii.radius)
    after = after.masked_fill(radii.new_class < 0, math.nan)
    return [
        Explanation(
            method=method,
            x=cases.x[case].cpu(),
            features=cases[case].features.bind(cases.x[:1].cpu()),
            classes=model.classes,
            label=int(cases.label[case]),
            target=int(cases.target[case]),
            order=tuple(ranking.order[case, : int(ranking.count[case])].tolist()),
            top=int(relevant[case, 0].sum()),
            radius=_pair(radii.radius[case]),
            new_class=_whole_pair(radii.new_class[case]),
            moves=(radii.witness[case] - cases.x[case]).cpu(),
            probability=float(before[case]),
            new_probability=_pair(after[case]),
            bound=radii.bound,
            proven=(bool(radii.proven[case, MOVED]), bool(radii.proven[case, HELD])),
            lower=_pair(radii.lower[case]),
            witness=None if model.domain is None else radii.witness[case].cpu(),
            uncertain=None if ranking.uncertain is None else float(ranking.uncertain[case]),
            judging=radii.queries,
            notes=_notes(ranking, radii, case, int(relevant[case, 0].sum())),
            explainer=ranking.method,
            judge=radii.method,
        )
        for case in range(len(cases))
    ]


def _notes(ranking: Ranking, radii: Radii, case: int, top: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*ranking.notes, *_ties(ranking, case, top), *radii.notes]))


def _ties(ranking: Ranking, case: int, top: int) -> tuple[str, ...]:
    """Return a note if features on both sides of the cut have equal scores."""
    along = ranking.scores[case].gather(0, ranking.order[case])[: int(ranking.count[case])]
    if not 0 < top < len(along) or float(along[top - 1]) != float(along[top]):
        return ()
    equal = int((along[:top] == along[top]).sum())
    return (
        f"{equal} of the {top} relevant features have the same score as some that are not: the seed chose among them.",
    )


def _pair(values: Tensor) -> tuple[float, float]:
    first, second = values.tolist()
    return float(first), float(second)


def _whole_pair(values: Tensor) -> tuple[int, int]:
    first, second = values.tolist()
    return int(first), int(second)
