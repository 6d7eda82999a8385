"""Contests between training points: the shortest move after which some are nearer than others.

At a move d, the squared distance to a point p grows by a term that all points share, minus ``normals[p] @ d``. So
"point q is nearer than point p" is a half space, and "nearer than all of these" is a polyhedron.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.models.neighbours import NeighboursModel
from holdfast.robustness.norms import Norm
from holdfast.robustness.polyhedra import Array, Box, bound, half_space_length, refutation, shortest

Numbers = NDArray[np.int64]

_NEAREST = 16  # blockers that every rival is first compared with
_TOGETHER = 32  # rivals whose better bound is computed at once
_ADDED = 3  # half spaces that join a program in one round
_THIN = 1.1e-7  # regions that are narrower, relative to the numbers in them, consist of ties
_ROUNDS = 500
_FAR = 1e5  # spreads of the data; what is farther counts as out of reach
_ROUNDING = {2.0: 256 * 2.0**-52, 1.0: 1e-11, math.inf: 1e-11}  # a linear program is less precise


class Outcome(NamedTuple):
    """The shortest move that was found, and the proven lower bound of all such moves.

    Attributes:
        move: ``[n]``; zeros where none was found.
        lower: The bound; ``inf`` where a move is proven to be impossible.
    """

    move: Array
    lower: float


class Question(NamedTuple):
    """ "These points are nearer than those points."

    Attributes:
        rivals: The points that must be nearer, ``[J]``.
        blockers: The points that must be farther, ``[I]``.
    """

    rivals: Numbers
    blockers: Numbers


@dataclass(frozen=True, eq=False)
class Space:
    """The training points as normals of half spaces.

    Attributes:
        norm: The norm of moves.
        normals: ``[N, n]``.
        scale: The size of the numbers that distances are made of.
        spread: How far apart the points are, as moves.
        gain: By how much a model with steps before it stretches moves at most, squared.
    """

    norm: Norm
    normals: Array
    scale: float
    spread: float
    gain: float
    _last: dict[bytes, tuple[NDArray[np.bool_], Array, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: NeighboursModel, norm: Norm) -> Space:
        """Return the points of a model."""
        points = model.points if model.step is None else model.points @ model.step.weight
        normals = 2 * points.numpy()
        spread = max(float(np.ptp(model.points.numpy(), 0).max()), 1e-300)
        gain = 1.0
        if model.step is not None:
            spread /= max(float(model.step.weight.abs().amax()), 1e-300)
            gain = max(float(np.linalg.norm(model.step.weight.numpy(), 2)) ** 2, 1e-300)
        return cls(norm, normals, float(model.points.square().sum(1).max()), spread, gain)

    def columns(self, free: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Array, Array]:
        """Return which free columns matter, the normals in them and their squared lengths; the last answer is kept."""
        key = free.tobytes()
        if key not in self._last:
            self._last.clear()
            used = free & (np.ptp(self.normals, 0) > 0)
            normals = np.ascontiguousarray(self.normals[:, used])
            self._last[key] = used, normals, np.einsum("ij,ij->i", normals, normals)
        return self._last[key]


@dataclass(frozen=True, eq=False)
class Contest:
    """All contests around one input.

    Attributes:
        space: The training points.
        here: The normal of a training point at the input, ``[n]``.
        squared: Squared distances from the input to them, ``[N]``.
        low: The smallest allowed moves ``[n]``.
        high: The largest.
        margin: By how many roundings the half spaces are narrowed, so that the model itself sees a change.
    """

    space: Space
    here: Array
    squared: Array
    low: Array
    high: Array
    margin: float

    @cached_property
    def _used(self) -> NDArray[np.bool_]:
        return self.space.columns(self.low < self.high)[0]

    @cached_property
    def _normals(self) -> Array:
        return self.space.columns(self.low < self.high)[1]

    @property
    def settled(self) -> bool:
        """Whether no allowed move changes anything."""
        return not bool(self._used.any())

    @cached_property
    def _box(self) -> Box:
        return Box(np.maximum(self.low[self._used], -self._far), np.minimum(self.high[self._used], self._far))

    @cached_property
    def _far(self) -> float:
        return _FAR * max(self.space.spread, math.sqrt(float(self.squared.max())))

    @cached_property
    def _reach(self) -> float:
        """The length of the longest move that the box allows."""
        return min(self.length(np.maximum(-self._box.low, self._box.high)) * (1 + 1e-9), self._far)

    @cached_property
    def _narrowed(self) -> float:
        """What is added to every goal."""
        return self.margin * _ROUNDING[self.space.norm.p] * (self.space.scale + float(self.squared.max()))

    def nearest(self, rivals: Numbers, blockers: Numbers) -> Outcome:
        """Return the shortest move after which one of the rivals is nearer than every blocker.

        Args:
            rivals: Numbers of training points.
            blockers: Numbers of other training points.

        Returns:
            The move and the lower bound.
        """
        best, best_lower, lower = self._reach, math.inf, math.inf
        move = np.zeros(len(self.low))
        against, coarse = self._hardest(rivals, blockers)
        waiting = [(float(length), 0, int(rival)) for rival, length in enumerate(coarse)]
        heapq.heapify(waiting)
        while waiting and waiting[0][0] < best:
            length, stage, rival = heapq.heappop(waiting)
            if stage == 0:
                some = [rival]
                while len(some) < _TOGETHER and waiting and waiting[0][1] == 0 and waiting[0][0] < best:
                    some.append(heapq.heappop(waiting)[2])
                for one, better in zip(some, self.between(rivals[some], against[some]), strict=True):
                    heapq.heappush(waiting, (max(float(better), float(coarse[one])), 1, one))
                continue
            found, proven = self.solve(Question(rivals[[rival]], blockers), [(0, int(against[rival]))], best)
            lower = min(lower, max(proven, length))
            if found is not None and (size := self.length(found)) < best:
                best, best_lower, move = size, proven, self.placed(found)
        lower = min([lower, best_lower, *(one[0] for one in waiting[:1])])
        return Outcome(move, lower if lower < self._reach else math.inf)

    def _hardest(self, rivals: Numbers, blockers: Numbers) -> tuple[Numbers, Array]:
        """Return for each rival the near blocker that is hardest to pass, and the coarse distance of its half space."""
        few = np.argpartition(self.squared[blockers], min(_NEAREST, len(blockers)) - 1)[:_NEAREST]
        near = blockers[few]
        length = self.coarse(rivals, near)
        hardest = length.argmax(1)
        return near[hardest], length[np.arange(len(rivals)), hardest]

    def coarse(self, rivals: Numbers, blockers: Numbers) -> Array:
        """Return lower bounds on the distances of half spaces between all pairs, without a box.

        Args:
            rivals: Numbers of training points, ``[J]``.
            blockers: Numbers of other training points, ``[I]``.

        Returns:
            Lengths ``[J, I]``.
        """
        theirs, squares = self._normals[blockers].T, self.space.columns(self.low < self.high)[2]
        sizes = squares[rivals][:, None] + squares[blockers]
        # A product with all points takes less time than a copy of most of them.
        many = 2 * len(rivals) > len(self._normals)
        product = (self._normals @ theirs)[rivals] if many else self._normals[rivals] @ theirs
        # In L2, what the product loses to rounding makes the distance smaller, not larger.
        square = np.maximum(sizes - 2 * product, 0) + 1e-12 * sizes + 1e-300
        length: Array = (self.squared[rivals][:, None] - self.squared[blockers]).clip(0) / np.sqrt(square)
        return length / math.sqrt(max(1, len(theirs))) if self.space.norm.p == math.inf else length

    def between(self, rivals: Numbers, blockers: Numbers) -> Array:
        """Return the distances ``[J]`` of the half spaces of J pairs of points, inside mask and box."""
        slope = self._normals[rivals] - self._normals[blockers]
        goal = self.squared[rivals] - self.squared[blockers]
        return half_space_length(self.space.norm, slope, goal, self._box)

    def after(self, move: Array) -> Array:
        """Return squared distances ``[N]`` after a move ``[n]``, up to a number that all points share."""
        squared: Array = self.squared - self._normals @ move[self._used]
        return squared

    def towards(self, point: int) -> Array:
        """Return a move ``[n]`` towards a training point: all the way, if there are no steps before the model."""
        return self.placed(self._box.clip((self._normals[point] - self.here[self._used]) / (2 * self.space.gain)))

    def apart(self, point: int, points: Numbers) -> Array:
        """Return squared distances between training points, in the columns that matter."""
        gap = self._normals[points] - self._normals[point]
        squared: Array = np.einsum("ij,ij->i", gap, gap)
        return squared

    def length(self, move: Array) -> float:
        """Return the length of a move."""
        return float(np.linalg.norm(move, self.space.norm.p))

    def placed(self, move: Array) -> Array:
        """Return a move in the columns that matter as a move of all coordinates."""
        whole = np.zeros(len(self._used))
        whole[self._used] = move
        return whole

    def solve(self, question: Question, pairs: Sequence[tuple[int, int]], enough: float) -> tuple[Array | None, float]:
        """Return the shortest move after which all rivals are nearer than all blockers.

        Half spaces join the program when its solution violates them.

        Args:
            question: The rivals and the blockers.
            pairs: Places of rivals and numbers of blockers, whose half spaces begin the program.
            enough: Stop once no shorter move can exist.

        Returns:
            The move in the columns that matter, or None; and the proven lower bound.
        """
        rivals, blockers = question
        ours, theirs = self._normals[rivals], self._normals[blockers]
        place = {int(blocker): at for at, blocker in enumerate(blockers)}
        fresh = [(rival, place[blocker]) for rival, blocker in pairs]
        goals = self.squared[rivals][:, None] - self.squared[blockers] + self._narrowed
        rows, aims, multipliers = np.zeros((0, ours.shape[1])), np.zeros(0), np.zeros(0)
        move, proven, enough = np.zeros(ours.shape[1]), 0.0, min(enough, self._reach)
        for _ in range(_ROUNDS):
            for pair in fresh:
                row, goal = ours[pair[0]] - theirs[pair[1]], goals[pair]
                goals[pair] = -math.inf  # it is in the program now, and not looked for again
                if row.any():
                    rows, aims = np.vstack([rows, row]), np.append(aims, goal)
                    multipliers = np.append(multipliers, 0 if len(multipliers) else _alone(row, goal))
                elif goal >= self._narrowed:  # no move changes which of the two is nearer; a tie stays a tie
                    return None, math.inf
            if len(rows):
                found = shortest(self.space.norm, rows, aims, self._box, multipliers, enough, self._narrowed / 4)
                move, multipliers = found.move, found.multipliers
                proven = max(proven, bound(self.space.norm, rows, aims - self._narrowed, self._box, multipliers))
                if proven >= enough:
                    return None, proven
                if not found.settled:
                    return None, math.inf if self._is_thin(rows, aims) else proven
            lacking = (goals - ((ours @ move)[:, None] - theirs @ move)).ravel()
            worst = np.argsort(-lacking)[:_ADDED]
            fresh = [divmod(int(one), len(blockers)) for one in worst if lacking[one] > self._narrowed / 2]
            if not fresh:
                return move, proven
        return None, proven

    def _is_thin(self, rows: Array, aims: Array) -> bool:
        """Whether a region is out of reach once it is narrowed: it consists of ties, which are no change."""
        if self.margin * _ROUNDING[self.space.norm.p] > _THIN:
            return False
        multipliers = refutation(rows, aims, self._box)
        length = half_space_length(self.space.norm, (multipliers @ rows)[None], (multipliers @ aims)[None], self._box)
        return float(length[0]) >= self._reach


def _alone(row: Array, goal: float) -> float:
    """Return the multiplier of a program of one half space, without a box."""
    return max(goal, 0.0) / float(row @ row)
