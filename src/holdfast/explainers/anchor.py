"""Explanations by a rule that holds: features that, kept, keep the decision for most neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.ranking import Ranking, features_of
from holdfast.reference import Given, Reference, read_reference, reference_points


@dataclass(frozen=True)
class Rule:
    """An anchor: while ``features`` are kept, the decision stays for ``precision`` of the neighbours.

    ``low`` bounds the precision from below. ``coverage`` is the share of neighbours that the rule speaks of; ``held``
    whether it is as precise as was asked for.
    """

    features: tuple[int, ...]
    precision: float
    low: float
    coverage: float
    held: bool


@dataclass(frozen=True)
class Anchor(Explainer):
    """Anchors: a beam search for the shortest rule of ``precision``, its samples shared out by KL-LUCB.

    A neighbour takes each feature outside the rule from the reference with probability ``swap``; given ``references
    [N, *shape]``, such as the rows of a table, it takes all of them from a random row, and the coverage counts rows in
    the same quarter of each kept column. The rule's features come first, in the order they joined, the others in the
    order of their precision alone. For tokens, columns and patches: every round asks about every feature, and stops at
    ``most_rows`` rows. A rule whose precision is not settled by then is not called an anchor.
    """

    references: Tensor | Given | None = None
    reference: Reference = 0.0
    precision: float = 0.95
    delta: float = 0.1
    tolerance: float = 0.1
    beam: int = 2
    batch: int = 32
    most_features: int = 8
    most_rows: int = 20_000
    swap: float = 0.5
    seed: int = 0
    source: ClassVar[str] = "Ribeiro et al. 2018"
    needs: ClassVar[tuple[str, ...]] = ("reference",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", read_reference(self.reference))
        if self.references is not None:
            object.__setattr__(self, "references", Given.inputs(self.references))
        shares = (self.precision, self.delta, self.tolerance, self.swap)
        counts = (self.beam, self.batch, self.most_features, self.most_rows)
        if not all(0 < share < 1 for share in shares) or not all(isinstance(n, int) and n >= 1 for n in counts):
            raise HoldfastError(
                "Anchor needs precision, delta, tolerance and swap between 0 and 1, and whole beam, batch, "
                f"most_features and most_rows >= 1, got {self}."
            )

    def __call__(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        found = self._find(cases, progress)
        scores = torch.stack([scores for _, scores in found]).to(cases.x)
        notes = tuple(
            f"case {case}: {'an anchor' if rule.held else 'no anchor; the best rule'} of {len(rule.features)} features "
            f"has precision {rule.precision:.3f} (at least {rule.low:.3f}) and coverage {rule.coverage:.3g}."
            for case, (rule, _) in enumerate(found)
        )
        return replace(Ranking.by_score(cases, scores, repr(self), self.seed), notes=notes)

    def find(self, cases: Cases, progress: Progress | None = None) -> list[Rule]:
        """The rule found for every case."""
        return [rule for rule, _ in self._find(cases, progress)]

    def _find(self, cases: Cases, progress: Progress | None) -> list[tuple[Rule, Tensor]]:
        """The rule of every case, and scores ``[d]`` by which it comes first."""
        cases.model.require_eval()
        points = reference_points(cases, self.reference, self.seed)
        found = []
        for case in range(len(cases)):
            found.append(self._search(_Neighbours(self, cases[case], points[case : case + 1])))
            if progress is not None:
                progress(case + 1, len(cases))
        return found

    def _search(self, neighbours: _Neighbours) -> tuple[Rule, Tensor]:
        alone: Tensor | None = None
        beam: list[tuple[int, ...]] = [()]
        best: Rule | None = None
        players = neighbours.players
        for _ in range(min(self.most_features, len(players))):
            wider = [(*rule, feature) for rule in beam for feature in players if feature not in rule]
            arms = _Arms(list({frozenset(rule): rule for rule in wider}.values()), neighbours, self)
            chosen = arms.best(min(self.beam, len(arms.rules)))
            if alone is None:
                alone = torch.full((neighbours.count,), -1.0)
                alone[torch.tensor([rule[0] for rule in arms.rules])] = arms.mean().float()
            rules = [arms.settle(arm) for arm in chosen]
            best = max(rules if best is None else [best, *rules], key=lambda rule: (rule.held, _merit(rule)))
            if best.held:
                break
            beam = [rule.features for rule in rules]
        if best is None or alone is None:  # nothing differs from the reference: the empty rule holds
            return Rule((), 1.0, 1.0, 1.0, True), torch.zeros(neighbours.count)
        for place, feature in enumerate(best.features):
            alone[feature] = 2 + len(best.features) - place
        return best, alone


def _merit(rule: Rule) -> tuple[float, float]:
    """Of rules that hold the one that speaks of most neighbours, of others the most precise."""
    return (rule.coverage, rule.precision) if rule.held else (rule.precision, rule.coverage)


class _Neighbours:
    """Neighbours of one case: how many keep the decision while a rule's features are kept."""

    def __init__(self, settings: Anchor, case: Cases, point: Tensor):
        self._settings, self._case, self._point = settings, case, point
        self._generator = torch.Generator().manual_seed(settings.seed % 2**63)
        self.count = case.features.count
        self._rows: Tensor | None = None
        if settings.references is not None:
            given = Given.inputs(settings.references).fitting(case.x)
            self._rows = given
            edges = torch.quantile(given.flatten(1), torch.tensor([0.25, 0.5, 0.75]).to(given), dim=0)
            quarter = [(rows.flatten(1)[:, None] > edges).sum(1) for rows in (given, case.x)]
            other = (quarter[0] != quarter[1]).reshape(given.shape).to(given)
            self._agrees = case.features.pool(other) == 0  # [N, d]
            differs = features_of(case)[0]
        else:
            differs = case.features.pool((case.x != point).to(case.x))[0] > 0
        self.players: list[int] = differs.nonzero()[:, 0].tolist()

    def kept(self, rules: list[tuple[int, ...]], draws: int) -> Tensor:
        """For each rule, how many of ``draws`` new neighbours keep the decision."""
        fixed = torch.zeros(len(rules), self.count, dtype=torch.bool)
        for row, rule in enumerate(rules):
            fixed[row, list(rule)] = True
        fixed = fixed.repeat_interleave(draws, 0)
        x, total = self._case.x, len(fixed)
        if self._rows is None:
            keep = fixed | (torch.rand(total, self.count, generator=self._generator) >= self._settings.swap)
            other = self._point
        else:
            keep = fixed
            other = self._rows[torch.randint(len(self._rows), (total,), generator=self._generator)]
        keep = self._case.features.expand(keep.to(x.device), torch.zeros(total, dtype=torch.long, device=x.device))
        free = self._case.features.ids >= 0
        decided = self._case.model(torch.where(keep | ~free, x, other)).argmax(1)
        target = int(self._case.target[0])
        same = decided == self._case.label[0] if target == ANY else decided != target
        return same.view(len(rules), draws).sum(1).cpu()

    def coverage(self, rule: tuple[int, ...]) -> float:
        if self._rows is None:
            return float((1 - self._settings.swap) ** len(rule))
        return float(self._agrees[:, list(rule)].all(1).float().mean())


class _Arms:
    """Rules as the arms of a bandit: KL-LUCB (Kaufmann & Kalyanakrishnan 2013) finds those of highest precision."""

    def __init__(self, rules: list[tuple[int, ...]], neighbours: _Neighbours, settings: Anchor):
        self.rules, self._neighbours, self._settings = rules, neighbours, settings
        self._asked = torch.zeros(len(rules), dtype=torch.double)
        self._kept = torch.zeros(len(rules), dtype=torch.double)
        self._draw(list(range(len(rules))))

    def mean(self) -> Tensor:
        return self._kept / self._asked

    def best(self, count: int) -> list[int]:
        """The ``count`` arms of highest precision, up to the tolerance, with probability ``1 - delta``."""
        turn = 1
        while True:
            order = self.mean().argsort(descending=True, stable=True)
            top, rest = order[:count], order[count:]
            low, high = self._bounds(_exploration(len(self.rules), turn, self._settings.delta))
            if not len(rest):
                return list(map(int, top))
            weak, strong = int(top[low[top].argmin()]), int(rest[high[rest].argmax()])
            settled = float(high[strong] - low[weak]) <= self._settings.tolerance
            if settled or float(self._asked.sum()) >= self._settings.most_rows:
                return list(map(int, top))
            self._draw([weak, strong])
            turn += 1

    def settle(self, arm: int) -> Rule:
        """Ask until it is clear whether the arm is as precise as wanted, or rows run out."""
        wanted, slack = self._settings.precision, self._settings.tolerance
        rows = float(self._asked[arm]) + self._settings.most_rows
        while True:
            low, high = self._bounds(math.log(1 / self._settings.delta))
            mean = float(self.mean()[arm])
            unclear = (mean >= wanted and float(low[arm]) < wanted - slack) or (
                mean < wanted and float(high[arm]) >= wanted + slack
            )
            if not unclear or float(self._asked[arm]) >= rows:
                break
            self._draw([arm])
        held = mean >= wanted and float(low[arm]) >= wanted - slack
        rule = self.rules[arm]
        return Rule(rule, mean, float(low[arm]), self._neighbours.coverage(rule), held)

    def _draw(self, arms: list[int]) -> None:
        which = torch.tensor(arms)
        self._kept[which] += self._neighbours.kept([self.rules[arm] for arm in arms], self._settings.batch)
        self._asked[which] += self._settings.batch

    def _bounds(self, exploration: float) -> tuple[Tensor, Tensor]:
        """The least and largest precision whose divergence from the mean is within the exploration rate."""
        mean, level = self.mean(), exploration / self._asked
        return _edge(mean, level, torch.zeros_like(mean)), _edge(mean, level, torch.ones_like(mean))


def _edge(mean: Tensor, level: Tensor, far: Tensor) -> Tensor:
    """Bisection between the mean and ``far`` for the point where the Bernoulli divergence reaches the level."""
    near = mean.clone()
    for _ in range(40):
        middle = (near + far) / 2
        inside = _divergence(mean, middle) <= level
        near, far = torch.where(inside, middle, near), torch.where(inside, far, middle)
    return near


def _divergence(p: Tensor, q: Tensor) -> Tensor:
    tiny = 1e-12
    p, q = p.clamp(tiny, 1 - tiny), q.clamp(tiny, 1 - tiny)
    return p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()


def _exploration(arms: int, turn: int, delta: float) -> float:
    """The rate of KL-LUCB, ``log(k n t^a / delta)`` plus its own logarithm, with the authors' k and a."""
    rate = math.log(405.5 * arms * turn**1.1 / delta)
    return rate + math.log(rate)
