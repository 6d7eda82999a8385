"""Lanes: several searches of each row from decisions or scores, side by side, each with its own witness."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache

import torch
from torch import Tensor

from holdfast.models.model import Access
from holdfast.robustness.norms import L2, Norm
from holdfast.robustness.rows import Rows, margin
from holdfast.robustness.steps import clip

_RIDGE = (1e-4, 1e-7)  # in single and double precision: less would amplify rounding
_FIRST_CUT = 0.004  # the first shortening that is tried, as a share of the move


@dataclass(eq=False)
class Lanes:
    """P searches. A lane has a witness of its row; each query of a round is one point for every lane.

    Attributes:
        rows: The row of each lane, P rows.
        norm: The norm that is minimised.
        row: The number of each lane's row, ``[P]``.
        number: The number of each lane within its row, ``[P]``: it chooses the lane's noise.
        delta: The witness, ``[P, n]``.
        length: Its length, ``[P]``.
        normal: An estimate of the boundary's normal at the witness, towards the change, ``[P, n]``. With scores it
            is the gradient of the negative margin.
        offset: How far along the normal points are moved so that half of them change, ``[P]``.
        angle: The last turn of the move, in radians, ``[P]``.
        floor: For each coordinate, and for the whole move as a share: the largest value known to be too small,
            ``[P, n + 1]``.
        tested: Whether ``floor`` has been tested, bool ``[P, n + 1]``.
        group: How many coordinates are dropped at once, ``[P]``.
        best: The shortest witness of the lane, ``[P, n]``; ``delta`` is longer after a kick.
        least: Its length, ``[P]``.
        idle: Rounds since the last gain, ``[P]``.
    """

    rows: Rows
    norm: Norm
    row: Tensor
    number: Tensor
    delta: Tensor
    length: Tensor
    normal: Tensor
    offset: Tensor
    angle: Tensor
    floor: Tensor
    tested: Tensor
    group: Tensor
    best: Tensor
    least: Tensor
    idle: Tensor

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, rows: Rows, norm: Norm, row: Tensor, number: Tensor, delta: Tensor) -> Lanes:
        """Make lanes at witnesses ``delta [P, n]`` of the rows with numbers ``row [P]``; ``rows`` has one for each."""
        length = norm.length(delta)
        with_scores = rows.model.access >= Access.SCORES
        normal = torch.zeros_like(delta) if with_scores else unit(delta)
        none = torch.zeros_like(length)
        floor = delta.new_zeros(len(delta), delta.shape[1] + 1)
        tested, group = torch.zeros_like(floor).bool(), (delta != 0).sum(1).to(delta) / 2
        turn = none, none + 0.5, floor, tested, group
        return cls(rows, norm, row, number, delta, length, normal, *turn, delta, length, none)

    def at(self, which: Tensor) -> Lanes:
        """Return some of these lanes by index or mask."""
        parts = {one.name: getattr(self, one.name)[which] for one in fields(self) if one.name not in ("rows", "norm")}
        return replace(self, rows=self.rows.at(which), **parts)

    def put(self, which: Tensor, part: Lanes) -> None:
        """Store ``part``, which ``at(which)`` returned, after it has searched."""
        for one in fields(self):
            if one.name not in ("rows", "norm", "row", "number"):
                getattr(self, one.name)[which] = getattr(part, one.name)

    def move(self, delta: Tensor, better: Tensor) -> None:
        """Take the moves ``delta [P, n]`` as witnesses where ``better [P]``."""
        self.delta = torch.where(better[:, None], delta, self.delta)
        self.length = torch.where(better, self.norm.length(delta), self.length)

    def restart(self, delta: Tensor, where: Tensor) -> None:
        """Go on from other, longer witnesses ``delta [P, n]`` where ``where [P]``."""
        fresh = Lanes.of(self.rows, self.norm, self.row, self.number, delta)
        for name in ("delta", "length", "normal", "offset", "angle", "floor", "tested", "group"):
            old, new = getattr(self, name), getattr(fresh, name)
            setattr(self, name, torch.where(where.reshape(-1, *[1] * (old.ndim - 1)), new, old))

    def forget(self, where: Tensor) -> None:
        """Forget what is known of single coordinates where ``where [P]``."""
        self.floor, self.tested = self.floor.masked_fill(where[:, None], 0), self.tested & ~where[:, None]

    def keep(self) -> None:
        """Store the witnesses that are the shortest of their lane."""
        better = self.length < self.least
        self.best = torch.where(better[:, None], self.delta, self.best)
        self.least = torch.where(better, self.length, self.least)

    def offer(self, delta: Tensor) -> Tensor:
        """Query moves and keep those that change the decision and are shorter; return which, bool ``[P]``."""
        delta = allowed(self.rows, delta)
        better = (values(self.rows, delta[:, None])[:, 0] < 0) & (self.norm.length(delta) < self.length)
        self.move(delta, better)
        return better

    def shorten(self, queries: int) -> None:
        """Move the witnesses along their ray to the boundary."""
        whole = self.delta
        cut = torch.zeros_like(self.length)  # the largest share cut off with a change
        fails = torch.ones_like(cut)  # the smallest without
        share = torch.full_like(cut, _FIRST_CUT)
        for _ in range(queries):
            changed = self.offer(whole * (1 - share)[:, None])
            cut, fails = torch.where(changed, share, cut), torch.where(changed, fails, share)
            share = torch.minimum((cut + fails) / 2, torch.where(cut > 0, 4 * cut, fails / 3))


def allowed(rows: Rows, delta: Tensor) -> Tensor:
    """Return the allowed moves that are nearest to ``delta``, ``[R, n]`` or ``[R, Q, n]``.

    Every point that a search from decisions proposes goes through this function.
    """
    domain = rows.model.domain
    if delta.ndim == 3:
        delta = torch.minimum(torch.maximum(delta, rows.low[:, None]), rows.high[:, None])
        if domain is None:
            return delta
        x = rows.x[:, None].expand_as(delta).flatten(0, 1)
        return (domain.nearest(x + delta.flatten(0, 1), x) - x).view(delta.shape)
    delta = clip(delta, rows.low, rows.high)
    return delta if domain is None else domain.nearest(rows.x + delta, rows.x) - rows.x


def values(rows: Rows, delta: Tensor) -> Tensor:
    """Return the margins at moves ``delta [R, Q, n]``, ``[R, Q]``: negative where the decision is changed.

    Without scores they are -1 or 1.
    """
    return ask(rows, delta)[0]


def ask(rows: Rows, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the margins and the classes at moves ``delta [R, Q, n]``, ``[R, Q]`` each."""
    r, q = delta.shape[:2]
    logits = scores(rows, delta).flatten(0, 1)
    row = torch.arange(r, device=delta.device).repeat_interleave(q)
    found = margin(logits, rows.label[row], rows.target[row])
    return found.view(r, q), logits.argmax(1).view(r, q)


def scores(rows: Rows, delta: Tensor) -> Tensor:
    """Return what the model says at moves ``delta [R, Q, n]``, ``[R, Q, classes]``."""
    r, q = delta.shape[:2]
    row = torch.arange(r, device=delta.device).repeat_interleave(q)
    flat = delta.flatten(0, 1)
    size = max(1, rows.model.chunk(rows.x[:1].reshape(-1, *rows.shape), gradient=False))
    pieces = [slice(begin, begin + size) for begin in range(0, len(flat), size)]
    found = [rows.model(rows.at(row[piece]).points(flat[piece])) for piece in pieces]
    return torch.cat(found).view(r, q, -1) if found else delta.new_zeros(r, q, len(rows.model.classes))


def fitted(step: Tensor, change: Tensor) -> Tensor:
    """Return the smallest slopes ``[R, K, n]`` that explain the changes ``[R, Q, K]`` along steps ``[R, Q, n]``."""
    gram = step @ step.transpose(1, 2)
    ridge = _RIDGE[gram.dtype == torch.float64] * gram.diagonal(dim1=1, dim2=2).amax(1).clamp_min(1e-30)
    eye = torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    weight = torch.linalg.solve(gram + ridge[:, None, None] * eye, change)
    slope: Tensor = weight.transpose(1, 2) @ step
    return slope


def unit(move: Tensor) -> Tensor:
    """Return moves ``[..., n]`` of Euclidean length 1; zero stays zero."""
    length: Tensor = torch.linalg.vector_norm(move, dim=-1, keepdim=True)
    return move / length.clamp_min(1e-30)


def euclidean(move: Tensor) -> Tensor:
    """Return the Euclidean length of moves ``[R, n]``."""
    return L2().length(move)


def smooth(noise: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return noise whose neighbouring coordinates along the last two axes are alike, where there are two."""
    if len(shape) < 2 or min(shape[-2:]) < 8:
        return noise
    image = noise.reshape(*noise.shape[:-1], *shape)
    blurred: Tensor = _blur(shape[-2]) @ image @ _blur(shape[-1]).T
    return blurred.reshape(noise.shape)


@cache
def _blur(size: int) -> Tensor:
    place = torch.arange(size, dtype=torch.float32)
    weight = torch.exp(-(place[:, None] - place).square() / 4)
    scaled: Tensor = weight / weight.square().sum(1, keepdim=True).sqrt()
    return scaled
