"""Which feature increases a radius most when it is held? A race in which only close candidates are measured exactly."""

from __future__ import annotations

import math
from itertools import islice, pairwise

import torch
from torch import Tensor

from holdfast.robustness.brackets import Bracket, Brackets


class Race:
    """The candidates that increase the radius of a subset most when they no longer move.

    The candidate whose radius may be the largest is measured next: roughly at first, exactly if that does not decide.
    It ends when no other candidate can be among those wanted. Ties go to the feature with the smaller number.

    Args:
        brackets: What is known of the cases.
        moving: The features that may move, bool ``[B, d]``.
        candidates: The features that are held in turn, bool ``[B, d]``.
        wanted: How many of the best candidates must be known in their order, ``[B]``.

    Attributes:
        changed: Bool ``[B]``: whether a change of the decision is known; set by ``run``.
    """

    def __init__(self, brackets: Brackets, moving: Tensor, candidates: Tensor, wanted: Tensor):
        self.brackets, self.moving, self.candidates, self.wanted = brackets, moving, candidates, wanted.tolist()
        self.changed = torch.zeros(len(moving), dtype=torch.bool, device=moving.device)

    def run(self) -> Tensor:
        """Return the radius with each candidate held, ``[B, d]``: a lower bound where it need not be known."""
        cases, d = self.moving.shape
        rough = [set[int]() for _ in range(cases)]  # candidates that were measured roughly; -1: no candidate held
        values = self.brackets.cases.x.new_zeros(cases, d)
        open_ = list(range(cases))
        while open_:
            asked: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
            for case in open_:
                feature = self._next(case, values[case])
                if feature is None:
                    continue
                first = self.brackets.method.uses_tolerance and feature not in rough[case]
                asked[first].append((case, feature))
                rough[case].add(feature)
            for first, pairs in asked.items():
                if pairs:
                    which = torch.tensor([case for case, _ in pairs], device=values.device)
                    subsets = torch.stack([self._held(case, feature) for case, feature in pairs])
                    self.brackets.measure(which, subsets, rough=first)
            open_ = [case for pairs in asked.values() for case, _ in pairs]
        return values

    def _held(self, case: int, feature: int) -> Tensor:
        subset = self.moving[case].clone()
        if feature >= 0:
            subset[feature] = False
        return subset

    def _next(self, case: int, values: Tensor) -> int | None:
        """Return the candidate to measure, -1 for none held; or write the values and return None."""
        own = self.brackets.of(case, self.moving[case][None])
        self.changed[case] = torch.isfinite(own.high[0])
        if torch.isinf(own.high[0]) and own.low[0] < math.inf:
            return -1
        features = self.candidates[case].nonzero()[:, 0]
        subsets = self.moving[case].repeat(len(features), 1)
        subsets[torch.arange(len(features)), features] = False
        bracket = self.brackets.of(case, subsets)
        place = _open(bracket, self.wanted[case])
        if place is not None:
            return int(features[place])
        values.fill_(float(own.low[0]))
        values[features] = bracket.low
        return None


def _open(bracket: Bracket, wanted: int) -> int | None:
    """Return the place of the candidate to measure next; None: the order of the best ones is known."""
    low, high = bracket.low.tolist(), bracket.high.tolist()
    order = sorted(range(len(low)), key=lambda place: (-high[place], place))
    for place, following in islice(pairwise(order), wanted):
        certain = low[place] == high[place] or (low[place], -place) > (high[following], -following)
        if not certain:
            ties = [other for other in order if high[other] == high[place] and low[other] < high[other]]
            return max(ties, key=lambda other: (low[other], -other)) if math.isinf(high[place]) else min(ties)
    return None
