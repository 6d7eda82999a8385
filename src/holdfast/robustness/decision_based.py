"""A minimum-norm search that needs decisions alone: for black boxes, trees and other models without gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from holdfast.models.model import Access
from holdfast.robustness.coordinates import coordinate_round
from holdfast.robustness.kinds import Attack, Moves
from holdfast.robustness.lanes import Lanes, allowed, ask, values
from holdfast.robustness.normals import LEAST_TURN, round_cost, turn_round
from holdfast.robustness.rows import Rows
from holdfast.robustness.starting_points import is_discrete, kick, sloped_points, starting_points
from holdfast.settings import Count, Range

_LEAST = 20  # queries; fewer cannot find and shorten a witness
_POINTS = 24  # the least number of starting points that are tried before the first witness is shortened
_POINTS_SHARE = 50  # one in so many queries is spent on them
_HALVINGS = 5  # of the way from x to each starting point
_EARLIER = 1.0  # the queries of a stage of halving as a share of those of the next
_FAVOUR = (0.4, 100.0)  # what a round of single coordinates gained counts so much, where many or few of them move
_FEW = 12  # coordinates that move: so few are settled one by one within some rounds, and swaps then shorten the move
_REACHES = (0.05, 0.3)  # distances of samples from a witness as shares of its length: networks, trees
_PATIENCE = (1, 2)  # rounds without a gain before a lane is kicked, where many or few coordinates move
_LEAST_ROUND = 12  # queries
_GAIN = 1e-3  # a smaller share of the length is no gain
_EQUAL = 2.0**-20  # lengths whose logarithms differ by less are taken as equal
_NUMBERS = 2**25  # coordinates of sampled points at once


@dataclass(frozen=True)
class DecisionBased(Attack):
    """A search from decisions alone, or from scores where the model gives them: for trees and other black boxes.

    Several searches of each row begin at the nearest points of different classes. A round of queries either estimates
    the boundary's normal from the decisions at points around the witness and turns the move towards it, or moves single
    coordinates back towards x, drops and swaps them. Each search continues with what gains most; one that gains nothing
    begins again near its best witness or across the box. The shorter half of the searches goes on, and so forth. Scores
    give the normal itself, and the first points. Images are also sampled with smooth noise.

    >>> import holdfast as hf
    >>> model = hf.FunctionModel(lambda rows: (rows[:, 0] > 0.5).astype(int), bounds=(0, 1), classes=2)
    >>> radii = DecisionBased(queries=300)(model.ask(torch.zeros(1, 3)), torch.ones(1, 1, 3, dtype=torch.bool))
    >>> round(radii.radius.item(), 2)
    0.5

    Args:
        p: The norm: 1, 2 or infinity.
        queries: The largest number of points that the model is asked about for one row. Measuring the witness again is
            not counted.
        starts: How many searches each row begins with.
        seed: For random points.

    Raises:
        HoldfastError: A setting is out of range.
    """

    p: float = 2
    queries: Annotated[int, Range(_LEAST)] = 5000
    starts: Count = 4
    seed: int = 0
    name: ClassVar[str] = "decision-based"
    presets: ClassVar[tuple[str, ...]] = ("quick", "thorough")
    requires: ClassVar[Access] = Access.DECISIONS

    @classmethod
    def quick(cls, p: float = 2) -> DecisionBased:
        """Return a search with 1,000 queries for each subset."""
        return cls(p, queries=1000, starts=2)

    @classmethod
    def thorough(cls, p: float = 2) -> DecisionBased:
        """Return a search with 20,000 queries for each subset."""
        return cls(p, queries=20_000, starts=16)

    @property
    def rows(self) -> int:
        return self.queries

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        delta = torch.zeros_like(rows.x)
        size = max(1, _NUMBERS // (self.starts * round_cost(rows.x.shape[1]) * rows.x.shape[1]))
        for begin in range(0, len(rows), size):
            which = torch.arange(begin, min(begin + size, len(rows)), device=delta.device)
            which = which[rows.free[which].any(1)]
            which = which[values(rows.at(which), delta[which, None])[:, 0] >= 0]
            delta[which] = self._search(rows.at(which), None if start is None else start[which])
        return Moves(delta)

    def _search(self, rows: Rows, start: Tensor | None) -> Tensor:
        """Return the shortest moves found ``[R, n]``; rows without a witness try more points until there are none."""
        found = torch.zeros_like(rows.x)
        left, spent, number = torch.arange(len(rows), device=found.device), 1, 0
        while len(left):
            part = rows.at(left)
            count = min(max(_POINTS, self.queries // _POINTS_SHARE, number), self.queries - spent)
            if count < 1:
                break
            points = starting_points(part, None if start is None else start[left], self.seed, number, count)
            if number == 0:
                sloped, used = sloped_points(part, self.norm, self.seed, (self.queries - count) // 4)
                points, spent = torch.cat([points, sloped], 1), spent + used
            margin, decided = ask(part, points)
            number, spent = number + count, spent + points.shape[1]
            some = (margin < 0).any(1)
            if bool(some.any()):
                decided = decided.masked_fill(margin >= 0, -1)
                found[left[some]] = self._improve(part.at(some), points[some], decided[some], self.queries - spent)
            left = left[~some]
        return found

    def _improve(self, rows: Rows, points: Tensor, decided: Tensor, queries: int) -> Tensor:
        """Shorten the nearest starting points of each class, and search from the shortest."""
        length = self.norm.length(points.flatten(0, 1)).view(decided.shape).masked_fill(decided < 0, math.inf)
        tried = max(1, min(2 * self.starts, points.shape[1], queries // (4 * _HALVINGS)))
        chosen = _varied(length, decided, tried)
        row = torch.arange(len(rows), device=points.device).repeat_interleave(tried)
        witness, decided = points[row, chosen.flatten()], decided.gather(1, chosen)
        low, high = (witness.new_full((len(row),), end) for end in (0.0, 1.0))
        part = rows.at(row)
        halvings = min(_HALVINGS, queries // tried)
        for _ in range(halvings):
            middle = (low + high) / 2
            changed = values(part, allowed(part, middle[:, None] * witness)[:, None])[:, 0] < 0
            low, high = torch.where(changed, low, middle), torch.where(changed, middle, high)
        queries -= halvings * tried
        witness = allowed(part, high[:, None] * witness)
        width = min(self.starts, tried)
        kept = _varied(self.norm.length(witness).view(len(rows), tried), decided, width)
        kept = (kept + tried * torch.arange(len(rows), device=kept.device)[:, None]).flatten()
        number = torch.arange(width, device=row.device).repeat(len(rows))
        return self._halve(Lanes.of(part.at(kept), self.norm, row[kept], number, witness[kept]), width, queries)

    def _halve(self, lanes: Lanes, width: int, queries: int) -> Tensor:
        """Run rounds of all lanes, then of the shorter half, and so on; return the shortest moves ``[R, n]``."""
        shares = [1.0]
        while width >> len(shares):
            shares.insert(0, _EARLIER * 0.5 ** (len(shares) - 1))
        left = queries
        for stage, share in enumerate(shares):
            each = (left if stage + 1 == len(shares) else round(queries * share / sum(shares))) // width
            each = min(each, left // width)
            left -= each * width
            self._rounds(lanes, each, 10_000 * stage)
            if width > 1:
                width //= 2
                lanes = _shortest(lanes, width)
        return lanes.best

    def _rounds(self, lanes: Lanes, queries: int, draw: int) -> None:
        """Run rounds of the kind that gains most in each lane; kick lanes that gain no more."""
        cost, discrete = round_cost(lanes.delta.shape[1]), torch.tensor(is_discrete(lanes.rows))
        gain = torch.full((len(lanes), 1 + len(_REACHES)), math.inf).to(lanes.length)
        while queries >= _LEAST_ROUND:
            now = queries if queries < cost + _LEAST_ROUND else cost
            before = lanes.length.clone()
            few = (lanes.delta != 0).sum(1) <= _FEW
            favour = torch.ones_like(gain)
            favour[:, -1] = torch.where(few, _FAVOUR[1], _FAVOUR[0])
            kind = (gain * favour).argmax(1)
            if now < LEAST_TURN:
                kind = torch.full_like(kind, len(_REACHES))
            kind = kind.masked_fill(lanes.idle >= torch.where(few & ~discrete, _PATIENCE[1], _PATIENCE[0]), -1)
            for one in range(-1, gain.shape[1]):
                index = (kind == one).nonzero()[:, 0]
                if not len(index):
                    continue
                part = lanes.at(index)
                if one < 0:
                    kick(part, self.seed, draw, now)
                elif one < len(_REACHES):
                    turn_round(part, self.seed, draw, now, _REACHES[one])
                    part.forget(part.length < before[index] * (1 - _GAIN))
                else:
                    coordinate_round(part, self.seed, draw, now)
                part.keep()
                lanes.put(index, part)
            queries, draw = queries - now, draw + 1
            self._judge(lanes, gain, kind, 1 - lanes.length / before)

    def _judge(self, lanes: Lanes, gain: Tensor, kind: Tensor, fall: Tensor) -> None:
        """Update what each kind of round gains, and how long lanes have gained nothing."""
        kicked = kind < 0
        fall = fall.masked_fill(fall < _GAIN, 0)  # rounding differs between batches and must not decide
        at = kind.clamp_min(0)[:, None]
        old = gain.gather(1, at)[:, 0]
        new = torch.where(torch.isinf(old), fall, 0.5 * (old + fall))
        gain += 1e-4  # so that every kind gets its turn again
        gain.scatter_(1, at, new[:, None])
        gain.masked_fill_(kicked[:, None], math.inf)
        lanes.idle = torch.where((fall > 0) | kicked, 0, lanes.idle + 1)


def _varied(length: Tensor, decided: Tensor, count: int) -> Tensor:
    """Return the places of the ``count`` shortest moves of each row: the shortest of each class first."""
    order = length.argsort(dim=1, stable=True)
    kind = decided.gather(1, order)
    same = (kind[:, :, None] == kind[:, None]).tril(-1)
    known = torch.isfinite(length.gather(1, order))
    rank = same.sum(2).masked_fill(~known, length.shape[1])
    chosen = order.gather(1, rank.argsort(dim=1, stable=True)[:, :count])
    return torch.where(torch.isfinite(length.gather(1, chosen)), chosen, order[:, :1])


def _shortest(lanes: Lanes, count: int) -> Lanes:
    """Return the ``count`` shortest lanes of each row."""
    first = lanes.row.unique(return_counts=True)[1].cumsum(0)
    each = len(lanes) // len(first)
    if each == count:
        return lanes
    length = (lanes.least.clamp_min(1e-30).log() / _EQUAL).round()
    order = length.view(-1, each).argsort(dim=1, stable=True)[:, :count].sort(1).values
    base = torch.arange(len(first), device=order.device)[:, None] * each
    return lanes.at((base + order).flatten())
