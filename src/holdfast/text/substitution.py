"""From perturbed word vectors to real words: do these words change the decision too?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.draws import generator, mixed
from holdfast.errors import HoldfastError
from holdfast.robustness.rows import margin

_AT_ONCE = 2**24  # distances between tokens and words that are computed at once
_DRAWS = 10  # how often random words are drawn


@dataclass(frozen=True, eq=False)
class Substitution:
    """The real words that perturbations point to, and whether they change the decision.

    Attributes:
        rows: Rows of the vectors that replace tokens, ``[B, K, L]``: the first other word in the direction of the
            perturbation. -1: the token stays.
        times: How far away that word is, ``[B, K, L]``: after this many times the perturbation it becomes the nearest
            word. At most 1: the perturbed vector is no longer nearest to its own word. ``inf``: the token stays.
        changed: Whether the decision changes with the words of ``rows``, ``[B, K]``.
        rounded: Whether it changes when each perturbed vector is replaced by the word nearest to it, ``[B, K]``.
        by_chance: The share of draws in which random words in the same places change it, ``[B, K]``: the baseline.
    """

    rows: Tensor
    times: Tensor
    changed: Tensor
    rounded: Tensor
    by_chance: Tensor


def substitute(cases: Cases, witness: Tensor, vectors: Tensor, seed: int = 0) -> Substitution:
    """Return the first other word that each perturbed token meets in the direction of its perturbation.

    A token at x that moves along d is as near to the vector v as to x at ``x + t d`` with
    ``t = |v - x|^2 / (2 <d, v - x>)``. The word with the smallest positive t is the first one.

    Args:
        cases: Cases of embedded text ``[B, L, E + 1]``.
        witness: Perturbed inputs ``[B, K, L, E + 1]``, such as ``Radii.witness``. Tokens that equal those of the input
            stay.
        vectors: The vectors of all words, ``[V, E]``, such as ``TextModel.known_vectors``.
        seed: Seed of the random words.

    Returns:
        The new words, and whether they change decisions.

    Raises:
        HoldfastError: The vectors do not fit the cases.
    """
    b, length, width = cases.x.shape
    if vectors.ndim != 2 or not len(vectors) or vectors.shape[1] != width - 1:
        raise HoldfastError(f"vectors must be [V, {width - 1}], got {tuple(vectors.shape)}.")
    vectors = vectors.to(cases.x)
    k = witness.shape[1]
    move = (witness - cases.x[:, None])[..., :-1]
    moved = (move != 0).any(3)
    at = cases.x[:, None, :, :-1].expand(b, k, length, width - 1)[moved]
    rows = torch.full((b, k, length), -1, device=cases.x.device)
    times, nearest = cases.x.new_full((b, k, length), math.inf), rows.clone()
    size = max(1, _AT_ONCE // len(vectors))
    parts = [_first_words(a, d, vectors) for a, d in zip(at.split(size), move[moved].split(size), strict=True)]
    if len(at):
        rows[moved], times[moved], nearest[moved] = (torch.cat(part) for part in zip(*parts, strict=True))
    drawn = [torch.where(rows >= 0, _random_rows(length, len(vectors), seed, n).to(rows), -1) for n in range(_DRAWS)]
    by_chance = torch.stack([_changed(cases, other, vectors) for other in drawn]).double().mean(0)
    return Substitution(rows, times, _changed(cases, rows, vectors), _changed(cases, nearest, vectors), by_chance)


def by_word(rows: Sequence[int], owner: Sequence[int], names: Sequence[str]) -> dict[int, str]:
    """Return the replacement of each word of one text.

    A word of several tokens is replaced by one word for each token that moved.

    >>> by_word([-1, 3, 0], owner=[0, 1, 1], names=["sun", "sea", "sky", "sand"])
    {1: 'sand sun'}

    Args:
        rows: ``Substitution.rows`` of one text and subset, length L.
        owner: The number of the word that each token is a part of, length L.
        names: The words that the rows stand for, such as ``TextModel.known_names``.

    Returns:
        The new words by the number of the word that they replace; words that stay are left out.
    """
    replacements: dict[int, list[str]] = {}
    for row, word in zip(rows, owner, strict=True):
        if row >= 0:
            replacements.setdefault(word, []).append(names[row])
    return {word: " ".join(new) for word, new in replacements.items()}


def _first_words(at: Tensor, move: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first other word, how far it is, and the word nearest to the end, -1 if that is the token's own."""
    ahead = move @ vectors.T - (move * at).sum(1, keepdim=True)
    distance = _squared_distances(at, vectors)
    own = distance <= 1e-10 * at.square().sum(1, keepdim=True).clamp_min(1)
    times, row = torch.where((ahead > 0) & ~own, distance / (2 * ahead), math.inf).min(1)
    least, near = _squared_distances(at + move, vectors).masked_fill_(own, math.inf).min(1)
    stays = move.square().sum(1) <= least
    return torch.where(torch.isinf(times), -1, row), times, torch.where(stays, -1, near)


def _random_rows(length: int, words: int, seed: int, draw: int) -> Tensor:
    """Return a random word for each place of a text; a longer text begins with the same ones."""
    return (words * torch.rand(length, generator=generator(mixed(seed, draw)), dtype=torch.double)).long()


def _squared_distances(points: Tensor, vectors: Tensor) -> Tensor:
    """Return the squared distances ``[P, V]`` of points ``[P, E]`` to vectors ``[V, E]``."""
    return torch.cdist(points, vectors, compute_mode="donot_use_mm_for_euclid_dist").square_()


def _changed(cases: Cases, rows: Tensor, vectors: Tensor) -> Tensor:
    """Return whether words ``rows [B, K, L]`` change the decision, ``[B, K]``; not if there are none."""
    b, k = rows.shape[:2]
    x = cases.x[:, None].repeat(1, k, 1, 1)
    replaced = rows >= 0
    x[..., :-1][replaced] = vectors[rows[replaced]]
    logits = cases.model(x.flatten(0, 1), exact=True)
    label, target = (one.repeat_interleave(k) for one in (cases.label, cases.target))
    return (margin(logits, label, target) < 0).view(b, k) & replaced.any(2)
