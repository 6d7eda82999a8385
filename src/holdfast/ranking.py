"""An order of the features: the result of an explainer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from holdfast.cases import Cases, check_cases
from holdfast.draws import generator
from holdfast.errors import HoldfastError
from holdfast.features import Features
from holdfast.palette import INK, RELEVANT
from holdfast.prose import brief, counted
from holdfast.settings import Count, read_setting
from holdfast.sizes import Sizes, read_sizes, size_of
from holdfast.sizes import check_size as check_size
from holdfast.sizes import size_text as size_text
from holdfast.tensors import read_tensor

if TYPE_CHECKING:
    from holdfast.figures import Plot  # imports matplotlib


@dataclass(frozen=True, eq=False)
class Ranking:
    """The features of each case, most relevant first. ``ranking[2:5]`` are the rankings of some cases.

    >>> ranking = Ranking(torch.tensor([[2, 0, 1]]), torch.tensor([[0.5, 0.1, 0.9]]), torch.tensor([3]))
    >>> ranking.top(2)
    tensor([[[ True, False,  True]]])

    Attributes:
        order: Feature numbers ``[B, d]``, most relevant first. Features that a case does not have (padding) come last.
        scores: The score of each feature, ``[B, d]``, indexed by feature. Scores never rise along ``order``.
        count: The number of features that each case has, ``[B]``.
        method: The explainer that made it, as text.
        uncertain: ``[B]``: the share of chosen features whose score is within a standard error of the best one that was
            not chosen. None where errors are unknown.
        notes: Sentences about cases that need careful interpretation.
        uninformative: Bool ``[B]``: the order of this case has no meaning; ``notes`` say why. Default: none.
    """

    order: Tensor
    scores: Tensor
    count: Tensor
    method: str = ""
    uncertain: Tensor | None = None
    notes: tuple[str, ...] = ()
    uninformative: Tensor = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        optional = [name for name in ("uncertain", "uninformative") if getattr(self, name) is not None]
        for name in ("order", "scores", "count", *optional):
            object.__setattr__(self, name, read_tensor(getattr(self, name), name))
        if self.uninformative is None:
            object.__setattr__(self, "uninformative", torch.zeros_like(self.count, dtype=torch.bool))
        if self.order.shape != self.scores.shape or self.order.ndim != 2:
            raise HoldfastError(
                f"order and scores must both be [B, d], got {tuple(self.order.shape)} and {tuple(self.scores.shape)}."
            )
        if self.count.shape != self.order.shape[:1]:
            raise HoldfastError(f"count must be [B] = [{len(self.order)}], got {tuple(self.count.shape)}.")
        every = torch.arange(self.order.shape[1], device=self.order.device)
        if not bool((self.order.sort(1).values == every).all()):
            raise HoldfastError(f"order must name each of the {len(every)} features of a case once.")

    def __repr__(self) -> str:
        least, most = (int(end) for end in self.count.aminmax()) if len(self) else (0, 0)
        features = counted(most, "feature") if least == most else f"{least} to {most} features"
        facts = [f"{counted(int(self.uninformative.sum()), 'case')} without an order"]
        parts = [counted(len(self), "case"), features, *(facts if bool(self.uninformative.any()) else [])]
        return f"Ranking({', '.join(parts)}{f', by {brief(self.method)}' if self.method else ''})"

    def plot(self, case: int = 0, features: Features | Cases | None = None, top: int = 20) -> Plot:
        """Draw the scores of the first features of one case as bars, the most relevant one on top.

        Args:
            case: The index of the case.
            features: The features, or the cases, whose names are shown. Default: the numbers of the features.
            top: How many features to draw at most.

        Raises:
            HoldfastError: There is no such case, or the features are not those of the ranking.
        """
        from holdfast.figures import Plot, cut, house, plain  # imports matplotlib

        case, top = read_setting(case, int, "case"), read_setting(top, Count, "top")
        if not 0 <= case < len(self):
            raise HoldfastError(f"case must be from 0 to {len(self) - 1}, got {case}.")
        named = features.features if isinstance(features, Cases) else features
        if named is not None and (not isinstance(named, Features) or named.count != self.order.shape[1]):
            got = named.count if isinstance(named, Features) else type(named).__name__
            raise HoldfastError(f"expected the {self.order.shape[1]} features of the ranking or its cases, got {got}.")
        first = self.order[case, : min(top, int(self.count[case]))].tolist()
        names = [f"feature {one}" if named is None else named.name(one, case) for one in first]
        plot = Plot(height=0.9 + 0.21 * len(first))
        with house():
            [ax] = plot.panels()
            ax.barh(range(len(first)), self.scores[case].cpu()[first].tolist(), color=RELEVANT)
            ax.set_yticks(range(len(first)), [cut(plain(name), 44) for name in names])
            ax.set_ylim(len(first) - 0.5, -0.5)
            ax.axvline(0, color=INK, linewidth=0.8)
            ax.set_xlabel("score")
            ax.set_title(f"First {len(first)} of {counted(int(self.count[case]), 'feature')}, case {case}")
        return plot

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, which: slice) -> Ranking:
        uncertain = None if self.uncertain is None else self.uncertain[which]
        return Ranking(
            self.order[which],
            self.scores[which],
            self.count[which],
            self.method,
            uncertain,
            self.notes,
            self.uninformative[which],
        )

    @classmethod
    def by_score(cls, cases: Cases, scores: Any, method: str = "", ties: int | None = None) -> Ranking:
        """Rank features by falling score.

        Args:
            cases: The cases that the scores belong to.
            scores: A tensor or array: one score a feature ``[B, d]``; or one a coordinate, in the shape of the inputs
                ``[B, *shape]`` with axes of length 1 broadcast, or ``[B, H, W]`` for images. Scores of coordinates are
                summed over each feature, with their signs.
            method: What made the scores, as text.
            ties: A seed that draws the order of features with equal scores, the same for every case. None: the first
                feature comes first.

        Returns:
            The ranking.

        Raises:
            HoldfastError: The shape does not fit the cases, or scores are not finite.
        """
        check_cases(cases)
        ties = read_setting(ties, int | None, "ties")
        scores = _feature_scores(cases, scores)
        if not bool(torch.isfinite(scores).all()):
            raise HoldfastError("scores must be finite to give an order, got NaN or infinity.")
        present = features_of(cases)
        drawn = torch.arange(scores.shape[1])
        if ties is not None:
            # Among the first features the same whatever follows, which randperm does not promise.
            drawn = torch.rand(scores.shape[1], generator=generator(ties)).argsort()
        drawn = drawn.to(scores.device)
        order = scores.masked_fill(~present, -math.inf)[:, drawn].argsort(dim=1, descending=True, stable=True)
        scores = torch.where(present, scores, scores.masked_fill(~present, math.inf).amin(1, keepdim=True))
        return cls(drawn[order], scores, present.sum(1), method)

    @classmethod
    def joined(cls, rankings: Sequence[Ranking]) -> Ranking:
        """Concatenate rankings of several batches. Method, notes and ``uncertain`` are dropped.

        Args:
            rankings: Rankings with the same number of features.

        Returns:
            One ranking of all cases.
        """
        if not rankings or len({one.order.shape[1] for one in rankings}) > 1:
            raise HoldfastError("expected one ranking or more, all with the same number of features.")
        order, scores = torch.cat([one.order for one in rankings]), torch.cat([one.scores for one in rankings])
        count = torch.cat([one.count for one in rankings])
        return cls(order, scores, count, uninformative=torch.cat([one.uninformative for one in rankings]))

    def top(self, sizes: Sizes) -> Tensor:
        """Return the most relevant features as subsets.

        Args:
            sizes: One size or several: a share of the features (float) or a number of them (int). The share 0.0 is no
                feature; any other share is at least one.

        Returns:
            Bool ``[B, P, d]``, one subset for each of the P sizes.

        Raises:
            HoldfastError: There is no size, or one is malformed.
        """
        position = self.order.argsort(1)[:, None]
        empty = torch.zeros_like(self.count)
        counts = [(empty if _is_empty(size) else size_of(size, self.count))[:, None] for size in read_sizes(sizes)]
        return position < torch.stack(counts, 1)


def features_of(cases: Cases) -> Tensor:
    """Return which of the d features each case has, bool ``[B, d]``; the others are padding."""
    return cases.features.pool(torch.ones_like(cases.x)) > 0


def _is_empty(size: float | int) -> bool:
    """Whether a size is the share 0.0. The number 0 is refused, as it is more likely a mistake."""
    return isinstance(size, float) and size == 0


def fits_scores(cases: Cases, given: Sequence[int]) -> bool:
    """Return whether scores of this shape can order the features of these cases, as ``Ranking.by_score`` reads them."""
    shape, given = tuple(cases.x.shape), tuple(given)
    if given == (len(cases), cases.features.count):
        return True
    if len(given) == 3 and len(shape) == 4:
        given = (given[0], 1, *given[1:])
    alike = len(given) == len(shape) and given[0] == shape[0]
    return alike and all(ours in (1, theirs) for ours, theirs in zip(given, shape, strict=True))


def _feature_scores(cases: Cases, given: Any) -> Tensor:
    """Return scores ``[B, d]``; scores of coordinates are summed over each feature."""
    scores = read_tensor(given, "scores", "a tensor or an array [B, d]").to(cases.x.device)
    shape_given = tuple(scores.shape)
    scores = scores if scores.is_floating_point() else scores.to(cases.x)
    expected, shape = (len(cases), cases.features.count), tuple(cases.x.shape)
    if not fits_scores(cases, shape_given):
        raise HoldfastError(f"scores must be [B, d] = {expected} or of the inputs' shape {shape}, got {shape_given}.")
    if scores.shape == expected:
        return scores
    if scores.ndim == 3 and len(shape) == 4:
        scores = scores[:, None]  # a map of an image has one channel
    if scores[0].numel() == 1 < cases.x[0].numel():
        raise HoldfastError(f"scores of shape {shape_given} give all features of a case the same score.")
    # Channels that share a feature stay one channel: their score counts once.
    return cases.features.pool(scores.expand(np.broadcast_shapes(scores.shape, cases.features.ids.shape)))
