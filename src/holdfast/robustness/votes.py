"""Brackets of Robustness-S where several neighbours vote: a change that was found, and a proven lower bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from holdfast.robustness.contests import Contest, Numbers, Outcome, Question
from holdfast.robustness.polyhedra import Array

_CUT = 1.5  # how much longer than the best a move may be before it is cut short
_STRAIGHT = 30  # points that are moved towards
_SEEDS = 3  # nearest points of each class that groups are formed around
_REPEATS = 5  # times that a witness is improved
_BISECTIONS = 20
_TOGETHER = 64  # points whose half spaces are measured at once


@dataclass(frozen=True, eq=False)
class Election:
    """The vote of the nearest neighbours of one input.

    Attributes:
        contest: The training points around the input.
        labels: Their classes, ``[N]``.
        k: The number of votes.
        label: The explained class.
        target: The class asked about; None for any other.
    """

    contest: Contest
    labels: Numbers
    k: int
    label: int
    target: int | None

    def bracket(self) -> Outcome:
        """Return the shortest change that was found, and a lower bound of all changes."""
        return Outcome(self._search(), self._lower())

    # ------------------------------------------------------------------ the lower bound

    def _lower(self) -> float:
        """Bound the length of a change by the points that have to enter the k nearest ones.

        A swap (one point enters the k nearest, another leaves) changes the lead of one class over another by at most
        two votes. So a change needs some number m of swaps. A point that enters is then nearer than all points that
        left, at least m of those that are among the nearest now.
        """
        members = self._nearest(self.contest.squared)
        votes = np.bincount(self.labels[members], minlength=self.labels.max() + 1)
        swaps, keeper = self._swaps(votes)
        outside = np.setdiff1d(np.flatnonzero(self.labels != keeper), members)
        if len(outside) < swaps:
            return math.inf
        coarse = np.sort(self.contest.coarse(outside, members), 1)[:, swaps - 1]
        order = np.argsort(coarse)
        found: list[float] = []
        for begin in range(0, len(order), _TOGETHER):
            if len(found) >= swaps and sorted(found)[swaps - 1] <= coarse[order[begin]]:
                break
            some = outside[order[begin : begin + _TOGETHER]]
            pairs = self.contest.between(np.repeat(some, self.k), np.tile(members, len(some)))
            found += np.sort(pairs.reshape(len(some), self.k), 1)[:, swaps - 1].tolist()
        return sorted(found)[swaps - 1]

    def _swaps(self, votes: Numbers) -> tuple[int, int]:
        """Return how many swaps a change needs at least, and the class that must lose its lead by them."""
        if self.target is None:
            leads = [
                (votes[self.label] - votes[other] + (other > self.label), self.label)
                for other in range(len(votes))
                if other != self.label
            ]
            lead, keeper = min(leads)
        else:
            goal = votes[self.target] if self.target < len(votes) else 0
            leads = [
                (votes[other] - goal + (self.target > other), other)
                for other in range(len(votes))
                if other != self.target
            ]
            lead, keeper = max(leads)
        return max(1, math.ceil(lead / 2)), keeper

    # ------------------------------------------------------------------ the search

    def _search(self) -> Array:
        """Return a short move that changes the decision; zeros if none was found.

        First, moves straight towards points. Then, groups of points of one class that have a majority must be nearer
        than all points of other classes, but for as many as may vote beside them. A move that was found is shortened,
        and the points that vote there are asked again.
        """
        best, length = np.zeros(len(self.contest.low)), math.inf
        straight = [move for point in self._rivals() if (move := self._cut(self.contest.towards(point))) is not None]
        begin: list[Callable[[float], Array | None]] = [
            partial(_given, move) for move in sorted(straight, key=self.contest.length)[:_SEEDS]
        ]
        begin += [partial(self._into, rivals, blockers) for rivals, blockers in self._groups()]
        for first in begin:
            move = first(length)
            for _ in range(_REPEATS):
                if move is None or (size := self.contest.length(move)) >= length:
                    break
                best, length = move, size
                move = self._again(move, length)
        return best

    def _groups(self) -> list[tuple[Numbers, Numbers]]:
        """Return groups of rivals and blockers, the most promising first."""
        majority = self.k // 2 + 1
        groups = []
        squared = self.contest.squared
        for other in np.unique(self.labels) if self.target is None else [self.target]:
            points = np.flatnonzero(self.labels == other)
            if other == self.label or len(points) < majority:
                continue
            for seed in points[np.argsort(squared[points], kind="stable")[:_SEEDS]]:
                near = points[np.argsort(self.contest.apart(seed, points), kind="stable")[:majority]]
                others = np.flatnonzero(self.labels != other)
                beside = others[np.argsort(squared[others], kind="stable")[: self.k - majority]]
                groups.append((float(squared[near].max()), near, np.setdiff1d(others, beside)))
        return [(near, blockers) for _, near, blockers in sorted(groups, key=lambda one: one[0])]

    def _again(self, move: Array, length: float) -> Array | None:
        """Return the shortest move to the votes that decide at a move, if it is shorter."""
        members = self._nearest(self.contest.after(move))
        winner = self._winner(members)
        rivals = members[self.labels[members] == winner]
        return self._into(rivals, np.setdiff1d(np.arange(len(self.labels)), members), length)

    def _into(self, rivals: Numbers, blockers: Numbers, length: float) -> Array | None:
        """Return the shortest move after which all rivals are nearer than all blockers, cut short if that suffices."""
        if not len(blockers):
            return None
        first = int(blockers[self.contest.squared[blockers].argmin()])
        far = int(self.contest.squared[rivals].argmax())
        move, _ = self.contest.solve(Question(rivals, blockers), [(far, first)], _CUT * length)
        if move is None:
            return None
        return self._cut(self.contest.placed(move))

    def _cut(self, move: Array) -> Array | None:
        """Return a move cut short where the decision has changed; None if it has not."""
        if not self._changed(move):
            return None
        low, high = 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._changed(middle * move) else (middle, high)
        return high * move

    def _rivals(self) -> Numbers:
        """Return the nearest points whose votes help."""
        helps = self.labels != self.label if self.target is None else self.labels == self.target
        points = np.flatnonzero(helps)
        nearest: Numbers = points[np.argsort(self.contest.squared[points], kind="stable")[:_STRAIGHT]]
        return nearest

    def _changed(self, move: Array) -> bool:
        winner = self._winner(self._nearest(self.contest.after(move)))
        return winner != self.label if self.target is None else winner == self.target

    def _nearest(self, squared: Array) -> Numbers:
        order: Numbers = np.argsort(squared, kind="stable")[: self.k]
        return order

    def _winner(self, members: Numbers) -> int:
        return int(np.bincount(self.labels[members]).argmax())


def _given(move: Array, length: float) -> Array:
    """Return a move that is known."""
    return move
