"""A criterion along the sizes of the relevant set, and the area under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.errors import HoldfastError
from holdfast.ranking import Ranking, features_of

SIZES = tuple(percent / 100 for percent in range(5, 50, 5))
"""The paper's: the top 5, 10, … 45 % of the features."""
FULL = tuple(percent / 100 for percent in range(0, 105, 5))
"""From none to all of them; for criteria that have a value at both ends, as Insertion and Deletion have."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Values ``[B, P]`` of a criterion at P sizes of the relevant set; ``inf`` where censored.

    ``sizes [P]`` are shares of the features, or whole numbers of them.
    ``ceiling [B, P]`` is the largest value possible, which stands in for censored ones in ``capped`` and ``auc``.
    """

    sizes: Tensor
    values: Tensor
    ceiling: Tensor
    criterion: str
    explainer: str

    @property
    def censored(self) -> Tensor:
        """Where no change of the decision was found: bool ``[B, P]``."""
        return torch.isinf(self.values)

    def capped(self) -> Tensor:
        """Values with the largest move that the box allows in place of censored ones."""
        if bool((self.censored & (self.ceiling == 0)).any()):
            raise HoldfastError(
                "at some sizes no feature is left to move: such a point has no value, ask for smaller ones."
            )
        if bool(self.values.isnan().any()):
            raise HoldfastError("some values of the criterion are NaN: there is no area under them.")
        values = torch.where(self.censored, self.ceiling, self.values)
        if not bool(torch.isfinite(values).all()):
            raise HoldfastError(
                f"{int(self.censored.sum())} of {self.values.numel()} points are censored and the model has no bounds "
                "to cap them by: leave these cases out or search harder."
            )
        return values

    def auc(self) -> Tensor:
        """Area under the curve of each case ``[B]``, by the trapezoid rule: shares in percent, as in the paper."""
        if len(self.sizes) < 2:
            raise HoldfastError("an area needs at least two sizes.")
        return torch.trapezoid(self.capped(), self.along(), dim=1)

    def along(self) -> Tensor:
        """The sizes as an axis: shares in percent, or numbers of features."""
        return 100 * self.sizes if self.sizes.is_floating_point() else self.sizes


def trace(
    cases: Cases,
    ranking: Ranking,
    criterion: Criterion,
    sizes: Sequence[float] | Sequence[int] = SIZES,
    *,
    progress: Progress | None = None,
) -> Curve:
    """Judge a ranking: the criterion of its top 5 %, 10 %, … 45 %, all sizes asked together.

    Whole ``sizes`` are numbers of features: ``range(1, 6)`` are the top 1, 2, … 5.
    """
    if len(ranking) != len(cases) or ranking.order.shape[1] != cases.features.count:
        raise HoldfastError(
            f"the ranking orders {tuple(ranking.order.shape)} features, the cases have "
            f"{(len(cases), cases.features.count)}."
        )
    if not torch.equal(ranking.count.to(cases.x.device), features_of(cases).sum(1)):
        raise HoldfastError("the ranking is of cases with another number of features.")
    kinds = {type(size) for size in sizes}
    if kinds not in ({float}, {int}) or list(sizes) != sorted(set(sizes)):
        raise HoldfastError(
            f"sizes must be rising shares of the features between 0 and 1 or rising numbers of them, got {list(sizes)}."
        )
    relevant = ranking.top(sizes)
    values = criterion(cases, relevant, progress=progress)
    ceiling = criterion.ceiling(cases, relevant)
    along = torch.tensor(sizes, device=values.device)
    along = along.to(values.dtype) if along.is_floating_point() else along
    return Curve(along, values, ceiling, repr(criterion), ranking.method)
