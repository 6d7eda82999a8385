"""Boundary normals: where the boundary with each of several classes lies, and what every feature is worth there.

Where the boundary is flat with normal w, ``g(S) = m / ||w_S||_q``: one gradient at the boundary tells how g changes
when any feature is freed or held. Nothing here claims a radius; witnesses are the business of robustness methods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.chunks import chunked
from holdfast.models.model import differentiable
from holdfast.robustness.norms import Norm, norm_of
from holdfast.robustness.rows import Rows, box, margin
from holdfast.robustness.shares import LinearBoundary
from holdfast.robustness.steps import clip, descent_limit

_PACE = 0.5  # share of the way to the linearised boundary that a step goes: whole steps swing about its kinks
_PUSH = 1.1  # how far past the boundary a step aims, so that a curved one is crossed and not only approached


@dataclass(frozen=True, eq=False)
class NearestClasses:
    """The classes nearest to each case, ``aim [B, C]`` (``ANY``: the target asked for), and moves to their boundaries.

    ``move [B, K, C, n]``: each subset goes on from its own, so that several ways to a class stay in sight (K = 1: all
    start from the same).
    """

    aim: Tensor
    move: Tensor
    low_precision: bool = True


@dataclass(frozen=True, eq=False)
class Normals:
    """Of B cases x K subsets: ``radius [B, K]`` as the linearised boundary has it, and what each feature is worth.

    ``worth [B, K, d]`` is the change of the radius when the feature is held (if it may move) or freed (if it may not):
    the size of it, never negative. ``turned [B]``: whether any look saw the decision change. ``near_classes`` serve the next
    call on similar subsets.
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
    """Walk ``steps`` gradients towards the ``classes`` nearest classes inside each of ``moving [B, K, d]``.

    A subset's worth is that of its nearest class, or a blend of the near ones: a class farther by a share s of the
    radius weighs ``exp(-s / soft)`` of it.
    """
    norm = norm if isinstance(norm, Norm) else norm_of(norm)
    turned = torch.zeros(len(cases), dtype=torch.bool, device=cases.x.device)
    if near_classes is None:
        near_classes, turned = _first_classes(cases, moving.any(1, keepdim=True), norm, 2 * steps, classes)
    walked = _walk(cases, moving, near_classes, norm, steps)
    blend = _blend(walked.within(), soft)
    return Normals(
        walked.within().amin(2),
        torch.einsum("bkc,bkcd->bkd", blend, walked.worth),
        turned | walked.turned,
        _next_classes(cases, walked, near_classes),
    )


@dataclass(frozen=True, eq=False)
class _Walked:
    radius: Tensor  # [B, K, C]
    near: Tensor  # [B, K, C]: whether the subset allows a drop down to the boundary
    worth: Tensor  # [B, K, C, d]
    move: Tensor  # [B, K, C, n]
    logits: Tensor  # [B, K, C, classes]
    turned: Tensor  # [B]
    low_precision: bool

    def within(self) -> Tensor:
        """The radii, ``inf`` for a class out of reach unless every class is."""
        return self.radius.masked_fill(~self.near & self.near.any(2, keepdim=True), math.inf)


def _walk(cases: Cases, moving: Tensor, near_classes: NearestClasses, norm: Norm, steps: int) -> _Walked:
    b, k = moving.shape[:2]
    c = near_classes.aim.shape[1]
    total, device = b * k * c, cases.x.device
    radius, near = cases.x.new_empty(total), torch.zeros(total, dtype=torch.bool, device=device)
    worth = cases.x.new_empty(total, cases.features.count)
    move = cases.x.new_empty(total, cases.x[0].numel())
    logits = cases.x.new_empty(total, len(cases.model.classes))
    turned = torch.zeros(total, dtype=torch.bool, device=device)
    low = near_classes.low_precision and differentiable(cases.model).low_precision

    def work(piece: slice) -> None:
        row = torch.arange(piece.start, piece.stop, device=device)
        case, subset, slot = row // (k * c), row // c % k, row % c
        own = cases[case]
        rows = Rows.of(own, moving[case, subset][:, None], slice(0, len(row)))
        aim = near_classes.aim[case, slot]
        delta = clip(near_classes.move[case, subset % near_classes.move.shape[1], slot], rows.low, rows.high)
        for step in range(steps):
            scores, value, slope = rows.look(
                delta, lambda z: margin(z, rows.label, rows.target, aim), low_precision=low
            )
            turned[piece] |= value < 0
            drop = (value - torch.linalg.vecdot(slope, delta)).clamp_min(0)
            last = step == steps - 1
            goal = norm.nearest(slope, drop if last else _PUSH * drop, rows.low, rows.high)
            if not last:
                delta = goal if step == 0 else torch.lerp(delta, goal, _PACE)
        near[piece], radius[piece], share = _shares(slope, drop, goal, rows, own, norm)
        worth[piece] = radius[piece, None] * norm.relative_effects(share, moving[case, subset])
        move[piece], logits[piece] = goal, scores

    for _ in chunked(work, total, cases.model.chunk(cases.x)):
        pass
    if low and not bool(torch.isfinite(logits).all()):  # too large for half precision: in full from now on
        return _walk(cases, moving, replace(near_classes, low_precision=False), norm, steps)
    return _Walked(
        radius.view(b, k, c),
        near.view(b, k, c),
        worth.view(b, k, c, -1),
        move.view(b, k, c, -1),
        logits.view(b, k, c, -1),
        turned.view(b, k * c).any(1),
        low,
    )


def _shares(
    slope: Tensor, drop: Tensor, goal: Tensor, rows: Rows, own: Cases, norm: Norm
) -> tuple[Tensor, Tensor, Tensor]:
    """Return whether the boundary is in reach, its linearised radius ``[R]``, and each feature's share in it ``[R, d]``.

    ``own`` is the case of each row. Where a drop has no price, the radius is extrapolated and the shares are what each
    feature could add to the drop.
    """
    low, high = (edge.flatten(1) for edge in box(own.model, own.x))
    gained = -(slope * goal).sum(1)
    near = gained >= 0.999 * drop
    # Where no coordinate moves, there is nothing to extrapolate from: farther than all others.
    beyond = torch.where(gained > 0, norm.length(goal) * drop / gained, 1e6 * drop / norm.dual.length(slope))
    radius = torch.where(near, norm.length(goal), beyond).nan_to_num(1e12, posinf=1e12).clamp(1e-12, 1e12)
    limits = descent_limit(slope, rows.low, rows.high), descent_limit(slope, low, high)
    boundary = LinearBoundary(slope, drop, goal, *limits, radius, own)
    share, priced = norm.shares(boundary)
    return near, radius, torch.where((near & priced)[:, None], share, boundary.potential()).nan_to_num(0)


def _blend(radius: Tensor, soft: float) -> Tensor:
    best = radius.amin(2, keepdim=True)
    if soft == 0:
        nearest_class = radius.argmin(2, keepdim=True)
        return torch.zeros_like(radius).scatter(2, nearest_class, 1.0)
    return torch.softmax(-(radius / best - 1) / soft, 2)


def bytes_held(cases: Cases, subsets: int, classes: int) -> int:
    """About the memory that ``normals`` of a case take: moves of two calls, and what features are worth."""
    each = 2 * cases.x[0].numel() + 4 * cases.features.count
    return max(subsets * classes, 4 * classes) * each * cases.x.element_size()


# ---------------------------------------------------------------------- which classes


def _first_classes(cases: Cases, moving: Tensor, norm: Norm, steps: int, classes: int) -> tuple[NearestClasses, Tensor]:
    """Look at many classes once, from x itself, and keep the nearest."""
    if bool((cases.target != ANY).all()):
        aim = torch.full_like(cases.target, ANY)[:, None]
    else:
        score = cases.model(cases.x).scatter(1, cases.label[:, None], -math.inf)
        aim = score.topk(min(max(9, 2 * classes), score.shape[1] - 1)).indices
        aim = torch.where(cases.target[:, None] == ANY, aim, ANY)
    start = cases.x.new_zeros(len(cases), 1, aim.shape[1], cases.x[0].numel())
    walked = _walk(cases, moving, NearestClasses(aim, start), norm, steps)
    best = walked.within()[:, 0].argsort(1)[:, : max(1, min(classes, aim.shape[1]))]
    return NearestClasses(aim.gather(1, best), _pick(walked.move, best), walked.low_precision), walked.turned


def _next_classes(cases: Cases, walked: _Walked, near_classes: NearestClasses) -> NearestClasses:
    """Start the next walk where this one ended; the class farthest off gives way to the strongest other."""
    c = near_classes.aim.shape[1]
    if c == 1 or c >= len(cases.model.classes) - 1:
        return NearestClasses(near_classes.aim, walked.move, walked.low_precision)
    typical = walked.radius.median(1).values
    flat = walked.within().flatten(1).argmin(1)
    logits = walked.logits.flatten(1, 2)[torch.arange(len(cases), device=flat.device), flat]
    known = torch.cat([near_classes.aim.clamp_min(0), cases.label[:, None]], 1)
    challenger = logits.scatter(1, known, -math.inf).argmax(1)
    worst = typical.argmax(1, keepdim=True)
    fixed = (cases.target != ANY)[:, None]
    aim = torch.where(fixed, near_classes.aim, near_classes.aim.scatter(1, worst, challenger[:, None]))
    start = torch.where(fixed, worst, typical.argmin(1, keepdim=True))  # a newcomer starts where the leader ended
    leader = _pick(walked.move, start)
    return NearestClasses(
        aim, walked.move.scatter_(2, worst[:, None, :, None].expand_as(leader), leader), walked.low_precision
    )


def _pick(values: Tensor, which: Tensor) -> Tensor:
    """Slots ``which [B, C']`` of ``values [B, K, C, n]``."""
    return values.gather(2, which[:, None, :, None].expand(-1, values.shape[1], -1, values.shape[3]))
