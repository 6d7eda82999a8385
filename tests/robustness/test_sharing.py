"""Sharing between subsets, against Python's own sets."""

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from holdfast.robustness.radii import Measurements
from holdfast.robustness.sharing import share_exact, share_lower_bounds, share_witnesses

_KINDS = ("random", "nested", "few")
_drawn = given(
    k=st.sampled_from([1, 2, 7, 40]), d=st.sampled_from([1, 3, 62, 63, 64, 200]), seed=st.integers(0, 10_000)
)


def _subsets(kind: str, k: int, d: int, draw: random.Random) -> Tensor:
    order = draw.sample(range(d), d)
    subsets = torch.zeros(k, d, dtype=torch.bool)
    for number in range(k):
        most = {"random": d, "nested": d, "few": min(d, 2)}[kind]
        size = draw.randint(0, most)
        subsets[number, order[:size] if kind == "nested" else draw.sample(range(d), size)] = True
    return subsets


def _measured(k: int, d: int, draw: random.Random) -> Measurements:
    radius = torch.tensor([[draw.choice([math.inf, 0.0, 1.0, draw.random()]) for _ in range(k)]])
    proven = torch.tensor([[draw.random() < 0.5 for _ in range(k)]])
    witness = torch.tensor([[[float(number)] * d for number in range(k)]])  # names its subset
    share = torch.tensor([[draw.choice([0.0, draw.random()]) for _ in range(k)]])
    lower = torch.where(proven, radius, (share * radius).nan_to_num(0))
    return Measurements(radius, torch.arange(k)[None], proven, torch.zeros_like(proven), lower, witness)


def _inside(subsets: Tensor) -> list[list[int]]:
    """Return for each subset the places of the subsets inside it."""
    sets = [frozenset(row.nonzero()[:, 0].tolist()) for row in subsets]
    return [[place for place, other in enumerate(sets) if other <= one] for one in sets]


@pytest.mark.parametrize("kind", _KINDS)
@_drawn
def test_every_subset_gets_the_best_of_those_inside_it_and_no_other(kind: str, k: int, d: int, seed: int) -> None:
    draw = random.Random(seed)
    subsets, measured = _subsets(kind, k, d, draw), _measured(k, d, draw)
    before = measured.radius[0].tolist()
    share_witnesses(measured, subsets[None])
    assert measured.witness is not None
    for place, inside in enumerate(_inside(subsets)):
        best = min(before[other] for other in inside)
        source = int(measured.new_class[0, place])
        assert measured.radius[0, place] == best
        assert source in inside
        assert before[source] == best
        assert source == place or best < before[place], "a subset keeps its own witness unless another is better"
        assert (measured.witness[0, place] == source).all()


@pytest.mark.parametrize("kind", _KINDS)
@_drawn
def test_lower_bounds_and_proofs_go_to_the_subsets_inside(kind: str, k: int, d: int, seed: int) -> None:
    draw = random.Random(seed)
    subsets, measured = _subsets(kind, k, d, draw), _measured(k, d, draw)
    inside = _inside(subsets)
    around = [[other for other in range(k) if place in inside[other]] for place in range(k)]
    before, claimed, known = measured.radius[0].tolist(), measured.proven[0].tolist(), measured.lower[0].tolist()
    bounds = _measured(k, d, draw)
    bounds.radius = measured.radius.clone()
    share_lower_bounds(bounds, subsets[None])
    assert bounds.radius[0].tolist() == [max(before[other] for other in around[place]) for place in range(k)]
    share_exact(measured, subsets[None])
    upper = [min(before[other] for other in inside[place]) for place in range(k)]
    sound = [claimed[place] and upper[place] >= before[place] * (1 - 1e-6) for place in range(k)]
    kept = [min(known[place], upper[place]) if upper[place] >= known[place] * (1 - 1e-6) else 0 for place in range(k)]
    for place in range(k):
        lower = min(max(kept[other] for other in around[place]), upper[place])
        assert measured.radius[0, place] == upper[place]
        assert measured.lower[0, place] == lower
        assert bool(measured.proven[0, place]) == (sound[place] or upper[place] <= lower)


def test_many_nested_subsets_are_compared_in_many_blocks() -> None:
    k = 1500
    subsets = (torch.arange(k)[:, None] >= torch.arange(k)).flip(0)[None]  # the last is the smallest
    measured = Measurements(
        torch.arange(k, dtype=torch.float32)[None].flip(1) + 1,
        torch.arange(k)[None],
        torch.ones(1, k, dtype=torch.bool),
        torch.zeros(1, k, dtype=torch.bool),
        torch.zeros(1, k),
    )
    share_witnesses(measured, subsets)
    assert (measured.radius == 1).all()
    assert (measured.new_class == k - 1).all()


def test_no_cases_and_no_subsets_share_nothing() -> None:
    for shape in ((0, 3), (2, 0)):
        measured = Measurements(
            torch.zeros(shape),
            torch.zeros(shape, dtype=torch.long),
            *(torch.zeros(shape, dtype=torch.bool),) * 2,
            torch.zeros(shape),
        )
        share_exact(measured, torch.zeros(*shape, 4, dtype=torch.bool))
        share_lower_bounds(measured, torch.zeros(*shape, 4, dtype=torch.bool))
        assert measured.radius.shape == shape
