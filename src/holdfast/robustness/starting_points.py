"""Points that a search from decisions begins from: across the box, where scores fall, and near a witness."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from holdfast.cases import ANY
from holdfast.draws import normal
from holdfast.models.model import Access
from holdfast.robustness.lanes import Lanes, allowed, ask, euclidean, fitted, scores, smooth, unit
from holdfast.robustness.norms import Norm
from holdfast.robustness.rows import Rows

_FIRST = 700_000  # the number of the first draw of starting points
_SLOPES = 690_000  # the number of the draw of points whose scores are compared
_CLASSES = 9  # how many of the nearest classes scores are followed to
_BEYOND = (1.02, 1.5)  # multiples of the step to the estimated boundary
_STEP = 0.02  # the distance of the points whose scores are compared, as a share of the largest coordinate
_CUTS = 6  # queries along the ray
_SAME = 0.5  # the share of lanes that are kicked without regard to the class
_ACROSS = 8  # how far points across the box are away at most, as a multiple of the witness's length
_NEAR, _FAR = 0.2, 0.8  # the length of a kick, as shares of the witness's
_FAR_DISCRETE = 1.8  # the same among whole numbers and categories, where a move has a least length
_DROPS_DISCRETE = 0.5  # there, the share of kicks that give up a coordinate; elsewhere all do


def is_discrete(rows: Rows) -> bool:
    """Return whether some inputs between two inputs are none, as among whole numbers and categories."""
    domain = rows.model.domain
    return domain is not None and not domain.is_everything


def starting_points(rows: Rows, start: Tensor | None, seed: int, first: int, count: int) -> Tensor:
    """Return moves to begin from, ``[R, count, n]``: far corners, points of the box, and parts of them.

    Args:
        rows: R rows.
        start: A move ``[R, n]`` that comes first; None if none is known.
        seed: For random points.
        first: The number of the first point.
        count: How many.
    """
    n = rows.x.shape[1]
    scale = rows.x.abs().amax(1, keepdim=True).clamp_min(1)
    points = []
    for number in range(first, first + count):
        if number == 0 and start is not None:
            points.append(start)
            continue
        kind, turn = number % 8, number // 8
        noise = normal(2 * n, seed, _FIRST + number).view(2, n)
        noise = smooth(noise, rows.shape) if turn % 2 == 0 else noise
        spot, other = noise.to(rows.x).div(math.sqrt(2)).erf().add(1).div(2)
        far = scale * 2.0 ** (turn % 8)
        low, high = torch.maximum(rows.low, -far), torch.minimum(rows.high, far)
        corner = torch.where(spot < 0.5, low, high)
        if kind == 0:
            move = torch.where(high > -low, high, low)
        elif kind == 1:
            move = low if turn % 2 else high
        elif kind in (2, 3):
            move = low + (high - low) * spot
        elif kind in (4, 5):
            move = corner
        else:
            move = corner * (other < (0.5, 0.25, 0.1, 0.03)[turn % 4])
        points.append(allowed(rows, move))
    return torch.stack(points, 1)


def sloped_points(rows: Rows, norm: Norm, seed: int, most: int) -> tuple[Tensor, int]:
    """Return moves towards each of the nearest classes, as scores near x predict them.

    Args:
        rows: R rows.
        norm: The norm that is minimised.
        seed: For the points whose scores are compared.
        most: The largest number of queries, those of the moves included.

    Returns:
        Moves ``[R, C, n]``, which are still to be queried, and the queries spent; no moves without scores.
    """
    n = rows.x.shape[1]
    classes = len(rows.model.classes) - 1
    width = min(classes, _CLASSES) * (len(_BEYOND) + 1)
    count = min(n, most - 1 - width)
    if rows.model.access < Access.SCORES or count < min(n, 8):
        return rows.x.new_zeros(len(rows), 0, n), 0
    at_x, slope = _slopes(rows, seed, count)
    targeted = rows.target != ANY
    # Towards class j from the label; with a target, from class j to the target.
    pivot = torch.where(targeted, rows.target, rows.label)
    sign = torch.where(targeted, -1.0, 1.0).to(at_x)[:, None]
    lead = sign * (at_x.gather(1, pivot[:, None]) - at_x)
    down = sign[..., None] * (slope.gather(1, pivot[:, None, None].expand(-1, 1, n)) - slope)
    lead = lead.scatter(1, pivot[:, None], math.inf)
    order = lead.argsort(dim=1, stable=True)[:, : min(classes, _CLASSES)]
    points = []
    for place in range(order.shape[1]):
        one = order[:, place]
        drop, fall = lead.gather(1, one[:, None])[:, 0].clamp_min(0), down[torch.arange(len(rows)), one]
        points += [norm.nearest(fall, beyond * drop, rows.low, rows.high) for beyond in _BEYOND]
        far = torch.maximum(-rows.low, rows.high).nan_to_num(posinf=1e3)
        points.append(-fall.sign() * far)
    return torch.stack([allowed(rows, one.nan_to_num(0)) for one in points], 1), count + 1


def _slopes(rows: Rows, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """Return the scores at x ``[R, classes]`` and their slopes there ``[R, classes, n]``, from ``count`` points."""
    n = rows.x.shape[1]
    noise = normal(n * count, seed, _SLOPES).view(n, count).T.to(rows.x)
    step = (
        unit(noise[None] * rows.free[:, None])
        * (_STEP * math.sqrt(n) * rows.x.abs().amax(1).clamp_min(1))[:, None, None]
    )
    step = torch.where((step < rows.low[:, None]) | (step > rows.high[:, None]), -step, step)
    step = allowed(rows, step)
    answer = scores(rows, torch.cat([torch.zeros_like(step[:, :1]), step], 1))
    return answer[:, 0], fitted(step, answer[:, 1:] - answer[:, :1])


def kick(lanes: Lanes, seed: int, draw: int, queries: int) -> None:
    """Restart each lane from a proposal near its shortest witness that changes the decision.

    Args:
        lanes: The lanes; changed in place.
        seed: For the proposals.
        draw: The number of the round.
        queries: The queries for each lane.
    """
    rows, n, count = lanes.rows, lanes.delta.shape[1], queries - _CUTS - 1
    numbers, place = lanes.number.unique(return_inverse=True)
    width = 2 * n + 3
    drawn = [normal(width * count, seed, 4096 * draw + one).view(width, count).T for one in numbers.tolist()]
    noise = torch.stack(drawn).to(rows.x)
    even = (noise[..., n:] / math.sqrt(2)).erf().add(1).div(2)[place]
    noise = smooth(noise[..., :n], rows.shape)[place]
    size, share, drop = even[..., n:].unbind(2)
    sparse = even[..., :n] < share[..., None]
    base = lanes.best[:, None].expand(-1, count, -1)
    length = euclidean(lanes.best)[:, None, None]
    discrete = is_discrete(rows)
    reach = _NEAR + (_FAR_DISCRETE if discrete else _FAR) * size
    step = reach[..., None] * length * unit(noise * rows.free[:, None] * sparse)
    # A coordinate is given up with a probability that is proportional to its move.
    order = (even[..., :n].clamp_min(1e-9).log() / base.abs().clamp_min(1e-30)).masked_fill(base == 0, -math.inf)
    lowered = base.scatter(2, order.argmax(2, keepdim=True), 0)
    near = (torch.where((drop < _DROPS_DISCRETE)[..., None], lowered, base) if discrete else lowered) + step
    low, high = torch.maximum(rows.low[:, None], -_ACROSS * length), torch.minimum(rows.high[:, None], _ACROSS * length)
    across = torch.where(noise < 0, low, high) * sparse
    far = (torch.arange(count, device=place.device) % 2 > 0)[:, None]
    points = torch.cat([lanes.best[:, None], allowed(rows, torch.where(far, across, near))], 1)
    margin, decided = ask(rows, points)
    changed = margin < 0
    # Some lanes prefer another class than that of their shortest witness: it may be nearer.
    wanted = changed & ((decided != decided[:, :1]) | (drop[:, :1] < _SAME))
    size = euclidean(points.flatten(0, 1)).view(changed.shape) / ((1 + _ACROSS) * length[..., 0])
    chosen = (changed.to(size) + wanted.to(size) - size.clamp_max(0.99))[:, 1:].argmax(1) + 1
    at = torch.arange(len(lanes), device=place.device), chosen
    lanes.restart(points[at], changed[at])
    lanes.shorten(_CUTS)
