"""What the radius of one subset says about the other subsets of the same case.

Robustness-S is monotone: if S is inside T then g(T) <= g(S). A witness for S is a witness for T, so upper bounds hold
for supersets. A change that is impossible within T is impossible within S, so lower bounds hold for subsets.

Subsets are compared as bits, 63 features to a number. They are sorted, so that the first subset that serves is the
best one, and most subsets are served after few comparisons.
"""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.robustness.radii import Measurements

_ROUNDING = 1e-6  # relative difference of two exact radii that does not refute either
_BITS = 63  # of a number; the sign is not used
_SOURCES = 512  # subsets that all others are compared with at once
_PAIRS = 2**22  # comparisons that are held in memory
_FEW = 16  # pairs are compared one by one once fewer than one in sixteen is left


def share_witnesses(measured: Measurements, subsets: Tensor) -> None:
    """Give every subset the best witness of the subsets inside it, in place.

    Args:
        measured: Of all cases and subsets, ``[B, K]``.
        subsets: Bool ``[B, K, d]``.
    """
    if subsets.shape[1] < 2:
        return
    for case, words in enumerate(_packed(subsets)):
        radius = measured.radius[case]
        source = _best_inside(words, radius)
        better = radius[source] < radius
        rows, source = better.nonzero()[:, 0], source[better]
        for values in (measured.radius, measured.new_class, measured.witness):
            if values is not None:
                values[case, rows] = values[case, source]


def share_lower_bounds(measured: Measurements, subsets: Tensor) -> None:
    """Give every subset the best lower bound of the subsets around it, in place.

    Args:
        measured: Of all cases and subsets, ``[B, K]``.
        subsets: Bool ``[B, K, d]``.
    """
    measured.radius = measured.lower = _largest_of_supersets(measured.radius, subsets)


def share_exact(measured: Measurements, subsets: Tensor) -> None:
    """Share witnesses with supersets and lower bounds with subsets, in place.

    A witness that is closer than a lower bound allows refutes the bound. A radius becomes proven if it does not exceed
    the lower bound of a superset; so does an infinite one if a superset is proven unreachable.

    Args:
        measured: Of all cases and subsets, ``[B, K]``.
        subsets: Bool ``[B, K, d]``.
    """
    share_witnesses(measured, subsets)
    kept = measured.radius >= measured.lower * (1 - _ROUNDING)
    measured.proven &= kept & (measured.radius <= measured.lower * (1 + _ROUNDING))
    lower = torch.where(kept, torch.minimum(measured.lower, measured.radius), 0)
    measured.lower = torch.minimum(_largest_of_supersets(lower, subsets), measured.radius)
    measured.proven |= measured.radius <= measured.lower


def _largest_of_supersets(values: Tensor, subsets: Tensor) -> Tensor:
    """Return for each subset the largest of ``values [B, K]`` among the subsets that contain it."""
    if not len(values) or values.shape[1] < 2:
        return values.clone()
    # S contains T when what S leaves out is inside what T leaves out.
    best = [_best_inside(words, -value) for words, value in zip(_packed(~subsets), values, strict=True)]
    return values.gather(1, torch.stack(best))


def _best_inside(words: Tensor, cost: Tensor) -> Tensor:
    """Return for each of K packed subsets the one inside it, or itself, with the smallest ``cost [K]``."""
    order = cost.argsort(stable=True)
    best = torch.empty_like(order)
    best[order] = order[_first_inside(words[:, order])]
    return best


def _packed(subsets: Tensor) -> Tensor:
    """Pack ``subsets [B, K, d]`` into the bits of numbers, ``[B, W, K]``.

    Neighbouring features are in different numbers: the first number alone then tells most pairs apart.
    """
    b, k, d = subsets.shape
    width = max(1, -(-d // _BITS))
    padded = torch.nn.functional.pad(subsets, (0, width * _BITS - d)).view(b, k, _BITS, width)
    words = torch.zeros((b, width, k), dtype=torch.int64, device=subsets.device)
    for bit in range(_BITS):
        words |= padded[:, :, bit].mT.long() << bit
    return words


def _first_inside(words: Tensor) -> Tensor:
    """Return for each of K packed subsets the place of the first one inside it; at the latest it is itself."""
    k = words.shape[1]
    first = torch.arange(k, device=words.device)
    left = first  # subsets that nothing so far is inside of
    for begin in range(0, k, _SOURCES):
        left = left[left > begin]
        for rows in left.split(_PAIRS // _SOURCES):
            row, source = _inside(words[:, begin : begin + _SOURCES], words[:, rows])
            first.scatter_reduce_(0, rows[row], source + begin, "amin")
        left = left[first[left] == left]
    return first


def _inside(words: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pairs (i, j) in which the packed subset j of ``words [W, J]`` is inside i of ``others [W, I]``."""
    possible = torch.ones((others.shape[1], words.shape[1]), dtype=torch.bool, device=words.device)
    for number in range(len(words)):
        possible &= (words[number] & ~others[number][:, None]) == 0
        if int(possible.sum()) * _FEW < possible.numel():
            break
    row, source = possible.nonzero(as_tuple=True)
    for rest in range(number + 1, len(words)):
        inside = (words[rest][source] & ~others[rest][row]) == 0
        row, source = row[inside], source[inside]
    return row, source
