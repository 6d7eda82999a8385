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
from holdfast.robustness.rows import Rows, box, margin
from holdfast.robustness.steps import clip, nearest, norm, reach

_PACE = 0.5  # share of the way to the linearised boundary that a step goes: whole steps swing about its kinks
_PUSH = 1.1  # how far past the boundary a step aims, so that a curved one is crossed and not only approached
_TANGENT = 0.9  # where the cost of losing a share of the boundary's slope goes on along its tangent


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
    p: float,
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
    turned = torch.zeros(len(cases), dtype=torch.bool, device=cases.x.device)
    if near_classes is None:
        near_classes, turned = _first_classes(cases, moving.any(1, keepdim=True), p, 2 * steps, classes)
    walked = _walk(cases, moving, near_classes, p, steps)
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


def _walk(cases: Cases, moving: Tensor, near_classes: NearestClasses, p: float, steps: int) -> _Walked:
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
            goal = nearest(slope, drop if last else _PUSH * drop, rows.low, rows.high, p)
            if not last:
                delta = goal if step == 0 else torch.lerp(delta, goal, _PACE)
        near[piece], radius[piece], share = _worth(slope, drop, goal, rows, own, p)
        worth[piece] = radius[piece, None] * _effect(share, moving[case, subset], p)
        move[piece], logits[piece] = goal, scores

    for _ in chunked(work, total, cases.model.chunk(cases.x)):
        pass
    if low and not bool(torch.isfinite(logits).all()):  # too large for half precision: in full from now on
        return _walk(cases, moving, replace(near_classes, low_precision=False), p, steps)
    return _Walked(
        radius.view(b, k, c),
        near.view(b, k, c),
        worth.view(b, k, c, -1),
        move.view(b, k, c, -1),
        logits.view(b, k, c, -1),
        turned.view(b, k * c).any(1),
        low,
    )


def _worth(
    slope: Tensor, drop: Tensor, goal: Tensor, rows: Rows, own: Cases, p: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Whether the boundary is near enough, its linearised radius ``[R]``, and each feature's share ``[R, d]`` in it.

    ``own`` are the cases of the rows, one each.

    Every coordinate, free or not, would move ``u`` at the current price of a drop. In L2, losing it saves ``u^2`` of
    the squared radius and costs ``2 t |w| u`` for the others to make up, t being the multiplier of the step: in all
    ``t^2 w^2`` where no box is met. Where the box leaves nobody to make it up there is no price: the radius is
    extrapolated, and shares are what each coordinate could add to the drop.
    """
    size = slope.abs()
    room = torch.where(slope > 0, -rows.low, rows.high)
    low, high = (edge.flatten(1) for edge in box(own.model, own.x))
    could = torch.where(slope > 0, -low, high)
    gained = -(slope * goal).sum(1)
    near = gained >= 0.999 * drop
    # Where nothing moves at all there is nothing to extrapolate from: farther than all else.
    beyond = torch.where(gained > 0, norm(goal, p) * drop / gained, 1e6 * drop / norm(slope, _dual(p)))
    radius = torch.where(near, norm(goal, p), beyond).nan_to_num(1e12, posinf=1e12).clamp(1e-12, 1e12)
    added = _pooled(own, size * torch.where(torch.isfinite(could), could, size))
    added = added / added.sum(1, keepdim=True).clamp_min(1e-12)
    if p == 1:
        share = _prices(size, room, could, goal.abs(), drop, radius, own)
        return near, radius, torch.where(near[:, None], share, added).nan_to_num(0)
    weight = size if p == 2 else (size > 0).to(size)
    t = reach(weight, room, size, drop)[:, None]
    use, slack = torch.minimum(t * weight, could), ((t * weight < room) * size).sum(1)
    if p == 2:
        share = (2 * t * size * use - use.square()) / norm(goal, 2).square().clamp_min(1e-24)[:, None]
    else:
        share = size * use / (t * slack[:, None])
    return near, radius, torch.where((near & (slack > 0))[:, None], _pooled(own, share), added).nan_to_num(0)


def _pooled(own: Cases, values: Tensor) -> Tensor:
    """Flat coordinates ``[R, n]`` summed to features ``[R, d]``."""
    return own.features.pool(values.view_as(own.x))


def _dual(p: float) -> float:
    return {1: math.inf, 2: 2, math.inf: 1}[p]


def _prices(
    size: Tensor, room: Tensor, could: Tensor, move: Tensor, drop: Tensor, radius: Tensor, own: Cases
) -> Tensor:
    """L1 fills the steepest coordinates first: losing some is paid for by the next, gaining some spares the last."""
    whole = drop[:, None] / size.clamp_min(1e-12)  # as far as one alone would go
    mean = radius / drop.clamp_min(1e-12)
    used = _pooled(own, move)
    lost = _refill(size, torch.minimum(room - move, whole), _pooled(own, size * move), mean, own) - used
    order = size.argsort(1)
    gentler = torch.zeros_like(size).scatter(1, order, (size * move).gather(1, order).cumsum(1))
    gain = torch.minimum(could, gentler / size.clamp_min(1e-12))  # one freed takes over from the less steep
    goal, length = _pooled(own, size * gain), _pooled(own, gain)
    part = (drop[:, None] / goal.clamp_min(1e-12)).clamp_max(1)  # all of a group together, no more than there is
    spared = _refill(-size, move, part * goal, mean, own) - part * length
    return torch.where(used > 0, lost, spared).clamp_min(0) / radius[:, None]


def _refill(size: Tensor, room: Tensor, goal: Tensor, mean: Tensor, own: Cases) -> Tensor:
    """The length ``[R, d]`` of filling ``room``, highest size first, to a drop of ``goal``, without the feature itself.

    What is out of reach costs twice the mean price. Negative sizes go through them from the other end.
    """
    order = size.argsort(dim=1, descending=True)
    steep, worth = size.gather(1, order), (size.abs() * room).gather(1, order)
    gains, lengths = worth.cumsum(1), room.gather(1, order).cumsum(1)
    own_gain = own_length = torch.zeros_like(goal)
    for _ in range(3):  # a feature's own room ahead of the last one filled is not there: so the last one moves on
        wanted = goal + own_gain
        last = torch.searchsorted(gains, wanted.contiguous()).clamp_max(size.shape[1] - 1)
        price = own.features.spread(steep.gather(1, last)).expand_as(own.x).flatten(1)
        ahead = room * (size >= price)
        own_length, own_gain = _pooled(own, ahead), _pooled(own, ahead * size.abs())
    wanted = goal + own_gain
    last = torch.searchsorted(gains, wanted.contiguous()).clamp_max(size.shape[1] - 1)
    reached, price = gains.gather(1, last), steep.gather(1, last).abs().clamp_min(1e-12)
    short = (wanted - reached).clamp_min(0)
    return lengths.gather(1, last) - (reached - wanted).clamp_min(0) / price + 2 * short * mean[:, None] - own_length


def _effect(share: Tensor, moving: Tensor, p: float) -> Tensor:
    """The relative change of ``g = m / ||w_S||`` when a share s of the slope is lost (feature held) or added (freed).

    L2: ``(1 - s)^-1/2 - 1`` and ``1 - (1 + s)^-1/2``; Linf with exponent 1; L1 shares are changes already.
    """
    if p == 1:
        return share
    power = 0.5 if p == 2 else 1.0
    near = share.clamp_max(_TANGENT)
    steep = power * (1 - _TANGENT) ** (-power - 1)
    held = (1 - near) ** -power - 1 + steep * (share - near)
    return torch.where(moving, held, 1 - (1 + share) ** -power)


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


def _first_classes(cases: Cases, moving: Tensor, p: float, steps: int, classes: int) -> tuple[NearestClasses, Tensor]:
    """Look at many classes once, from x itself, and keep the nearest."""
    if bool((cases.target != ANY).all()):
        aim = torch.full_like(cases.target, ANY)[:, None]
    else:
        score = cases.model(cases.x).scatter(1, cases.label[:, None], -math.inf)
        aim = score.topk(min(max(9, 2 * classes), score.shape[1] - 1)).indices
        aim = torch.where(cases.target[:, None] == ANY, aim, ANY)
    start = cases.x.new_zeros(len(cases), 1, aim.shape[1], cases.x[0].numel())
    walked = _walk(cases, moving, NearestClasses(aim, start), p, steps)
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
