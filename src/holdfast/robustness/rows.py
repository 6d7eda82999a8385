"""Rows: the flat batch that every robustness method works on, one row for each case and subset."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.models.model import Model, differentiable


def margin(logits: Tensor, label: Tensor, target: Tensor, aim: Tensor | None = None) -> Tensor:
    """Return the margin by which each decision is kept; it is negative once the decision has changed as asked.

    Untargeted ``z_y - max_{j != y} z_j`` (Definition 3.1), targeted ``max_{j != t} z_j - z_t`` (eq. 2). A tie is no
    change.

    Args:
        logits: ``[R, classes]``.
        label: The explained class y, ``[R]``.
        target: The class t asked about, ``[R]``; ``ANY`` for none.
        aim: A class j, ``[R]``: the margin is ``z_y - z_j`` where it is not ``ANY`` and there is no target.

    Returns:
        Margins ``[R]``.
    """
    aimed = target != ANY
    pivot = torch.where(aimed, target, label)
    runner_up = logits.detach().scatter(1, pivot[:, None], -math.inf).argmax(1)
    # Chosen as indices: the gradient of a gather is cheap on a GPU, that of a where is not.
    high, low = torch.where(aimed, runner_up, pivot), torch.where(aimed, pivot, runner_up)
    low = low if aim is None else torch.where(aim == ANY, low, aim)
    pair = logits.gather(1, torch.stack([high, low], 1))
    return pair[:, 0] - pair[:, 1]


@dataclass(frozen=True, eq=False)
class Hint:
    """What a caller knows of R rows, and how precise the answer must be. A method may ignore it.

    Attributes:
        lower: Proven lower bounds, ``[R]``.
        start: Moves that may change the decision, inside mask and box, ``[R, n]``; None: none are known.
        tolerance: A radius may exceed its proven lower bound by this share.
    """

    lower: Tensor
    start: Tensor | None = None
    tolerance: float = 0.0

    def at(self, which: Tensor) -> Hint:
        """Return the hints of some of the rows."""
        return Hint(self.lower[which], None if self.start is None else self.start[which], self.tolerance)


@dataclass(frozen=True, eq=False)
class Rows:
    """R questions: flat inputs, and the interval ``low <= delta <= high`` that each coordinate may move in.

    The interval joins mask and box: coordinates outside the row's subset have ``low = high = 0``.

    Attributes:
        model: The model that is asked.
        shape: The shape of one input.
        x: Inputs ``[R, n]``.
        low: The smallest allowed move of each coordinate, ``[R, n]``; ``-inf`` without a box.
        high: The largest, ``[R, n]``.
        label: The explained class of each row, ``[R]``.
        target: The class asked about, ``[R]``; ``ANY`` for none.
        hint: What exact methods are told beforehand; None: nothing.
    """

    model: Model
    shape: tuple[int, ...]
    x: Tensor
    low: Tensor
    high: Tensor
    label: Tensor
    target: Tensor
    hint: Hint | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.x)

    @classmethod
    def of(cls, cases: Cases, subsets: Tensor, which: slice) -> Rows:
        """Make some of the ``B * K`` rows of cases and their subsets.

        Args:
            cases: B cases.
            subsets: Bool ``[B, K, d]``: True where a feature may move.
            which: The rows to make; row ``b * K + k`` is subset k of case b.

        Returns:
            The rows.
        """
        k = subsets.shape[1]
        row = torch.arange(which.start, which.stop, device=cases.x.device)
        case = row // k
        x = cases.x[case]
        free = cases.features.expand(subsets.flatten(0, 1)[row], case).expand_as(x)
        low, high = (torch.where(free, edge, 0) for edge in box(cases.model, x))
        return cls(
            cases.model,
            tuple(x.shape[1:]),
            x.flatten(1),
            low.flatten(1),
            high.flatten(1),
            cases.label[case],
            cases.target[case],
        )

    def at(self, which: Tensor) -> Rows:
        """Return some of these rows by index or mask; an index may occur several times."""
        return Rows(
            self.model,
            self.shape,
            self.x[which],
            self.low[which],
            self.high[which],
            self.label[which],
            self.target[which],
            hint=None if self.hint is None else self.hint.at(which),
        )

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The rows as arguments of a step: ``Rows(model, shape, *tensors)`` makes them again."""
        return self.x, self.low, self.high, self.label, self.target

    @property
    def free(self) -> Tensor:
        """Which coordinates can move: bool ``[R, n]``."""
        return self.low < self.high

    def points(self, delta: Tensor) -> Tensor:
        """Return the inputs ``[R, *shape]`` at ``x + delta``; rounding does not leave the box."""
        moved = (self.x + delta).reshape(-1, *self.shape)
        return moved if self.model.low is None else torch.clamp(moved, self.model.low, self.model.high)

    def inputs(self, delta: Tensor) -> Tensor:
        """Return the nearest inputs of the model to ``x + delta``, ``[R, *shape]``: those of its domain."""
        points, domain = self.points(delta), self.model.domain
        return points if domain is None else domain.nearest(points.flatten(1), self.x).reshape(points.shape)

    def gradient(
        self, delta: Tensor, loss: Callable[[Tensor], Tensor], *, low_precision: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute logits, a loss and its gradient at ``x + delta`` in one pass.

        Args:
            delta: Moves ``[R, n]``.
            loss: From logits ``[R, classes]`` to values ``[R]``.
            low_precision: Accept a less exact gradient.

        Returns:
            Logits ``[R, classes]``, values ``[R]`` and gradients ``[R, n]``.

        Raises:
            HoldfastError: The model has no gradients.
        """
        values: list[Tensor] = []

        def value(logits: Tensor) -> Tensor:
            values.append(loss(logits))
            return values[0]

        logits, slope = differentiable(self.model).gradient(self.points(delta), value, low_precision=low_precision)
        return logits, values[0].detach(), slope.flatten(1)

    def margin(self, logits: Tensor, aim: Tensor | None = None) -> Tensor:
        """Return the margin of each row, ``[R]``; see ``margin``."""
        return margin(logits, self.label, self.target, aim)

    def changed(self, logits: Tensor) -> Tensor:
        """Return whether each decision is the one that the row asks for, bool ``[R]``."""
        return self.margin(logits) < 0


def box(model: Model, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the smallest and largest move of each coordinate of ``x [R, *shape]`` inside the bounds of the model.

    Coordinates that may only rise or only fall have 0 as the other end.
    """
    inf = torch.full_like(x, math.inf)
    low, high = (-inf if model.low is None else model.low - x), (inf if model.high is None else model.high - x)
    if model.domain is None:
        return low, high
    assert model.domain.rising is not None
    assert model.domain.falling is not None
    return low.masked_fill(model.domain.rising, 0), high.masked_fill(model.domain.falling, 0)
