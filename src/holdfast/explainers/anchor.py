"""Explainers by rules: features that, if kept, keep the decision of most neighbours (anchors)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.chunks import Progress, chunked
from holdfast.draws import generator
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.models.model import Access
from holdfast.ranking import Ranking, features_of
from holdfast.reference import FixedReference, Reference, References, live_features, reference_points
from holdfast.settings import Between, Count


@dataclass(frozen=True)
class Rule:
    """A rule: if these features are kept, most neighbours have the same decision.

    Attributes:
        features: The features that are kept.
        precision: The share of neighbours with the same decision.
        low: A lower confidence bound on the precision.
        coverage: The share of all neighbours that the rule applies to.
        is_anchor: Whether the rule is as precise as required.
    """

    features: tuple[int, ...]
    precision: float
    low: float
    coverage: float
    is_anchor: bool

    def __str__(self) -> str:
        kind = "an anchor" if self.is_anchor else "no anchor; the best rule"
        number = "1 feature" if len(self.features) == 1 else f"{len(self.features)} features"
        return (
            f"{kind} of {number} has precision {self.precision:.3f} (at least {self.low:.3f}) and coverage "
            f"{self.coverage:.3g}"
        )


@dataclass(frozen=True)
class Anchor(Explainer):
    """Anchors: a beam search for the shortest rule of a required precision, with samples allocated by KL-LUCB.

    The features of the rule come first, in the order in which they joined. The others follow by their precision as a
    rule of one feature. Every round samples every feature, so use tokens, columns or patches, not pixels.

    Attributes:
        references: Inputs ``[N, *shape]``, such as the rows of a table. A neighbour then takes all features outside the
            rule from a random row, and the coverage counts rows in the same quartile of each kept column.
        reference: Without ``references``: what a neighbour's features outside the rule become.
        precision: The required precision.
        delta: The probability that the confidence bounds fail.
        tolerance: The precision difference that may stay unresolved.
        beam: How many rules of one length are extended.
        batch: Neighbours drawn for a rule at a time.
        most_features: The largest number of features in a rule.
        most_rows: Stop after this many rows, both when rules of one length are compared and when the precision of one
            is determined. A rule whose precision is undetermined by then is not an anchor.
        swap: Without ``references``: the probability that a feature outside the rule takes its reference value.
        seed: Seed of all draws.
    """

    references: References | None = None
    reference: Reference = 0.0
    precision: Between = 0.95
    delta: Between = 0.1
    tolerance: Between = 0.1
    beam: Count = 2
    batch: Count = 32
    most_features: Count = 8
    most_rows: Count = 20_000
    swap: Between = 0.5
    seed: int = 0
    name: ClassVar[str] = "anchor"
    source: ClassVar[str] = "Ribeiro et al. 2018"
    requires: ClassVar[Access] = Access.DECISIONS
    uses: ClassVar[tuple[str, ...]] = ("a reference value",)

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        results = self._find(cases, progress)
        scores = torch.stack([scores for _, scores in results]).to(cases.x)
        notes = tuple(f"case {case}: {rule}." for case, (rule, _) in enumerate(results))
        return replace(Ranking.by_score(cases, scores, repr(self), self.seed), notes=notes)

    def find(self, cases: Cases, progress: Progress | None = None) -> list[Rule]:
        """Search the rule of every case.

        Args:
            cases: What to explain.
            progress: Called with (done, total) cases.

        Returns:
            One rule for each case.
        """
        return [rule for rule, _ in self._find(cases, progress)]

    def _find(self, cases: Cases, progress: Progress | None) -> list[tuple[Rule, Tensor]]:
        """Return the rule of every case, and scores ``[d]`` by which its features come first."""
        most = int(features_of(cases).sum(1).max())
        if most * self.batch > self.most_rows:
            raise HoldfastError(
                f"Anchor samples every feature in every round, and {most} features x {self.batch} rows are over "
                f"most_rows = {self.most_rows}: use fewer features, such as patches, or raise most_rows."
            )
        points = reference_points(cases, self.reference, self.seed) if self.references is None else None
        results = []
        for case in range(len(cases)):
            one = cases[case]
            neighbours = _FromRows(self, one) if points is None else _FromReference(self, one, points[case : case + 1])
            results.append(self._search(neighbours))
            if progress is not None:
                progress(case + 1, len(cases))
        return results

    def _search(self, neighbours: _Neighbours) -> tuple[Rule, Tensor]:
        """Search the rule of one case; return it and the scores ``[d]`` of the features."""
        scores = torch.zeros(neighbours.features)
        best = _Arms([()], neighbours, self).settle(0)  # the empty rule, if hardly any feature matters
        beam: list[tuple[int, ...]] = [()]
        while not best.is_anchor and len(beam[0]) < min(self.most_features, len(neighbours.players)):
            wider = [(*rule, feature) for rule in beam for feature in neighbours.players if feature not in rule]
            arms = _Arms(list({frozenset(rule): rule for rule in wider}.values()), neighbours, self)
            rules = [arms.settle(arm) for arm in arms.best(min(self.beam, len(arms.rules)))]
            if beam == [()]:
                scores[[rule[0] for rule in arms.rules]] = arms.mean().float()
            best = max([best, *rules], key=_quality)
            beam = [rule.features for rule in rules]
        for place, feature in enumerate(best.features):
            scores[feature] = 2 + len(best.features) - place
        return best, scores


def _quality(rule: Rule) -> tuple[bool, float, float]:
    """Rank anchors by coverage and other rules by precision."""
    both = (rule.coverage, rule.precision) if rule.is_anchor else (rule.precision, rule.coverage)
    return rule.is_anchor, *both


class _Neighbours(ABC):
    """Neighbours of one case: how many of them have its decision if the features of a rule are kept."""

    def __init__(self, settings: Anchor, case: Cases, players: Tensor):
        self._settings, self._case = settings, case
        self._generator = generator(settings.seed)
        self.features = case.features.count
        self.players: list[int] = players[0].nonzero()[:, 0].tolist()

    @abstractmethod
    def coverage(self, rule: tuple[int, ...]) -> float:
        """Return the share of neighbours that a rule applies to."""

    @abstractmethod
    def draw(self, kept: Tensor) -> tuple[Tensor, Callable[[slice], Tensor]]:
        """Return the features that new neighbours keep, and what the others become; rules keep ``kept [R, d]``."""

    def count(self, rules: list[tuple[int, ...]], draws: int) -> Tensor:
        """Return for each rule how many of ``draws`` new neighbours have the decision."""
        fixed = torch.zeros(len(rules), self.features, dtype=torch.bool)
        for row, rule in enumerate(rules):
            fixed[row, list(rule)] = True
        keep, other = self.draw(fixed.repeat_interleave(draws, 0))
        case, target = self._case, int(self._case.target[0])
        free = case.features.ids >= 0

        def work(piece: slice) -> Tensor:
            rows = keep[piece].to(case.x.device)
            kept = case.features.expand(rows, torch.zeros(len(rows), dtype=torch.long, device=case.x.device))
            decided = case.model(torch.where(kept | ~free, case.x, other(piece)), exact=True).argmax(1)
            return decided == case.label[0] if target == ANY else decided != target

        same = torch.cat([part for _, part in chunked(work, len(keep), case.model.chunk(case.x, gradient=False))])
        return same.view(len(rules), draws).sum(1).cpu()


class _FromReference(_Neighbours):
    """Each feature outside the rule takes its reference value with a given probability."""

    def __init__(self, settings: Anchor, case: Cases, point: Tensor):
        super().__init__(settings, case, live_features(case, point))
        self._point = point

    def coverage(self, rule: tuple[int, ...]) -> float:
        return float((1 - self._settings.swap) ** len(rule))

    def draw(self, kept: Tensor) -> tuple[Tensor, Callable[[slice], Tensor]]:
        drawn = torch.rand(len(kept), len(self.players), generator=self._generator)  # nothing is drawn for padding
        stays = torch.zeros_like(kept)
        stays[:, self.players] = drawn >= self._settings.swap
        return kept | stays, lambda piece: self._point


class _FromRows(_Neighbours):
    """The features outside the rule come from a random row of the references."""

    def __init__(self, settings: Anchor, case: Cases):
        super().__init__(settings, case, features_of(case))
        x = case.x
        self._rows = FixedReference.inputs(settings.references).fitting(x)
        edges = torch.quantile(self._rows.flatten(1), torch.tensor([0.25, 0.5, 0.75]).to(x), dim=0)
        quarters = [(rows.flatten(1)[:, None] > edges).sum(1) for rows in (self._rows, x)]
        differs = (quarters[0] != quarters[1]).reshape(self._rows.shape).to(x)
        self._agrees = case.features.pool(differs) == 0  # [N, d]

    def coverage(self, rule: tuple[int, ...]) -> float:
        return float(self._agrees[:, list(rule)].all(1).float().mean())

    def draw(self, kept: Tensor) -> tuple[Tensor, Callable[[slice], Tensor]]:
        which = torch.randint(len(self._rows), (len(kept),), generator=self._generator).to(self._rows.device)
        return kept, lambda piece: self._rows[which[piece]]


class _Arms:
    """Rules as the arms of a bandit: KL-LUCB (Kaufmann & Kalyanakrishnan 2013) finds the most precise ones."""

    def __init__(self, rules: list[tuple[int, ...]], neighbours: _Neighbours, settings: Anchor):
        self.rules, self._neighbours, self._settings = rules, neighbours, settings
        self._drawn = torch.zeros(len(rules), dtype=torch.double)
        self._same = torch.zeros(len(rules), dtype=torch.double)
        self._draw(list(range(len(rules))))

    def mean(self) -> Tensor:
        """Return the precision of every rule among the neighbours drawn so far."""
        return self._same / self._drawn

    def best(self, count: int) -> list[int]:
        """Return the ``count`` most precise arms, up to the tolerance, with probability ``1 - delta``."""
        turn = 1
        while True:
            order = self.mean().argsort(descending=True, stable=True)
            top, rest = order[:count], order[count:]
            if not len(rest) or float(self._drawn.sum()) >= self._settings.most_rows:
                return list(map(int, top))
            low, high = self._bounds(_exploration(len(self.rules), turn, self._settings.delta))
            weak, strong = int(top[low[top].argmin()]), int(rest[high[rest].argmax()])
            if float(high[strong] - low[weak]) <= self._settings.tolerance:
                return list(map(int, top))
            self._draw([weak, strong])
            turn += 1

    def settle(self, arm: int) -> Rule:
        """Draw until it is determined whether the arm is precise enough, up to half the tolerance, or rows run out."""
        required, slack = self._settings.precision, self._settings.tolerance / 2
        limit = float(self._drawn[arm]) + self._settings.most_rows
        rate = math.log((1 + (self._settings.beam - 1) * len(self._neighbours.players)) / self._settings.delta)
        while True:
            mean = float(self.mean()[arm])
            low, high = (float(edge[arm]) for edge in self._bounds(rate))
            precise, refuted = mean >= required and low >= required - slack, high < required or high - low < slack
            if precise or refuted or float(self._drawn[arm]) >= limit:
                break
            self._draw([arm])
        rule = self.rules[arm]
        return Rule(rule, mean, low, self._neighbours.coverage(rule), precise)

    def _draw(self, arms: list[int]) -> None:
        which = torch.tensor(arms)
        self._same[which] += self._neighbours.count([self.rules[arm] for arm in arms], self._settings.batch)
        self._drawn[which] += self._settings.batch

    def _bounds(self, exploration: float) -> tuple[Tensor, Tensor]:
        """Return the smallest and largest precision whose divergence from the mean is within the exploration rate."""
        mean, level = self.mean(), exploration / self._drawn
        return _edge(mean, level, torch.zeros_like(mean)), _edge(mean, level, torch.ones_like(mean))


def _edge(mean: Tensor, level: Tensor, far: Tensor) -> Tensor:
    """Bisect between the mean and ``far`` for the point where the Bernoulli divergence reaches the level."""
    near = mean.clone()
    for _ in range(25):
        middle = (near + far) / 2
        inside = _divergence(mean, middle) <= level
        near, far = torch.where(inside, middle, near), torch.where(inside, far, middle)
    return near


def _divergence(p: Tensor, q: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of Bernoulli distributions."""
    tiny = 1e-12
    p, q = p.clamp(tiny, 1 - tiny), q.clamp(tiny, 1 - tiny)
    return p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()


def _exploration(arms: int, turn: int, delta: float) -> float:
    """Return the rate of KL-LUCB: ``log(k n t^a / delta)`` plus its logarithm, with the authors' k and a."""
    rate = math.log(405.5 * arms * turn**1.1 / delta)
    return rate + math.log(rate)
