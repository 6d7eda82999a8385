"""The nearest point at which an ensemble decides differently, with a proof, or bounds on its distance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.tree_ensembles.conflicts import solve_conflicts
from holdfast.tree_ensembles.ensemble import Floats, Integers, TreeEnsemble
from holdfast.tree_ensembles.geometry import Demand, Geometry, Point
from holdfast.tree_ensembles.leaves import Leaves
from holdfast.tree_ensembles.program import Answer, solve

_FIRST_BALL = 1.25  # the first ball, as a multiple of the radius within which nothing can change
_STEPS = (300, 1500)  # of the search over conflicts, for L1 and L2, and for Linf; after them a program is faster
_ROUGH_STEPS = (40, 300)  # where a tolerance is enough, to which a program comes early
_TIES = 4  # that are left out one by one; each takes a program
_PARTS = 13  # weights are compared with whole multiples of 1, 1/2, ... and 1/12
_WHOLE = 1e-12  # a smaller difference from a whole number is rounding
_GROWTH = 2.0  # of a ball that holds no change
_SAME = 1 + 1e-6  # two radii within this factor are one
_TIE = 2e-6  # the tolerance of the solver for each tree, as a share of the largest leaf


class Known(NamedTuple):
    """What is known before the search, and how precise it must be.

    Attributes:
        lower: No smaller move changes the decision.
        move: A move that may change it, ``[n]``; None: none is known.
        tolerance: The search may stop at a move that is at most this share longer than the lower bound.
    """

    lower: float = 0.0
    move: Floats | None = None
    tolerance: float = 0.0


_NOTHING = Known()


class Nearest(NamedTuple):
    """The nearest change of a decision.

    Attributes:
        move: The smallest move that was found, ``[n]``; None: none was found.
        lower: No smaller move changes the decision; ``inf``: no allowed move does.
        proven: Whether ``move`` is the smallest one, or there is none.
    """

    move: Floats | None
    lower: float
    proven: bool


def nearest(
    ensemble: TreeEnsemble,
    leaves: Leaves,
    point: Point,
    label: int,
    target: int | None,
    nodes: int,
    known: Known = _NOTHING,
) -> Nearest:
    """Find the nearest point with another class than ``label``, or with the class ``target``.

    Args:
        ensemble: The trees.
        leaves: Their leaves.
        point: The row and where it may move.
        label: The explained class.
        target: The class asked about; None: any other class.
        nodes: The largest number of branches of each mixed-integer program.
        known: What is known already, and how precise the answer must be.
    """
    search = _Search(ensemble, Geometry(leaves, point), label, target, nodes, known)
    if search.changed(np.zeros(len(point.x))):
        return Nearest(np.zeros(len(point.x)), 0.0, True)
    return search.run()


class _Search:
    """The best change so far, and the programs that look for a better one."""

    def __init__(
        self,
        ensemble: TreeEnsemble,
        geometry: Geometry,
        label: int,
        target: int | None,
        nodes: int,
        known: Known = _NOTHING,
    ):
        self.ensemble, self.geometry, self.label, self.target = ensemble, geometry, label, target
        self.nodes, self.known = nodes, known
        self.best = math.inf
        self.move: Floats | None = None
        every = range(len(ensemble.base))
        # Each choice is a list of pairs of classes: in all of them the second must beat the first.
        self.choices = (
            [[(label, other)] for other in every if other != label]
            if target is None
            else [[(other, target) for other in every if other != target]]
        )

    def changed(self, move: Floats) -> bool:
        """Return whether the ensemble itself decides differently after a move."""
        point = self.geometry.point
        row = (np.clip(point.x + move, point.x + point.low, point.x + point.high) * point.scale)[None]
        score = self.ensemble.scores(row)[0]
        own = self.label if self.target is None else self.target
        rest = np.delete(score, own).max()
        return bool(rest > score[own] if self.target is None else score[own] > rest)

    def demand(self, pair: tuple[int, int], strict: bool = False) -> Demand:
        """Return the demand that the second class of a pair has a larger score than the first.

        Loosely, a tie is enough, so that a proof that nothing meets the demand is sound in spite of the solver's
        tolerance. Where no difference of two scores is as small as the tolerance, as in forests of pure leaves, ties
        are left out at once.
        """
        value = self.geometry.leaves.value
        weight = value[:, pair[0]] - value[:, pair[1]]
        base = float(self.ensemble.base[pair[0]] - self.ensemble.base[pair[1]])
        largest = float(np.abs(weight).max())
        slack = _TIE * largest * self.geometry.leaves.count
        if self.ensemble.sums is np.float32:
            slack += 4 * float(np.finfo(np.float32).eps) * (largest * self.geometry.leaves.count + abs(base))
        return Demand(weight, base + (slack if strict or _smallest_sum(weight, base) > 2 * slack else -slack))

    def run(self) -> Nearest:
        loose = [[self.demand(pair) for pair in pairs] for pairs in self.choices]
        bounds = [max(self.geometry.lower_bound(demand) for demand in demands) for demands in loose]
        if self.known.move is not None:
            self.record(self.known.move)
        lower = math.inf
        for choice in np.argsort(bounds, kind="stable"):
            bound = max(bounds[choice], self.known.lower)
            if self.near_enough(bound):
                lower = min(lower, bound)
                break
            lower = min(lower, self.one(loose[choice], self.choices[choice], bound))
        lower = min(lower, self.best)
        if self.move is None:
            return Nearest(None, lower, math.isinf(lower))
        return Nearest(self.move, lower, self.best <= lower * _SAME)

    def near_enough(self, lower: float) -> bool:
        """Return whether the best change is known well enough if no move below ``lower`` changes the decision."""
        return lower >= self.best or lower * (1 + self.known.tolerance) >= self.best

    def one(self, demands: list[Demand], pairs: list[tuple[int, int]], bound: float) -> float:
        """Look for the nearest point that meets demands; return a radius within which there is none."""
        lower, farthest, ties = bound, self.geometry.farthest(), list[Integers]()
        known = self.known.move is not None and math.isfinite(self.best)
        radius = self.best if known else min(max(bound * _FIRST_BALL, 1e-12), self.best)
        while math.isfinite(lower) and not self.near_enough(lower):
            answer = self.solve(demands, radius, ties)
            lower, length = max(lower, min(answer.lower, radius)), math.inf
            if answer.move is not None:
                length = self.record(answer.move)
                if math.isinf(length) and len(ties) < _TIES:  # a tie is no change: look for other leaves
                    ties.append(self.geometry.reached(answer.move))
                    continue
                if math.isinf(length):
                    self.pass_ties(pairs, radius)
                    break
            if not answer.settled or length <= radius * _SAME:
                break
            if answer.move is None and radius >= farthest:
                return math.inf
            radius = min(self.best, length if math.isfinite(length) else max(radius * _GROWTH, 1e-12))
        return lower

    def pass_ties(self, pairs: list[tuple[int, int]], radius: float) -> None:
        """Look for a change behind more ties than are left out one by one. It proves nothing."""
        demands, farthest = [self.demand(pair, strict=True) for pair in pairs], self.geometry.farthest()
        while radius < self.best:
            answer = self.solve(demands, radius, [])
            if answer.move is not None:
                self.record(answer.move)
            if answer.move is not None or not answer.settled or radius >= farthest:
                break
            radius *= _GROWTH

    def solve(self, demands: list[Demand], radius: float, ties: list[Integers]) -> Answer:
        """Find the nearest point inside a ball that meets demands: by conflicts of leaves, or else by a program.

        Args:
            demands: The demands.
            radius: The radius of the ball.
            ties: Leaves of all trees that together are known to make a tie.
        """
        point, lower = self.geometry.point, 0.0
        if len(demands) == 1 and not ties and not point.groups and not point.grid.any():
            steps = (_ROUGH_STEPS if self.known.tolerance else _STEPS)[math.isinf(point.p)]
            answer = solve_conflicts(self.geometry, demands[0], radius, steps, self.known.tolerance)
            if answer.settled:
                return answer
            lower = answer.lower
            if answer.move is not None:
                radius = min(radius, self.record(answer.move))
                if self.near_enough(lower):
                    return answer._replace(settled=True)
        answer = solve(self.geometry, demands, radius, self.nodes, ties, self.known.tolerance)
        return answer._replace(lower=max(lower, answer.lower))

    def record(self, move: Floats) -> float:
        """Keep a move if it changes the decision; return its length, or ``inf``."""
        if not self.changed(move):
            return math.inf
        length = float(np.linalg.norm(move, self.geometry.point.p))
        if length < self.best:
            self.best, self.move = length, move
        return length


def _smallest_sum(weight: Floats, base: float) -> float:
    """Return a number that no sum of these weights and the base is nearer to 0 than, unless it is 0; 0 if unknown.

    Weights of pure leaves are whole numbers, and those of small leaves whole multiples of a fraction.
    """
    for parts in range(1, _PARTS):
        multiples = np.append(weight, base) * parts
        if np.abs(multiples - np.rint(multiples)).max() < _WHOLE:
            return 1 / parts
    return 0.0
