"""From a change of word vectors to a change of words: does the prediction turn for real words too?"""

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

_AT_ONCE = 2**24  # distances between tokens and words
_DRAWS = 10  # of random words


@dataclass(frozen=True, eq=False)
class Substitution:
    """The words that perturbations point to, and whether they change the decision.

    ``rows [B, K, L]`` are those of the vectors that take the place of a token, -1 where it stays: the first other word
    on its way. ``times [B, K, L]`` is how many times as far as the perturbation that word's side begins, ``inf`` where
    a token stays; where it is at most 1 the perturbed vector is no longer nearest to its own word. ``changed [B, K]``:
    the decision with all new words; ``rounded [B, K]``: with each perturbed vector rounded to the word nearest to it.
    ``by_chance [B, K]`` is what these are to be compared with: how often words drawn at random, put where the new words
    are, change it.
    """

    rows: Tensor
    times: Tensor
    changed: Tensor
    rounded: Tensor
    by_chance: Tensor


def substitute(cases: Cases, witness: Tensor, vectors: Tensor, seed: int = 0) -> Substitution:
    """Return the first other word that each perturbed token meets in the direction of its perturbation.

    A token at x that moves along d leaves the points nearest to x for those nearest to the vector v after
    ``|v - x|^2 / (2 <d, v - x>)`` times d: the word with the smallest such number is met first.

    Args:
        cases: Cases of embedded text ``[B, L, E + 1]``.
        witness: Perturbed inputs ``[B, K, L, E + 1]``; one that equals its input changes nothing.
        vectors: The vectors of all words, ``[V, E]``.
        seed: Seed of the random words.

    Returns:
        The new words, and whether they change decisions.
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
    some = max(1, _AT_ONCE // len(vectors))
    found = [_met(a, d, vectors) for a, d in zip(at.split(some), move[moved].split(some), strict=True)]
    if len(at):
        rows[moved], times[moved], nearest[moved] = (torch.cat(part) for part in zip(*found, strict=True))
    drawn = [torch.where(rows >= 0, _any_rows(length, len(vectors), seed, n).to(rows), -1) for n in range(_DRAWS)]
    by_chance = torch.stack([_turned(cases, other, vectors) for other in drawn]).double().mean(0)
    return Substitution(rows, times, _turned(cases, rows, vectors), _turned(cases, nearest, vectors), by_chance)


def by_word(rows: Sequence[int], owner: Sequence[int], names: Sequence[str]) -> dict[int, str]:
    """What takes the place of every word, by its number: of a word of several pieces, a word for each that moved.

    ``rows [L]`` are those of one text's ``Substitution``, ``owner [L]`` the number of the word of every token.
    """
    found: dict[int, list[str]] = {}
    for row, word in zip(rows, owner, strict=True):
        if row >= 0:
            found.setdefault(word, []).append(names[row])
    return {word: " ".join(new) for word, new in found.items()}


def _met(at: Tensor, move: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The first other word on the way, how far it is, and the word nearest at the end, -1 where that is its own."""
    ahead = move @ vectors.T - (move * at).sum(1, keepdim=True)
    apart = _apart(at, vectors)
    own = apart <= 1e-10 * at.square().sum(1, keepdim=True).clamp_min(1)
    times, row = torch.where((ahead > 0) & ~own, apart / (2 * ahead), math.inf).min(1)
    least, near = _apart(at + move, vectors).masked_fill_(own, math.inf).min(1)
    stays = move.square().sum(1) <= least
    return torch.where(torch.isinf(times), -1, row), times, torch.where(stays, -1, near)


def _any_rows(length: int, words: int, seed: int, draw: int) -> Tensor:
    """A word for every place of a text, the same whatever follows it."""
    return (words * torch.rand(length, generator=generator(mixed(seed, draw)), dtype=torch.double)).long()


def _apart(points: Tensor, vectors: Tensor) -> Tensor:
    """Squared distances."""
    return torch.cdist(points, vectors, compute_mode="donot_use_mm_for_euclid_dist").square_()


def _turned(cases: Cases, rows: Tensor, vectors: Tensor) -> Tensor:
    """Whether the decision changes with these words in place, ``[B, K]``; not where there are none."""
    b, k = rows.shape[:2]
    x = cases.x[:, None].repeat(1, k, 1, 1)
    there = rows >= 0
    x[..., :-1][there] = vectors[rows[there]]
    logits = cases.model(x.flatten(0, 1), exact=True)
    label, target = (one.repeat_interleave(k) for one in (cases.label, cases.target))
    return (margin(logits, label, target) < 0).view(b, k) & there.any(2)
