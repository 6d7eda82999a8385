"""A criterion as a function of the size of the relevant set, and the area under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.cases import Cases, check_cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion, read_criterion
from holdfast.errors import HoldfastError
from holdfast.palette import LINE, Style, style
from holdfast.prose import brief, counted
from holdfast.ranking import Ranking, features_of
from holdfast.settings import shown_value
from holdfast.sizes import FULL as FULL
from holdfast.sizes import SIZES as SIZES
from holdfast.sizes import Sizes, read_sizes, size_text

if TYPE_CHECKING:
    from holdfast.figures import Plot  # imports matplotlib

_DRAWN = 50  # so many cases have their own line


@dataclass(frozen=True, eq=False)
class Curve:
    """The values of a criterion at P sizes of the relevant set.

    Attributes:
        sizes: ``[P]``: shares of the features (float), or numbers of them (int).
        values: ``[B, P]``; ``inf`` where no value was found (censored).
        ceiling: ``[B, P]``: the largest possible value. ``capped`` and ``auc`` use it in place of censored values.
        criterion: The criterion, as text.
        explainer: The explainer that made the ranking, as text.
    """

    sizes: Tensor
    values: Tensor
    ceiling: Tensor
    criterion: str
    explainer: str

    def __repr__(self) -> str:
        sizes = [size_text(size) for size in self.sizes.tolist()]
        span = sizes[0] if len(sizes) == 1 else f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]}"
        means = self.drawable().nanmean(0)
        ends = f"mean {means[0]:.4g}" + (f" to {means[-1]:.4g}" if len(sizes) > 1 else "")
        facts = [f"{int(self.censored.sum())} censored"] if bool(self.censored.any()) else []
        parts = [self.criterion.partition("(")[0] or "values", counted(len(self.values), "case"), span, ends, *facts]
        return f"Curve({', '.join(map(brief, parts))}{f', by {brief(self.explainer)}' if self.explainer else ''})"

    def plot(self) -> Plot:
        """Draw the mean over the cases with a band of one standard error, above the curve of each of few cases."""
        from holdfast.figures import Plot, cut, house, plain  # imports matplotlib

        plot = Plot()
        with house():
            [ax] = plot.panels()
            values, along = self.drawable().cpu(), self.along().double().cpu()
            for row in values if 1 < len(values) <= _DRAWN else ():
                ax.plot(along, row, color=LINE, linewidth=0.7, zorder=1)
            draw_curves(ax, {"": self}, {"": style(0)}, main="")
            ax.set_ylabel(cut(plain(self.criterion.partition("(")[0])))
            of = f"mean of {len(values)} cases ± standard error" if len(values) > 1 else "1 case"
            rings = "; ring: no change found in some cases" if bool(self.censored.any()) else ""
            ax.set_title(f"{cut(plain(self.explainer), 60)}\n{of}{rings}".strip(), fontsize=8, fontweight="normal")
        return plot

    @property
    def censored(self) -> Tensor:
        """Bool ``[B, P]``: where no change of the decision was found."""
        return torch.isinf(self.values)

    def capped(self) -> Tensor:
        """Return the values ``[B, P]`` with the ceiling in place of censored ones.

        Raises:
            HoldfastError: A censored point has no ceiling, or no feature is left to move there.
        """
        if bool((self.censored & (self.ceiling == 0)).any()):
            raise HoldfastError("no feature is left to move at some sizes, so there is no value: use smaller sizes.")
        if bool(self.values.isnan().any()):
            raise HoldfastError("some values of the criterion are NaN: there is no area under them.")
        values = torch.where(self.censored, self.ceiling, self.values)
        if not bool(torch.isfinite(values).all()):
            raise HoldfastError(
                f"{int(self.censored.sum())} of {self.values.numel()} points are censored, and the model has no bounds "
                "to cap them by: leave these cases out or use a more thorough search."
            )
        return values

    def drawable(self) -> Tensor:
        """Return the values ``[B, P]`` with the ceiling in place of censored ones, and NaN where that is unknown."""
        values = torch.where(self.censored, self.ceiling, self.values).double()
        return values.masked_fill(torch.isinf(values) | (self.censored & (self.ceiling == 0)), torch.nan)

    def auc(self) -> Tensor:
        """Return the area under the curve of each case, ``[B]``, by the trapezoid rule over ``along()``.

        Raises:
            HoldfastError: There is only one size, or a value is unknown.
        """
        if len(self.sizes) < 2:
            raise HoldfastError(f"an area needs at least two sizes, got {len(self.sizes)}.")
        return torch.trapezoid(self.capped(), self.along(), dim=1)

    def along(self) -> Tensor:
        """Return the sizes as an axis, ``[P]``: shares in percent, as in the paper, or numbers of features."""
        return 100 * self.sizes if self.sizes.is_floating_point() else self.sizes


def draw_curves(
    ax: Any, curves: Mapping[str, Curve], styles: Mapping[str, Style], main: str | None = None, banded: int = 4
) -> None:
    """Draw the mean curve of each method. Points with censored cases have a ring.

    Args:
        ax: Axes of matplotlib.
        curves: The curves by method, all at the same sizes.
        styles: The style of each method.
        main: The method whose line is thicker.
        banded: How many of the methods, from the first on, have a band of one standard error around the mean.
    """
    from holdfast.figures import plain  # whoever has axes has loaded matplotlib

    for place, (name, curve) in enumerate(curves.items()):
        values, sizes, style = curve.drawable().cpu(), curve.along().double().cpu(), styles[name]
        mean = values.nanmean(0)
        spread = (values - mean).square().nanmean(0).sqrt() / max(1, len(values) - 1) ** 0.5
        width, over = (2.6, 3) if name == main else (1.3, 2)
        look = {"color": style.colour, "linestyle": style.dash, "marker": style.marker, "linewidth": width}
        ax.plot(sizes, mean, markersize=4, label=plain(name), zorder=over, **look)
        if place < banded and len(values) > 1:
            ax.fill_between(sizes, mean - spread, mean + spread, color=style.colour, alpha=0.15, linewidth=0)
        some = curve.censored.any(0).cpu()
        if bool(some.any()):
            ax.plot(sizes[some], mean[some], "o", markersize=9, fillstyle="none", color=style.colour)
    shares = next(iter(curves.values())).sizes.is_floating_point()
    if not shares:
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("relevant features, %" if shares else "relevant features")


def trace(
    cases: Cases,
    ranking: Ranking,
    criterion: Criterion | type[Criterion] | str,
    sizes: Sizes = SIZES,
    *,
    progress: Progress | None = None,
) -> Curve:
    """Evaluate a ranking: measure a criterion at several sizes of the relevant set, all in one call.

    >>> from holdfast.models.torch import TorchModel
    >>> net = torch.nn.Linear(3, 2, bias=False).eval()
    >>> net.weight.data = torch.tensor([[3.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    >>> cases = TorchModel(net, bounds=(0, 1)).ask(torch.ones(1, 3))
    >>> trace(cases, Ranking.by_score(cases, [[0.5, 0.1, 0.9]]), "robustness-rest", sizes=[1, 2]).values.shape
    torch.Size([1, 2])

    Args:
        cases: The cases that were ranked.
        ranking: An order of their features, made by an explainer or by ``Ranking.by_score``.
        criterion: What to measure: an instance, a class that needs no settings, or a name.
        sizes: Rising shares of the features (float) or numbers of them (int), such as ``range(1, 6)``. Default: the
            paper's 5, 10, … 45 %.
        progress: Called with (done, total) while it runs.

    Returns:
        One value for each case and size.

    Raises:
        HoldfastError: An argument is malformed, or the ranking belongs to other cases.
    """
    check_cases(cases)
    check_ranking(cases, ranking)
    criterion = read_criterion(criterion)
    numbers = read_sizes(sizes)
    if {type(size) for size in numbers} not in ({float}, {int}) or list(numbers) != sorted(set(numbers)):
        raise HoldfastError(
            "sizes must be rising shares of the features between 0 and 1 or rising numbers of them, got "
            f"{shown_value(sizes)}."
        )
    relevant = ranking.top(numbers)
    values = criterion(cases, relevant, progress=progress)
    ceiling = criterion.ceiling(cases, relevant)
    along = torch.tensor(numbers, device=values.device)
    along = along.to(values.dtype) if along.is_floating_point() else along
    return Curve(along, values, ceiling, repr(criterion), ranking.method)


def check_ranking(cases: Cases, ranking: object) -> None:
    """Refuse what is not a ranking of these cases.

    Raises:
        HoldfastError: It is something else, or a ranking of other cases or features.
    """
    if not isinstance(ranking, Ranking):
        kind = type(ranking).__name__
        raise HoldfastError(f"expected a ranking, made by explainer(cases) or Ranking.by_score, got {kind}.")
    if len(ranking) != len(cases) or ranking.order.shape[1] != cases.features.count:
        raise HoldfastError(
            f"the ranking orders {tuple(ranking.order.shape)} features, the cases have "
            f"{(len(cases), cases.features.count)}."
        )
    if not torch.equal(ranking.count.to(cases.x.device), features_of(cases).sum(1)):
        raise HoldfastError("the ranking is of cases with another number of features.")
