"""Explainers that remove features: one at a time (occlusion) or in random subsets (kernel SHAP)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.draws import generator
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.explainers.explainer import Attribution
from holdfast.explainers.leastsquares import least_norm, least_squares
from holdfast.models.model import Access
from holdfast.reference import Reference, kept_scores, live_features, reference_points
from holdfast.settings import Range

_MOST_PLAYERS = 10_000  # the normal equations of more do not fit most machines
_DRAWN = 2**24  # random numbers in memory at once while subsets are drawn


@dataclass(frozen=True)
class LeaveOneOut(Attribution):
    """The drop of the score when one feature takes its reference value (occlusion).

    Attributes:
        reference: What a removed feature becomes.
        absolute: Order by the size of the attribution.
        seed: Seed of random references and of the order of features with equal values.
    """

    reference: Reference = 0.0
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "leave-one-out"
    source: ClassVar[str] = "Zeiler & Fergus 2014; Li et al. 2016"
    requires: ClassVar[Access] = Access.DECISIONS
    uses: ClassVar[tuple[str, ...]] = ("a reference value",)

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        points = reference_points(cases, self.reference, self.seed)
        live = live_features(cases, points)
        whole = kept_scores(cases, points, torch.arange(len(cases), device=live.device), lambda piece: live[piece])
        case, feature = live.nonzero(as_tuple=True)

        def all_but_one(piece: slice) -> Tensor:
            return live[case[piece]].scatter(1, feature[piece, None], False)

        scores = torch.zeros_like(live, dtype=cases.x.dtype)
        scores[case, feature] = whole[case] - kept_scores(cases, points, case, all_but_one, progress)
        return scores

    def rows(self, features: int) -> int:
        return features + 1


@dataclass(frozen=True)
class KernelShap(Attribution):
    """Baseline Shapley values by kernel SHAP: the mean effect of a feature, whichever others are already kept.

    They are estimated by weighted least squares of the score on the features that are kept. A feature that equals its
    reference has the value 0 and is left out of the regression. Values add up to the score minus the score of the
    reference. If there are at most ``samples`` subsets, all of them are used and the values are exact. With more than
    10,000 features there are never enough subsets: the values are the least-norm solution, and a warning says so.

    Attributes:
        reference: What a removed feature becomes.
        samples: How many subsets are drawn, each together with its complement.
        absolute: Order by the size of the attribution.
        seed: Seed of all draws.
    """

    reference: Reference = 0.0
    samples: Annotated[int, Range(2)] = 2000
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "kernel-shap"
    presets: ClassVar[tuple[str, ...]] = ("paper",)
    source: ClassVar[str] = "Lundberg & Lee 2017"
    requires: ClassVar[Access] = Access.DECISIONS
    uses: ClassVar[tuple[str, ...]] = ("a reference value",)

    @classmethod
    def paper(cls) -> KernelShap:
        """Return the settings of the paper: 20,000 samples."""
        return cls(samples=20_000)

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        points = reference_points(cases, self.reference, self.seed)
        live = live_features(cases, points)
        self._check(int(live.sum(1).max()))
        scores = torch.zeros_like(live, dtype=cases.x.dtype)
        for case in range(len(cases)):
            players = live[case].nonzero()[:, 0]
            if len(players):
                scores[case, players] = self._values(cases[case], points[case : case + 1], players)
            if progress is not None:
                progress(case + 1, len(cases))
        return scores

    def rows(self, features: int) -> int:
        return self.samples + 2

    def _check(self, players: int) -> None:
        """Refuse too few samples; warn if there can never be enough."""
        if 2**players - 2 <= self.samples:  # all subsets are used
            return
        subject = f"kernel SHAP with {players} features that differ from the reference"
        if players > _MOST_PLAYERS:
            warnings.warn(
                f"{subject} has more unknowns than its {self.samples} samples determine: its values are the least-norm "
                "solution; use patches, superpixels or other groups.",
                HoldfastWarning,
                stacklevel=4,
            )
        elif self.samples < 2 * players:
            raise HoldfastError(
                f"{subject} needs at least {2 * players} samples, got {self.samples}: raise samples or use fewer "
                "features."
            )

    def _values(self, case: Cases, points: Tensor, players: Tensor) -> Tensor:
        """Return the values of the features ``players [n]`` of one case."""
        joined, weight = _coalitions(len(players), self.samples, self.seed)
        none, every = (torch.full((1, len(players)), kept) for kept in (False, True))
        joined = torch.cat([none, every, joined]).to(players.device)
        weight = None if weight is None else weight.to(players.device)

        def kept(piece: slice) -> Tensor:
            rows = joined[piece]
            return rows.new_zeros(len(rows), case.features.count).index_copy_(1, players, rows)

        value = kept_scores(case, points, torch.zeros(len(joined), dtype=torch.long, device=players.device), kept)
        nothing, everything = value[0], value[1]
        if len(players) == 1:
            return everything - nothing
        total = float(everything.double() - nothing.double())
        if 2 * len(players) > self.samples and weight is None:
            # A subset and its complement give the same equation but for the sum.
            subsets, others = (value[2:] - nothing).chunk(2)
            return least_norm(joined[2 : 2 + len(subsets)], (subsets - others + total) / 2, total).to(value)
        return least_squares(joined[2:], value[2:] - nothing, weight, total)[0].to(value)


def _coalitions(players: int, samples: int, seed: int) -> tuple[Tensor, Tensor | None]:
    """Return subsets bool ``[m, n]``, neither empty nor full, and the weights of the rows if they differ."""
    if players == 1:
        return torch.zeros(0, 1, dtype=torch.bool), None
    sizes = torch.arange(1, players)
    kernel = 1 / (sizes * (players - sizes)).double()  # of all subsets of a size together
    if 2**players - 2 <= samples:
        number = torch.arange(1, 2**players - 1)
        joined = (number[:, None] >> torch.arange(players)) & 1 == 1
        size = joined.sum(1)
        return joined, kernel[size - 1] / torch.tensor([math.comb(players, k) for k in range(players)])[size].double()
    drawing = generator(seed)
    pairs = samples // 2
    # Stratified: one draw in each of as many equal slices, so that sizes are as frequent as the kernel says.
    slices = (torch.arange(pairs) + torch.rand(pairs, generator=drawing)).double() / pairs
    size = sizes[torch.searchsorted(kernel.cumsum(0) / kernel.sum(), slices).clamp_max(len(sizes) - 1)]
    joined = torch.zeros(pairs, players, dtype=torch.bool)
    for block in torch.arange(pairs).split(max(1, _DRAWN // players)):
        shuffled = torch.rand(len(block), players, generator=drawing).argsort(1)
        joined[block] = joined[block].scatter_(1, shuffled, torch.arange(players) < size[block, None])
    return torch.cat([joined, ~joined]), None
