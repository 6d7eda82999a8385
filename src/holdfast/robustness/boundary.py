"""Boundary normals: the boundaries with the nearest classes, and how each feature changes the distance to them.

Where the boundary is flat with normal w, ``g(S) = m / ||w_S||_q``. One gradient at the boundary then tells how g
changes when any feature is freed or held. Nothing here claims a radius; robustness methods find witnesses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.chunks import chunked
from holdfast.features import Features
from holdfast.models.model import differentiable
from holdfast.robustness.norms import Norm, norm_of
from holdfast.robustness.rows import Rows, box
from holdfast.robustness.shares import LinearBoundary
from holdfast.robustness.steps import clip, descent_limit

_STEP_SHARE = 0.5  # of the distance to the linearised boundary: whole steps oscillate about its kinks
_OVERSHOOT = 1.1  # factor on the drop that a step aims for, so that a curved boundary is crossed, not only approached


@dataclass(frozen=True, eq=False)
class NearestClasses:
    """The classes nearest to each case, and moves to their boundaries.

    Attributes:
        aim: ``[B, C]``; ``ANY`` where the question has a target.
        move: ``[B, K, C, n]``: where each subset starts next. With K = 1 all subsets start from the same moves.
        low_precision: Whether gradients may still be computed in low precision.
    """

    aim: Tensor
    move: Tensor
    low_precision: bool = True


@dataclass(frozen=True, eq=False)
class Normals:
    """The linearised boundaries of B cases and K subsets.

    Attributes:
        radius: The distance to the nearest linearised boundary, ``[B, K]``.
        worth: By how much the radius changes when a feature is held (if it may move) or freed (if it may not),
            ``[B, K, d]``, never negative.
        changed: Bool ``[B]``: the decision changed at some point that was evaluated.
        nearest: The nearest classes, for the next call with similar subsets.
    """

    radius: Tensor
    worth: Tensor
    changed: Tensor
    nearest: NearestClasses


def normals(
    cases: Cases,
    moving: Tensor,
    norm: Norm | float,
    *,
    steps: int,
    classes: int,
    soft: float = 0.0,
    near_classes: NearestClasses | None = None,
) -> Normals:
    """Find the boundaries with the nearest classes inside each subset, and the effect of every feature there.

    Args:
        cases: B cases.
        moving: Bool ``[B, K, d]``: K subsets for each case, True where a feature may move.
        norm: The norm, or its p.
        steps: Gradients for each subset and class.
        classes: How many of the nearest classes count.
        soft: 0: the effects of a subset are those at its nearest class. Otherwise effects are averaged over classes:
            one that is farther by a share s of the radius has the weight ``exp(-s / soft)``.
        near_classes: The nearest classes of an earlier call; None to find them first.

    Returns:
        The radii, effects and nearest classes.

    Raises:
        HoldfastError: p is not 1, 2 or infinity, or the model has no gradients.
    """
    norm = norm if isinstance(norm, Norm) else norm_of(norm)
    changed = torch.zeros(len(cases), dtype=torch.bool, device=cases.x.device)
    if near_classes is None:
        near_classes, changed = _first_classes(cases, moving, norm, 2 * steps, classes)
    boundaries = _approach(cases, moving, near_classes, norm, steps)
    within = boundaries.within_reach()
    return Normals(
        within.amin(2),
        torch.einsum("bkc,bkcd->bkd", _class_weights(within, soft), boundaries.worth),
        changed | boundaries.changed,
        _next_classes(cases, boundaries, near_classes),
    )


@dataclass(frozen=True, eq=False)
class _Boundaries:
    radius: Tensor  # [B, K, C]
    reachable: Tensor  # [B, K, C]: the subset allows a drop down to the boundary
    worth: Tensor  # [B, K, C, d]
    move: Tensor  # [B, K, C, n]
    logits: Tensor  # [B, K, C, classes]
    changed: Tensor  # [B]
    low_precision: bool

    def within_reach(self) -> Tensor:
        """Return the radii, ``inf`` for a class out of reach unless every class is."""
        return self.radius.masked_fill(~self.reachable & self.reachable.any(2, keepdim=True), math.inf)


def _approach(
    cases: Cases, moving: Tensor, near_classes: NearestClasses, norm: Norm, steps: int, later: int = 0
) -> _Boundaries:
    """Approach the boundary with each near class by projection onto linearised boundaries.

    ``later`` is the number of rows of the next calls. If they are recorded, fewer rows are filled up to so many: a GPU
    takes seconds to prepare a large network for each number of rows.
    """
    b, k = moving.shape[:2]
    c = near_classes.aim.shape[1]
    total, device, features = b * k * c, cases.x.device, cases.features
    radius, reachable = cases.x.new_empty(total), torch.zeros(total, dtype=torch.bool, device=device)
    worth = cases.x.new_empty(total, features.count)
    move = cases.x.new_empty(total, cases.x[0].numel())
    logits = cases.x.new_empty(total, len(cases.model.classes))
    changed = torch.zeros(total, dtype=torch.bool, device=device)
    low = near_classes.low_precision and differentiable(cases.model).low_precision
    filled = total < later <= cases.model.chunk(cases.x) and cases.model.fills_up(later)
    approach = _Approach(norm, steps, tuple(cases.x.shape[1:]), features.count, low)

    def work(piece: slice) -> None:
        row = torch.arange(piece.start, piece.stop, device=device)
        if filled and len(row) == total:  # not a half of them, which did not fit memory
            row = row[torch.arange(later, device=device) % total]
        case, subset, slot = row // (k * c), row // c % k, row % c
        outputs = cases.model.run(
            approach,
            cases.x.flatten(1)[case],
            cases.label[case],
            cases.target[case],
            near_classes.aim[case, slot],
            moving[case, subset],
            near_classes.move[case, subset % near_classes.move.shape[1], slot],
            features.ids if len(features.ids) == 1 else features.ids[case],
        )
        for whole, part in zip((reachable, radius, worth, move, logits, changed), outputs, strict=True):
            whole[piece] = part[: piece.stop - piece.start]

    for _ in chunked(work, total, cases.model.chunk(cases.x)):
        pass
    if low and not bool(torch.isfinite(logits).all()):  # too large for half precision: use full precision from now on
        return _approach(cases, moving, replace(near_classes, low_precision=False), norm, steps)
    return _Boundaries(
        radius.view(b, k, c),
        reachable.view(b, k, c),
        worth.view(b, k, c, -1),
        move.view(b, k, c, -1),
        logits.view(b, k, c, -1),
        changed.view(b, k * c).any(1),
        low,
    )


@dataclass(frozen=True)
class _Approach:
    """All steps towards the boundary with one class, for R rows, and the effects of the features there.

    Attributes:
        norm: The norm.
        steps: Gradients.
        shape: The shape of one input.
        count: The number of features.
        low_precision: Whether gradients may be less exact.
    """

    norm: Norm
    steps: int
    shape: tuple[int, ...]
    count: int
    low_precision: bool

    def __call__(self, model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Approach.

        Args:
            model: The model.
            tensors: Inputs ``[R, n]``, labels, targets and classes to head for ``[R]``, features that may move
                ``[R, d]``, moves to start from ``[R, n]``, and the ids of the features.

        Returns:
            Whether each boundary is in reach, its radius, the effects ``[R, d]``, the moves ``[R, n]``, the logits at
            the last point, and whether the decision changed anywhere.
        """
        x, label, target, aim, moving, start, ids = tensors
        features = Features(ids, self.count)
        shaped = x.view(-1, *self.shape)
        edges = box(model, shaped)
        held = ~features.expand(moving).expand_as(shaped)
        low, high = (edge.masked_fill(held, 0).flatten(1) for edge in edges)
        rows = Rows(model, self.shape, x, low, high, label, target)
        delta, changed = clip(start, low, high), torch.zeros_like(label, dtype=torch.bool)
        for step in range(self.steps):
            logits, value, slope = rows.gradient(
                delta, lambda logits: rows.margin(logits, aim), low_precision=self.low_precision
            )
            changed = changed | (value < 0)
            drop = (value - torch.linalg.vecdot(slope, delta)).clamp_min(0)
            last = step == self.steps - 1
            goal = self.norm.nearest(slope, drop if last else _OVERSHOOT * drop, low, high)
            if not last:
                delta = goal if step == 0 else torch.lerp(delta, goal, _STEP_SHARE)
        box_limit = descent_limit(slope, *(edge.flatten(1) for edge in edges))
        reachable, radius, share = _shares(slope, drop, goal, rows, box_limit, features, self.norm)
        worth = radius[:, None] * self.norm.relative_effects(share, moving)
        return reachable, radius, worth, goal, logits, changed


def _shares(
    slope: Tensor, drop: Tensor, goal: Tensor, rows: Rows, box_limit: Tensor, features: Features, norm: Norm
) -> tuple[Tensor, Tensor, Tensor]:
    """Return whether each boundary is in reach, its linearised radius ``[R]``, and the features' shares ``[R, d]``.

    Where a drop has no price, the radius is extrapolated and the shares are what each feature could add to the drop.
    """
    gained = -(slope * goal).sum(1)
    reachable = gained >= 0.999 * drop
    # Where no coordinate moves, there is nothing to extrapolate from: farther than all others.
    beyond = torch.where(gained > 0, norm.length(goal) * drop / gained, 1e6 * drop / norm.dual.length(slope))
    radius = torch.where(reachable, norm.length(goal), beyond).nan_to_num(1e12, posinf=1e12).clamp(1e-12, 1e12)
    limit = descent_limit(slope, rows.low, rows.high)
    boundary = LinearBoundary(slope, drop, goal, limit, box_limit, radius, features, rows.shape)
    share, priced = norm.shares(boundary)
    return reachable, radius, torch.where((reachable & priced)[:, None], share, boundary.potential()).nan_to_num(0)


def _class_weights(radius: Tensor, soft: float) -> Tensor:
    """Return the weight of each class, ``[B, K, C]``, by its radius."""
    best = radius.amin(2, keepdim=True)
    if soft == 0:
        nearest_class = radius.argmin(2, keepdim=True)
        return torch.zeros_like(radius).scatter(2, nearest_class, 1.0)
    return torch.softmax(-(radius / best - 1) / soft, 2)


def bytes_held(cases: Cases, subsets: int, classes: int) -> int:
    """Return about how many bytes ``normals`` of one case take: the moves of two calls, and the effects."""
    each = 2 * cases.x[0].numel() + 4 * cases.features.count
    return max(subsets * classes, 4 * classes) * each * cases.x.element_size()


# ---------------------------------------------------------------------- which classes


def _first_classes(cases: Cases, moving: Tensor, norm: Norm, steps: int, classes: int) -> tuple[NearestClasses, Tensor]:
    """Approach many classes once, from x itself, inside the union of the subsets, and keep the nearest."""
    if bool((cases.target != ANY).all()):
        aim = torch.full_like(cases.target, ANY)[:, None]
    else:
        score = cases.model(cases.x, exact=True).scatter(1, cases.label[:, None], -math.inf)  # as when they were asked
        aim = score.topk(min(max(9, 2 * classes), score.shape[1] - 1)).indices
        aim = torch.where(cases.target[:, None] == ANY, aim, ANY)
    start = cases.x.new_zeros(len(cases), 1, aim.shape[1], cases.x[0].numel())
    later = moving[:, :, 0].numel() * min(classes, aim.shape[1])
    boundaries = _approach(cases, moving.any(1, keepdim=True), NearestClasses(aim, start), norm, steps, later)
    best = boundaries.within_reach()[:, 0].argsort(1)[:, : max(1, min(classes, aim.shape[1]))]
    nearest = NearestClasses(aim.gather(1, best), _slots(boundaries.move, best), boundaries.low_precision)
    return nearest, boundaries.changed


def _next_classes(cases: Cases, boundaries: _Boundaries, near_classes: NearestClasses) -> NearestClasses:
    """Start the next call where this one ended, and replace the farthest class by the best one not among them."""
    c = near_classes.aim.shape[1]
    if c == 1 or c >= len(cases.model.classes) - 1:
        return NearestClasses(near_classes.aim, boundaries.move, boundaries.low_precision)
    typical = boundaries.radius.median(1).values
    flat = boundaries.within_reach().flatten(1).argmin(1)
    logits = boundaries.logits.flatten(1, 2)[torch.arange(len(cases), device=flat.device), flat]
    known = torch.cat([near_classes.aim.clamp_min(0), cases.label[:, None]], 1)
    newcomer = logits.scatter(1, known, -math.inf).argmax(1)
    farthest = typical.argmax(1, keepdim=True)
    fixed = (cases.target != ANY)[:, None]
    aim = torch.where(fixed, near_classes.aim, near_classes.aim.scatter(1, farthest, newcomer[:, None]))
    source = torch.where(fixed, farthest, typical.argmin(1, keepdim=True))  # a new class starts at the nearest one
    start = _slots(boundaries.move, source)
    move = boundaries.move.scatter_(2, farthest[:, None, :, None].expand_as(start), start)
    return NearestClasses(aim, move, boundaries.low_precision)


def _slots(values: Tensor, which: Tensor) -> Tensor:
    """Return the slots ``which [B, C']`` of ``values [B, K, C, n]``."""
    return values.gather(2, which[:, None, :, None].expand(-1, values.shape[1], -1, values.shape[3]))
