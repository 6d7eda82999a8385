"""Explainers by a mask that is optimised for each input: meaningful perturbations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.chunks import Progress, chunked
from holdfast.explainers.explainer import Attribution
from holdfast.models.model import Access, differentiable
from holdfast.ranking import features_of
from holdfast.reference import Reference, reference_points
from holdfast.settings import Count, NotNegative, Positive


@dataclass(frozen=True)
class Bbmp(Attribution):
    """Meaningful perturbations: the smallest and smoothest mask that removes the probability of the label.

    A mask blends each feature towards its reference. Adam minimises the label's probability (for a targeted question
    minus the target's), the masked share and the roughness of the mask. It starts from a full mask, because a confident
    network has no gradient at the input itself. Features that are masked most come first.

    Attributes:
        reference: What masked features become. None: a blurred copy of an image, 0 for other inputs.
        steps: Steps of Adam.
        l1: Weight of the masked share.
        tv: Weight of the third power of differences between neighbouring pixels; images only.
        rate: The learning rate.
        seed: Seed of random references and of the order of features with equal values.
    """

    reference: Reference | None = None
    steps: Count = 1000
    l1: NotNegative = 10.0
    tv: NotNegative = 0.01
    rate: Positive = 0.1
    seed: int = 0
    absolute: bool = field(default=False, init=False, repr=False)
    name: ClassVar[str] = "bbmp"
    source: ClassVar[str] = "Fong & Vedaldi 2017"
    requires: ClassVar[Access] = Access.GRADIENTS
    uses: ClassVar[tuple[str, ...]] = ("a reference value",)

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        usual: Reference = "blur" if cases.x.ndim == 4 else 0.0
        points = reference_points(cases, usual if self.reference is None else self.reference, self.seed)

        def work(piece: slice) -> Tensor:
            return self._mask(cases[piece], points[piece], piece, len(cases), progress)

        return torch.cat([part for _, part in chunked(work, len(cases), cases.model.chunk(cases.x))])

    def rows(self, features: int) -> int:
        return self.steps

    def _mask(self, cases: Cases, points: Tensor, piece: slice, total: int, progress: Progress | None) -> Tensor:
        """Return the masked share of every feature, ``[B, d]``."""
        difference = cases.x - points
        kept = cases.x.new_zeros(len(cases), cases.features.count)
        optimiser = torch.optim.Adam([kept], lr=self.rate)
        count = features_of(cases).sum(1, keepdim=True)

        def probability(logits: Tensor) -> Tensor:
            share = logits.softmax(1)
            own = share.gather(1, cases.label[:, None])[:, 0]
            return own - share.gather(1, cases.target.clamp_min(0)[:, None])[:, 0].masked_fill(cases.target == ANY, 0)

        for step in range(self.steps):
            _, slope = differentiable(cases.model).gradient(
                points + cases.features.spread(kept) * difference, probability
            )
            kept.grad = cases.features.pool(slope * difference) - self.l1 / count + self._roughness_slope(cases, kept)
            optimiser.step()
            kept.clamp_(0, 1)
            if progress is not None and step % 10 == 9:
                done = piece.start * self.steps + (piece.stop - piece.start) * (step + 1)
                progress(done, total * self.steps)
        return 1 - kept

    def _roughness_slope(self, cases: Cases, kept: Tensor) -> Tensor:
        """Return the gradient of ``tv`` times the mean third power of differences between neighbouring pixels."""
        if cases.x.ndim != 4 or self.tv == 0:
            return torch.zeros_like(kept)
        picture = cases.features.spread(kept)
        picture = picture.expand(-1, -1, *cases.x.shape[2:])
        free = (cases.features.ids >= 0).expand_as(picture)
        result = torch.zeros_like(picture)
        for side in (2, 3):
            size = picture.shape[side]
            if size < 2:
                continue
            both = free.narrow(side, 1, size - 1) & free.narrow(side, 0, size - 1)
            steps = picture.diff(dim=side) * both
            pull = 3 * steps * steps.abs() * self.tv / steps[0].numel()
            result.narrow(side, 1, size - 1).add_(pull)
            result.narrow(side, 0, size - 1).sub_(pull)
        return cases.features.pool(result.expand_as(cases.x)) * picture.shape[1] / cases.x.shape[1]
