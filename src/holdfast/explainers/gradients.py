"""Explainers by gradients: at the input, along a line from a reference, and over many references."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import Cases, explained
from holdfast.chunks import Progress, chunked
from holdfast.draws import generator
from holdfast.explainers.explainer import Attribution, case_by_case
from holdfast.models.calls import ModelCall
from holdfast.models.model import Access, differentiable
from holdfast.reference import (
    FixedReference,
    RandomWords,
    Reference,
    References,
    noise,
    random_words,
    reference_points,
)
from holdfast.settings import Count


@dataclass(frozen=True)
class Grad(Attribution):
    """How strongly the score reacts to a small change of each feature: the absolute gradient, summed over coordinates.

    Attributes:
        seed: Seed of the order of features with equal values.
    """

    seed: int = 0
    absolute: bool = field(default=True, init=False, repr=False)
    name: ClassVar[str] = "grad"
    source: ClassVar[str] = "Simonyan et al. 2013"
    requires: ClassVar[Access] = Access.GRADIENTS

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        def work(piece: slice) -> Tensor:
            part = cases[piece]
            return part.features.pool(_slope(part, part.x).abs())

        return case_by_case(cases, work, 1, progress)

    def rows(self, features: int) -> int:
        return 1


@dataclass(frozen=True)
class IntegratedGradients(Attribution):
    """Integrated gradients: what each feature adds to the score on the line from one reference x' to the input x.

    The reference decides what counts as absent. The value is ``(x - x')`` times the average gradient on the line,
    computed by Captum.

    Attributes:
        reference: The reference x'.
        steps: Points on the line.
        absolute: Order by the size of the attribution.
        seed: Seed of random references and of the order of features with equal values.
    """

    reference: Reference = 0.0
    steps: Count = 10
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "integrated-gradients"
    source: ClassVar[str] = "Sundararajan et al. 2017"
    requires: ClassVar[Access] = Access.GRADIENTS
    uses: ClassVar[tuple[str, ...]] = ("a reference value",)

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        from captum import attr as captum  # heavy: imported when it is used

        points = reference_points(cases, self.reference, self.seed)
        model = differentiable(cases.model)
        # Captum repeats the arguments for every step, so that labels stay with their rows.
        method = captum.IntegratedGradients(lambda x, label, target: explained(model.logits(x), label, target))
        most = cases.model.chunk(cases.x)

        def work(piece: slice) -> Tensor:
            part = cases[piece]
            with ModelCall(part.x, "backward"):
                attributed: Tensor = method.attribute(
                    part.x,
                    points[piece],
                    additional_forward_args=(part.label, part.target),
                    n_steps=self.steps,
                    internal_batch_size=most if self.steps > most else None,
                )
            return part.features.pool(attributed)

        return case_by_case(cases, work, self.steps, progress)

    def rows(self, features: int) -> int:
        return self.steps


@dataclass(frozen=True)
class ExpectedGradients(Attribution):
    """Expected gradients: what each feature adds to the score on the way from random references x' to the input x.

    All cases have the same draws. The value is ``(x - x')`` times the gradient at a random point between x' and x,
    averaged.

    Attributes:
        references: Inputs ``[N, *shape]`` to draw x' from, such as training data, or ``RandomWords`` for embedded text.
            None: uniform noise inside the model's bounds.
        samples: How many references are drawn.
        absolute: Order by the size of the attribution.
        seed: Seed of all draws.
    """

    references: References | None = None
    samples: Count = 100
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "expected-gradients"
    source: ClassVar[str] = "Erion et al. 2019"
    requires: ClassVar[Access] = Access.GRADIENTS
    uses: ClassVar[tuple[str, ...]] = ("references or bounds",)

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        drawn, share = self._draw(cases)
        total = cases.x.new_zeros(len(cases), cases.features.count)
        rows = torch.arange(len(cases) * self.samples, device=cases.x.device)

        def work(piece: slice) -> None:
            case, draw = rows[piece] // self.samples, rows[piece] % self.samples
            part = cases[case]
            start = torch.where(part.features.ids >= 0, drawn[draw], part.x)
            difference = part.x - start
            total.index_add_(0, case, part.features.pool(difference * _slope(part, start + share[draw] * difference)))

        for piece, _ in chunked(work, len(rows), cases.model.chunk(cases.x)):
            if progress is not None:
                progress(piece.stop, len(rows))
        return total / self.samples

    def _draw(self, cases: Cases) -> tuple[Tensor, Tensor]:
        """Draw references ``[samples, *shape]`` and the share of the way from each to x, ``[samples, 1, ...]``."""
        shape, drawing = cases.x.shape[1:], generator(self.seed)
        share = torch.rand(self.samples, *[1] * len(shape), generator=drawing).to(cases.x)
        if self.references is None:
            return noise(cases, self.samples, self.seed + 1), share
        if isinstance(self.references, RandomWords):
            draws = range(self.samples)
            drawn = [random_words(self.references, cases.x[:1], self.seed + 1 + draw) for draw in draws]
            return torch.cat(drawn), share
        references = FixedReference.inputs(self.references).fitting(cases.x)
        which = torch.randint(len(references), (self.samples,), generator=drawing)
        return references[which.to(references.device)], share

    def rows(self, features: int) -> int:
        return self.samples


def _slope(cases: Cases, points: Tensor) -> Tensor:
    """Return the gradient of the explained score at points ``[B, *shape]``."""
    return differentiable(cases.model).gradient(points, lambda logits: explained(logits, cases.label, cases.target))[1]
