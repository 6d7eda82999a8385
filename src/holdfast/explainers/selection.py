"""Greedy selection: a few features join the relevant set at a time, then all others are valued again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress, memory_budget
from holdfast.criteria.criterion import Criterion
from holdfast.explainers.estimators import Estimate
from holdfast.explainers.explainer import never_changed, uninformative_orders
from holdfast.ranking import Ranking, features_of
from holdfast.sizes import Size, size_of

Valuation = Callable[[Tensor, Tensor, int, Tensor], Estimate]
"""``value(chosen, unchosen, turn, wanted)``: the values of ``unchosen [B, d]`` features, given ``chosen [B, d]`` ones.

Only the order of the best ``wanted [B]`` features matters.
"""


def _within(size: Size, features: int) -> Size:
    """Return a number of features as at most all of them: a preset for texts meets texts of one word."""
    return min(size, max(features, 1)) if isinstance(size, int) else size


@dataclass(frozen=True)
class Selection:
    """The settings of a greedy selection.

    Attributes:
        objective: The criterion whose values are optimised, in the direction that is better.
        budget: How many features to choose: a share (float) or a number (int).
        step: How many features join at a time: a share or a number.
    """

    objective: Criterion
    budget: Size
    step: Size

    def unchosen(self, features: int) -> list[int]:
        """Return how many features are unchosen at each turn, for a case with this many features."""
        count = torch.tensor([features])
        goal, joins = (int(size_of(_within(size, features), count)) for size in (self.budget, self.step))
        return [features - taken for taken in range(0, goal, joins)]

    def rank(
        self,
        cases: Cases,
        valuation: Callable[[Cases], Valuation],
        bytes_a_case: int,
        method: str,
        progress: Progress | None,
    ) -> Ranking:
        """Rank features by the turn in which they join; the rest follow by their last values.

        Args:
            cases: The cases.
            valuation: From a block of cases to the function that values their features.
            bytes_a_case: About the memory that the valuation of one case needs. It limits the cases of a block.
            method: The explainer, as text.
            progress: Called with (chosen, to choose) features of all cases.

        Returns:
            The ranking.

        Raises:
            HoldfastError: No change of the decision was found for any case.
        """
        count = features_of(cases).sum(1)
        goal, joins = (size_of(_within(size, int(count.max())), count) for size in (self.budget, self.step))
        before, total, parts = 0, int(goal.sum()), []
        for block in torch.arange(len(cases)).split(max(1, memory_budget(cases.x.device) // max(1, bytes_a_case))):
            span = slice(int(block[0]), int(block[-1]) + 1)
            part = cases[span]

            def report(taken: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + taken, total)

            parts.append(_select(part, self.objective, goal[span], joins[span], valuation(part), report))
            before += int(goal[span].sum())
        return _joined(parts, cases, count, method, self.objective)


class _Selected(NamedTuple):
    """The result for a block of cases."""

    place: Tensor  # [B, d]: the place of every feature in the order
    uncertain: Tensor | None  # [B]
    never: Tensor  # [B]: the decision never changed
    equal: Tensor  # [B]: all features had the same value at first


def _joined(parts: list[_Selected], cases: Cases, count: Tensor, method: str, objective: Criterion) -> Ranking:
    """Return the ranking of all blocks."""
    place, never, equal = (
        torch.cat(values) for values in zip(*((p.place, p.never, p.equal) for p in parts), strict=True)
    )
    proven = never.clone()
    if bool(never.any()):
        proven[never] = objective.unchangeable(cases[never])
    if bool(never.all()):
        raise never_changed(len(cases), bool(proven.all()))
    known = any(part.uncertain is not None for part in parts)  # a block that never changes has no errors
    uncertain = [
        torch.ones_like(part.never, dtype=torch.float) if part.uncertain is None else part.uncertain for part in parts
    ]
    equal = equal & (count > 1)
    return Ranking(
        place.argsort(1),
        (1 - place / count[:, None]).clamp_min(0).to(cases.x.dtype),  # padding has the last places
        count,
        method,
        torch.cat(uncertain) if known else None,
        uninformative_orders(never, equal, proven) + cases.model.notes,
        never | equal,
    )


def _select(
    cases: Cases, objective: Criterion, goal: Tensor, joins: Tensor, value: Valuation, report: Callable[[int], None]
) -> _Selected:
    """Choose ``goal [B]`` features, ``joins [B]`` at a time."""
    present = features_of(cases)
    chosen, taken = torch.zeros_like(present), torch.zeros_like(goal)
    place = torch.zeros_like(present, dtype=torch.long)
    doubtful, cuts, equal = torch.zeros_like(goal), 0, torch.zeros_like(goal, dtype=torch.bool)
    changed = torch.zeros_like(goal, dtype=torch.bool)
    # How many features are chosen after each turn is known at once: asking a GPU at every turn would make it wait.
    plan = list(zip(goal.tolist(), joins.tolist(), present.sum(1).tolist(), strict=True))
    searched, turns = False, max(-(-most // max(1, step)) for most, step, _ in plan)
    for turn in range(turns):
        unchosen = present & ~chosen
        wanted = unchosen.sum(1) if turn == turns - 1 else torch.minimum(joins, goal - taken)  # the rest follow at last
        estimate = value(chosen, unchosen, turn, wanted)
        changed = changed | estimate.changed
        score = (estimate.values if objective.higher_is_better else -estimate.values).masked_fill(~unchosen, -math.inf)
        if turn == 0:
            equal = score.amax(1) == score.masked_fill(~unchosen, math.inf).amin(1)
            if not bool(changed.any()):
                changed, searched = ~never_changes(cases, objective, changed), True
                if not bool(changed.any()):  # a model that never changes its decision deserves no more queries
                    break
        rank = score.argsort(dim=1, descending=True, stable=True).argsort(1)
        new = rank < torch.minimum(joins, goal - taken)[:, None]
        done = [min(most, (turn + 1) * step) for most, step, _ in plan]
        left = any(number < count for number, (_, _, count) in zip(done, plan, strict=True))
        if estimate.error is not None and left:
            next_best = score.masked_fill(new, -math.inf).amax(1, keepdim=True)
            doubtful, cuts = doubtful + (new & (score - estimate.error <= next_best)).sum(1), cuts + 1
        place = torch.where(new, taken[:, None] + rank, place)
        chosen, taken = chosen | new, taken + new.sum(1)
        report(sum(done))
    never = ~changed if searched else never_changes(cases, objective, changed)
    later = score.masked_fill(chosen, -math.inf).argsort(dim=1, descending=True, stable=True).argsort(1)
    place = torch.where(chosen, place, taken[:, None] + later)
    return _Selected(place, torch.where(never | equal, 1, doubtful / taken) if cuts else None, never, equal)


def never_changes(cases: Cases, objective: Criterion, changed: Tensor) -> Tensor:
    """Return where no change of the decision is found even if every feature may be perturbed, bool ``[B]``.

    Args:
        cases: The cases.
        objective: What is optimised.
        changed: Bool ``[B]``: where a change was found before, so that nothing is measured.
    """
    never = ~changed
    if bool(never.any()):
        part = cases[never]
        relevant = torch.full((len(part), 1, cases.features.count), not objective.higher_is_better)
        never = never.masked_scatter(never, torch.isinf(objective(part, relevant.to(cases.x.device)))[:, 0])
    return never
