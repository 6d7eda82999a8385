"""The best order there is, by measuring every subset: for few features, and as an oracle for other explainers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer, never_changed, uninformative_orders
from holdfast.explainers.greedy import Greedy, Objective
from holdfast.explainers.selection import never_changes
from holdfast.models.model import Access, Model
from holdfast.ranking import Ranking, features_of
from holdfast.settings import Count
from holdfast.sizes import LARGEST, Size, size_of

_BLOCK = 256  # subsets measured in one call


@dataclass(frozen=True)
class BruteForce(Explainer):
    """The order with the best area under the objective, from 1 to ``budget`` features, of all orders.

    Every subset of up to ``budget`` features is measured once, and the best chain of subsets is found by dynamic
    programming. No other order has a better area ``trace(cases, ranking, objective, range(1, budget + 1)).auc()``: the
    best value where ``budget`` is 1. Features that are not chosen follow in the order of their values alone.

    Attributes:
        objective: The criterion to optimise: an instance, a class or a name. Default: that of ``Greedy``.
        budget: How many features to choose: a share (float) or a number (int).
        most_subsets: Refuse cases with more subsets than this.
    """

    objective: Objective = field(default_factory=lambda: Greedy().objective)
    budget: Size = LARGEST
    most_subsets: Count = 5000
    name: ClassVar[str] = "brute-force"
    source: ClassVar[str] = "exhaustive search; Bellman 1957"
    requires: ClassVar[Access] = Access.GRADIENTS

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        present = features_of(cases)
        count = present.sum(1)
        self._check(int(count.max()))
        place = torch.zeros_like(present, dtype=torch.long)
        flags = torch.zeros(2, len(cases), dtype=torch.bool, device=present.device)  # a change was seen; all are equal
        patterns, which = present.unique(dim=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            part = (which == number).nonzero()[:, 0]
            place[part], flags[:, part] = self._places(cases[part], pattern.nonzero()[:, 0], progress)
        changed, equal = flags
        never = never_changes(cases, self.objective, changed)
        proven = never.clone()
        if bool(never.any()):
            proven[never] = self.objective.unchangeable(cases[never])
        if bool(never.all()):
            raise never_changed(len(cases), bool(proven.all()))
        equal = equal & (count > 1)
        return Ranking(
            place.argsort(1),
            (1 - place / count[:, None]).clamp_min(0).to(cases.x.dtype),  # padding has the last places
            count,
            repr(self),
            None,
            uninformative_orders(never, equal, proven) + cases.model.notes,
            never | equal,
        )

    @property
    def needs(self) -> Access:
        return Greedy(self.objective).needs

    def adapted(self, model: Model) -> BruteForce:
        objective = Greedy(self.objective).adapted(model).objective
        return self if objective == self.objective else replace(self, objective=objective)

    def rows(self, features: int) -> int | None:
        each, subsets = self.objective.rows, self._subsets(features)
        return None if each is None or subsets > self.most_subsets else each * subsets

    def _goal(self, features: int) -> int:
        """Return how many of so many features are chosen."""
        size = min(self.budget, features) if isinstance(self.budget, int) else self.budget
        return int(size_of(size, torch.tensor([features])))

    def _subsets(self, features: int) -> int:
        return sum(math.comb(features, size) for size in range(1, self._goal(features) + 1))

    def _check(self, features: int) -> None:
        if self._subsets(features) > self.most_subsets:
            raise HoldfastError(
                f"BruteForce measures every subset, and {features} features have {self._subsets(features):,} of up to "
                f"{self._goal(features)}, over most_subsets = {self.most_subsets:,}: use Greedy, fewer features or a "
                "smaller budget."
            )

    def _places(self, cases: Cases, players: Tensor, progress: Progress | None) -> tuple[Tensor, Tensor]:
        """Return the place of every feature, ``[B, d]``, and where a change was seen and where all values are equal.

        Args:
            cases: Cases that have the same features.
            players: The numbers of these features, ``[n]``.
            progress: Called with (done, total) subsets.
        """
        n, goal = len(players), self._goal(len(players))
        layers = [list(combinations(range(n), size)) for size in range(1, goal + 1)]
        relevant = torch.zeros(sum(map(len, layers)), cases.features.count, dtype=torch.bool, device=players.device)
        for row, members in enumerate(one for layer in layers for one in layer):
            relevant[row, players[list(members)]] = True
        values = _measured(self.objective, cases, relevant, progress)
        known, gain = torch.isfinite(values), _filled(self.objective, cases, relevant, values)
        by_size = gain.split([len(layer) for layer in layers], 1)
        chosen = _best_chain(layers, by_size, players.device)
        alone = by_size[0].scatter(1, chosen, -math.inf).argsort(dim=1, descending=True, stable=True)[:, : n - goal]
        order = players[torch.cat([chosen, alone], 1)]
        place = torch.full((len(cases), cases.features.count), n, device=players.device)
        place.scatter_(1, order, torch.arange(n, device=players.device).expand_as(order))
        equal = torch.stack([part.amax(1) == part.amin(1) for part in by_size]).all(0)
        return place, torch.stack([known.any(1), equal])


def _measured(objective: Criterion, cases: Cases, relevant: Tensor, progress: Progress | None) -> Tensor:
    """Return the objective of each subset ``[K, d]`` for each case, ``[B, K]``."""
    parts, done = [], 0
    for block in relevant.split(_BLOCK):
        parts.append(objective(cases, block.expand(len(cases), *block.shape)))
        done += len(block)
        if progress is not None:
            progress(done, len(relevant))
    return torch.cat(parts, 1)


def _filled(objective: Criterion, cases: Cases, relevant: Tensor, values: Tensor) -> Tensor:
    """Return values whose larger ones are better, with the ceiling in place of infinite ones, as in a curve."""
    ceiling = objective.ceiling(cases, relevant.expand(len(cases), *relevant.shape))
    known = torch.isfinite(values)
    beyond = 2 * values.masked_fill(~known, 0).abs().amax(1, keepdim=True) + 1  # without bounds nothing is as large
    filled = torch.where(known, values, torch.where(torch.isfinite(ceiling), ceiling, beyond))
    return filled if objective.higher_is_better else -filled


def _best_chain(layers: list[list[tuple[int, ...]]], gain: tuple[Tensor, ...], device: torch.device) -> Tensor:
    """Return the order of the players whose first 1, 2, ... features have the best area, ``[B, goal]``.

    Args:
        layers: For each size, the subsets of this size.
        gain: The value of each of these subsets for each case, ``[B, K]``; larger ones are better.
        device: Where to compute.
    """
    ends = {0, len(layers) - 1}  # the trapezoid rule counts both ends half
    weight = [0.5 if size in ends and len(layers) > 1 else 1.0 for size in range(len(layers))]
    best, steps = weight[0] * gain[0], []
    for size in range(1, len(layers)):
        index = {members: number for number, members in enumerate(layers[size - 1])}
        parents = [[index[one[:j] + one[j + 1 :]] for j in range(len(one))] for one in layers[size]]
        table = torch.tensor(parents, device=device)
        before, joined = best[:, table].max(2)
        best = weight[size] * gain[size] + before
        steps.append((table, joined))
    at = best.argmax(1)
    last_first = []
    for size in range(len(layers) - 1, 0, -1):
        table, joined = steps[size - 1]
        which = joined.gather(1, at[:, None])[:, 0]
        members = torch.tensor(layers[size], device=device)
        last_first.append(members[at, which])
        at = table[at, which]
    last_first.append(torch.tensor(layers[0], device=device)[at, 0])
    return torch.stack(last_first[::-1], 1)
