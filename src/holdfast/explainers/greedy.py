"""The paper's explanations: search for the features that optimise an objective, a few at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress, memory_budget
from holdfast.criteria.criterion import Criterion
from holdfast.criteria.robustness import RobustnessRest
from holdfast.draws import mixed
from holdfast.errors import HoldfastError
from holdfast.explainers.estimators import BoundaryNormals, Draw, Estimate, Estimator, Regression
from holdfast.explainers.explainer import Explainer, never_changed, uninformative_orders
from holdfast.models.model import Access
from holdfast.ranking import Ranking, check_size, features_of, size_of
from holdfast.robustness import PGD, MinNorm

_BLOCK = 256  # features tried in one call
Valuing = Callable[[Tensor, Tensor, int], Estimate]
"""The values of the ``open_ [B, d]`` features beside those ``chosen [B, d]``, at a turn."""


def _searched(steps: int = 20) -> Criterion:
    return RobustnessRest(MinNorm(steps=steps))


@dataclass(frozen=True)
class GreedyAS(Explainer):
    """Greedy by set aggregation (section 4.2): the features of highest Banzhaf value join, then all are valued anew.

    ``budget`` is how many features to choose this way, a share (float) or a number (int): all of a case with fewer. The
    rest follow in the order of their last values. ``step`` features join at a time. Each valuation draws ``samples``
    random subsets of the unchosen features, each joining with probability ``inclusion``. Where features are few and
    join one at a time, as words do, the best ``shortlist`` of a turn are tried beside those chosen and the best of them
    joins.
    """

    objective: Criterion = field(default_factory=_searched)
    budget: float | int = 0.45
    step: float | int = 0.0125
    samples: int = 8
    inclusion: float = 0.2
    estimator: Estimator = field(default_factory=BoundaryNormals)
    shortlist: int = 1
    seed: int = 0
    name: ClassVar[str] = "greedy-as"
    presets: ClassVar[tuple[str, ...]] = ("quick", "thorough", "words", "paper")
    source: ClassVar[str] = "Hsieh et al. 2021, section 4.2"
    requires: ClassVar[Access] = Access.GRADIENTS

    def __post_init__(self) -> None:
        if not isinstance(self.samples, int) or self.samples < 1 or not 0 <= self.inclusion < 1:
            raise HoldfastError(
                f"samples must be a number >= 1 and inclusion in [0, 1), got {self.samples} and {self.inclusion}."
            )
        _check_objective(self.objective)
        if not isinstance(self.estimator, Estimator) or not isinstance(self.seed, int):
            raise HoldfastError(f"expected an estimator and a whole seed, got {self.estimator!r} and {self.seed!r}.")
        for name, size in (("budget", self.budget), ("step", self.step)):
            check_size(size, name)
        if not isinstance(self.shortlist, int) or self.shortlist < 1 or (self.shortlist > 1 and self.step != 1):
            raise HoldfastError(
                f"shortlist must be a number >= 1, and 1 unless step is 1, got {self.shortlist!r} (step {self.step!r})."
            )

    @classmethod
    def quick(cls, objective: Criterion | None = None) -> GreedyAS:
        """For CPUs: a sixth of the gradients of ``default``."""
        return cls(
            _searched() if objective is None else objective,
            step=0.025,
            estimator=BoundaryNormals(steps=3, classes=4),
        )

    @classmethod
    def default(cls, objective: Criterion | None = None) -> GreedyAS:
        """The settings of the class."""
        return cls(_searched() if objective is None else objective)

    @classmethod
    def thorough(cls, objective: Criterion | None = None) -> GreedyAS:
        """Half as many features at a time, twice the subsets, every near class: ten times the gradients."""
        return cls(
            _searched() if objective is None else objective,
            step=0.00625,
            samples=16,
            estimator=BoundaryNormals(steps=12, classes=9),
        )

    @classmethod
    def words(cls, objective: Criterion | None = None) -> GreedyAS:
        """For texts of five words or more, beside which there may be shorter ones: five words, each the best of four.

        The search of 75 gradients looks towards three classes; an objective of your own should do as much.
        """
        return cls(
            _searched(steps=75) if objective is None else objective,
            budget=5,
            step=1,
            inclusion=0.1,
            estimator=BoundaryNormals(steps=3, classes=4),
            shortlist=4,
        )

    @classmethod
    def paper(cls, objective: Criterion | None = None) -> GreedyAS:
        """The released settings, flaws included: 5,000 subsets a step, no intercept, no pairs, inf = the norm of x."""
        return cls(
            RobustnessRest(PGD.paper()) if objective is None else objective,
            step=0.05,
            samples=5000,
            estimator=Regression(intercept=False, paired=False, censored="norm of x"),
        )

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        def valuing(part: Cases) -> Valuing:
            state: Any = None

            def value(chosen: Tensor, open_: Tensor, turn: int) -> Estimate:
                nonlocal state
                seed = mixed(self.seed, turn)
                draw = Draw(self.objective, part, chosen, open_, self.samples, self.inclusion, seed, state)
                estimate = self.estimator(draw)
                state = estimate.state
                return self._tried(part, chosen, open_, estimate) if self.shortlist > 1 else estimate

            return value

        self.estimator.check(self.samples, self.inclusion, int(features_of(cases).sum(1).max()))
        held = self.estimator.bytes_held(cases, self.samples)
        return _choose(self, cases, self.objective, self.budget, self.step, valuing, held, progress)

    @property
    def needs(self) -> Access:
        return max(self.estimator.requires, self.objective.needs)

    def _tried(self, cases: Cases, chosen: Tensor, open_: Tensor, estimate: Estimate) -> Estimate:
        """The same values, dealt out anew among the best few: by what each is worth beside those chosen.

        How sure the values are no longer tells how sure the choice is.
        """
        best = self.objective.higher_is_better
        score = estimate.values.masked_fill(~open_, -math.inf if best else math.inf)
        worth, few = score.topk(min(self.shortlist, score.shape[1]), 1, largest=best)
        tried = chosen[:, None].repeat(1, few.shape[1], 1).scatter_(2, few[..., None], True)
        measured = self.objective(cases, tried).masked_fill(~open_.gather(1, few), -math.inf if best else math.inf)
        order = measured.argsort(dim=1, descending=best, stable=True)
        values = estimate.values.scatter(1, few.gather(1, order), torch.where(torch.isinf(worth), 0, worth))
        return replace(estimate, values=torch.where(open_, values, estimate.values), error=None)

    def rows(self, features: int) -> int | None:
        turn = self.estimator.rows(self.objective, self.samples)
        tried = 0 if self.shortlist == 1 else self.objective.rows
        if turn is None or tried is None:
            return None
        return (turn + self.shortlist * tried) * len(_open_counts(features, self.budget, self.step))


@dataclass(frozen=True)
class OneStepBanzhaf(Explainer):
    """Every feature in the order of its Banzhaf value, estimated once with nothing chosen: the paper's ablation."""

    objective: Criterion = field(default_factory=_searched)
    samples: int = 8
    inclusion: float = 0.2
    estimator: Estimator = field(default_factory=BoundaryNormals)
    seed: int = 0
    name: ClassVar[str] = "one-step-banzhaf"
    source: ClassVar[str] = "Hsieh et al. 2021, the ablation"
    requires: ClassVar[Access] = Access.GRADIENTS

    def __post_init__(self) -> None:
        self._once()

    def _once(self) -> GreedyAS:
        return GreedyAS(self.objective, 1.0, 1.0, self.samples, self.inclusion, self.estimator, seed=self.seed)

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        return replace(self._once().rank(cases, progress), method=repr(self))

    @property
    def needs(self) -> Access:
        return self._once().needs

    def rows(self, features: int) -> int | None:
        return self._once().rows(features)


@dataclass(frozen=True)
class Greedy(Explainer):
    """Greedy (section 4.1): every unchosen feature is tried alone beside those chosen, the best ``step`` join.

    A search for each feature at each step: dear, and blind to features that matter only together.
    """

    objective: Criterion = field(default_factory=_searched)
    budget: float | int = 0.45
    step: float | int = 0.05
    name: ClassVar[str] = "greedy"
    source: ClassVar[str] = "Hsieh et al. 2021, section 4.1"
    requires: ClassVar[Access] = Access.GRADIENTS

    def __post_init__(self) -> None:
        _check_objective(self.objective)
        for name, size in (("budget", self.budget), ("step", self.step)):
            check_size(size, name)

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        def valuing(part: Cases) -> Valuing:
            return lambda chosen, open_, turn: self._value(part, chosen, open_)

        held = 2 * _BLOCK * cases.features.count  # which features may move
        return _choose(self, cases, self.objective, self.budget, self.step, valuing, held, progress)

    @property
    def needs(self) -> Access:
        return self.objective.needs

    def _value(self, cases: Cases, chosen: Tensor, open_: Tensor) -> Estimate:
        """The objective with each open feature in turn beside those chosen."""
        values = torch.full_like(chosen, math.inf, dtype=cases.x.dtype)
        candidates = (~open_).long().argsort(dim=1, stable=True)[:, : int(open_.sum(1).max())]
        for block in candidates.split(_BLOCK, 1):
            tried = chosen[:, None].repeat(1, block.shape[1], 1).scatter_(2, block[..., None], True)
            values.scatter_(1, block, self.objective(cases, tried))
        found = torch.isfinite(values)
        if not bool((found | ~open_).all()):
            # Censored ones come past all others, among themselves in the order of their linearised effect.
            effect = BoundaryNormals()(Draw(self.objective, cases, chosen, open_, 1, 0.0, seed=0)).values
            effect = effect / effect.abs().amax(1, keepdim=True).clamp_min(torch.finfo(effect.dtype).tiny)
            worst = values.masked_fill(~found, 0).amax(1, keepdim=True)
            values = torch.where(found, values, 2 * worst + 1 + effect)
        return Estimate(values, None, (found & open_).any(1))

    def rows(self, features: int) -> int | None:
        each = self.objective.rows
        return None if each is None else each * sum(_open_counts(features, self.budget, self.step))


# ---------------------------------------------------------------------- the greedy loop


def _open_counts(features: int, budget: float | int, step: float | int) -> list[int]:
    """How many features are open at each turn, when that many are there."""
    count = torch.tensor([features])
    goal, joins = (
        int(size_of(min(size, features) if isinstance(size, int) else size, count)) for size in (budget, step)
    )
    return [features - taken for taken in range(0, goal, joins)]


def _choose(
    explainer: Explainer,
    cases: Cases,
    objective: Criterion,
    budget: float | int,
    step: float | int,
    valuing: Callable[[Cases], Valuing],
    held: int,
    progress: Progress | None,
) -> Ranking:
    """Let the best features join, a few at a time, each time valuing those still open.

    As many cases together as memory allows, when the values of one take ``held`` bytes.
    """
    count = features_of(cases).sum(1)
    goal, joins = size_of(budget, count, "budget"), size_of(step, count, "step")
    before, total, parts = 0, int(goal.sum()), []
    for block in torch.arange(len(cases)).split(max(1, memory_budget(cases.x.device) // max(1, held))):
        span = slice(int(block[0]), int(block[-1]) + 1)
        part = cases[span]

        def told(taken: int, before: int = before) -> None:
            if progress is not None:
                progress(before + taken, total)

        parts.append(_grown(part, objective, goal[span], joins[span], valuing(part), told))
        before += int(goal[span].sum())
    place, dead, alike = (torch.cat([getattr(part, name) for part in parts]) for name in ("place", "dead", "alike"))
    if bool(dead.all()):
        raise never_changed(len(cases))
    known = any(part.uncertain is not None for part in parts)  # of a block that never turns nothing is
    uncertain = [
        torch.ones_like(part.dead, dtype=torch.float) if part.uncertain is None else part.uncertain for part in parts
    ]
    alike = alike & (count > 1)
    return Ranking(
        place.argsort(1),
        (1 - place / count[:, None]).clamp_min(0).to(cases.x.dtype),  # padding has the last places
        count,
        repr(explainer),
        torch.cat(uncertain) if known else None,
        uninformative_orders(dead, alike),
        dead | alike,
    )


class _Grown(NamedTuple):
    """The place of every feature ``[B, d]``, how unsettled the choice was, and cases whose order says nothing."""

    place: Tensor
    uncertain: Tensor | None
    dead: Tensor
    alike: Tensor


def _grown(
    cases: Cases, objective: Criterion, goal: Tensor, joins: Tensor, value: Valuing, told: Callable[[int], None]
) -> _Grown:
    present = features_of(cases)
    chosen, taken = torch.zeros_like(present), torch.zeros_like(goal)
    place = torch.zeros_like(present, dtype=torch.long)
    doubtful, cuts, alike = torch.zeros_like(goal), 0, torch.zeros_like(goal, dtype=torch.bool)
    turned = torch.zeros_like(goal, dtype=torch.bool)
    total, turn, asked = int(goal.sum()), 0, False
    while int(taken.sum()) < total:
        open_ = present & ~chosen
        estimate = value(chosen, open_, turn)
        turned = turned | estimate.changed
        score = (estimate.values if objective.higher_is_better else -estimate.values).masked_fill(~open_, -math.inf)
        if turn == 0:
            alike = score.amax(1) == score.masked_fill(~open_, math.inf).amin(1)
            if not bool(turned.any()):
                turned, asked = ~_dead(cases, objective, turned), True
                if not bool(turned.any()):  # no more is spent on a model that never turns
                    break
        rank = score.argsort(dim=1, descending=True, stable=True).argsort(1)
        new = rank < torch.minimum(joins, goal - taken)[:, None]
        rest_best = score.masked_fill(new, -math.inf).amax(1, keepdim=True)
        if estimate.error is not None and bool(torch.isfinite(rest_best).any()):
            doubtful, cuts = doubtful + (new & (score - estimate.error <= rest_best)).sum(1), cuts + 1
        place = torch.where(new, taken[:, None] + rank, place)
        chosen, taken, turn = chosen | new, taken + new.sum(1), turn + 1
        told(int(taken.sum()))
    dead = ~turned if asked else _dead(cases, objective, turned)
    later = score.masked_fill(chosen, -math.inf).argsort(dim=1, descending=True, stable=True).argsort(1)
    place = torch.where(chosen, place, taken[:, None] + later)
    return _Grown(place, torch.where(dead | alike, 1, doubtful / taken) if cuts else None, dead, alike)


def _dead(cases: Cases, objective: Criterion, turned: Tensor) -> Tensor:
    """Cases whose decision never changes, even with every feature free to move."""
    dead = ~turned
    if bool(dead.any()):
        part = cases[dead]
        relevant = torch.full((len(part), 1, cases.features.count), not objective.higher_is_better)
        dead = dead.masked_scatter(dead, torch.isinf(objective(part, relevant.to(cases.x.device)))[:, 0])
    return dead


def _check_objective(objective: object) -> None:
    if not isinstance(objective, Criterion):
        raise HoldfastError(f"objective must be a criterion such as RobustnessRest(), got {objective!r}.")
