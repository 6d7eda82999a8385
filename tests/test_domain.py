from __future__ import annotations

import itertools
import math

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

import holdfast as hf

# Coordinates: one continuous, one of thirds, one of halves that rises, one continuous that falls, two groups.
STEP = torch.tensor([0, 1 / 3, 0.5, 0, 0, 0, 0, 0, 0], dtype=torch.float64)
GROUPS = (torch.tensor([4, 6, 8]), torch.tensor([5, 7]))
RISING = torch.tensor([n == 2 for n in range(9)])
FALLING = torch.tensor([n == 3 for n in range(9)])
DOMAIN = hf.Domain(STEP, GROUPS, rising=RISING, falling=FALLING)
HOT = math.sqrt(0.5)

numbers = st.floats(-3, 3)
points = st.lists(numbers, min_size=9, max_size=9).map(lambda row: torch.tensor([row], dtype=torch.float64))


@st.composite
def origins(draw: st.DrawFn) -> Tensor:
    row = torch.zeros(1, 9, dtype=torch.float64)
    row[0, [0, 3]] = torch.tensor([draw(numbers), draw(numbers)], dtype=torch.float64)
    row[0, 1] = draw(st.integers(-9, 9)) * STEP[1]
    row[0, 2] = draw(st.integers(-6, 6)) * STEP[2]
    row[0, draw(st.sampled_from([4, 6, 8]))] = HOT
    row[0, draw(st.sampled_from([5, 7]))] = HOT
    return row


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@hypothesis.given(point=points, origin=origins())
def test_the_nearest_input_is_an_input_and_nearest_to_itself(point: Tensor, origin: Tensor, dtype: torch.dtype) -> None:
    point, origin = point.to(dtype), origin.to(dtype)
    near = DOMAIN.nearest(point, origin)
    assert near.dtype == dtype
    assert DOMAIN.contains(near, origin).all()
    assert torch.equal(DOMAIN.nearest(near, origin), near)
    assert torch.equal(DOMAIN.nearest(origin, origin), origin)
    if bool(DOMAIN.contains(point, origin)):
        torch.testing.assert_close(point, near)


@hypothesis.given(point=points, origin=origins())
def test_no_input_is_nearer(point: Tensor, origin: Tensor) -> None:
    near = DOMAIN.nearest(point, origin)
    x = origin[0].tolist()
    best = (point - near).square().sum()
    thirds, halves = [n / 3 for n in range(-10, 11)], [n / 2 for n in range(-12, 13) if n / 2 >= x[2] - 1e-9]
    first, fourth = float(point[0, 0]), min(float(point[0, 3]), x[3])
    for third, half, one, two in itertools.product(thirds, halves, (4, 6, 8), (5, 7)):
        other = torch.zeros(9, dtype=torch.float64)
        other[[0, 1, 2, 3]] = torch.tensor([first, third, half, fourth], dtype=torch.float64)
        other[[one, two]] = HOT
        assert (point - other).square().sum() >= best - 1e-9


@hypothesis.given(point=points, origin=origins())
def test_bounds_on_the_grid_are_kept(point: Tensor, origin: Tensor) -> None:
    low, high = torch.full((9,), -3.0, dtype=torch.float64), torch.full((9,), 3.0, dtype=torch.float64)
    low[4:], high[4:] = 0, HOT
    near = DOMAIN.nearest(point.clamp(low, high), origin)
    assert ((near >= low - 1e-12) & (near <= high + 1e-12)).all()


def test_a_tie_keeps_the_category_of_the_origin() -> None:
    domain = hf.Domain(torch.zeros(3), (torch.arange(3),), hot=1.0)
    tie = torch.tensor([[0.5, 0.5, 0.1], [0.5, 0.5, 0.1], [0.5, 0.5, 0.1]])
    origin = torch.eye(3)
    assert domain.nearest(tie, origin).argmax(1).tolist() == [0, 1, 0]


def test_rows_are_rounded_by_themselves() -> None:
    generator = torch.Generator().manual_seed(0)
    origin = torch.zeros(20, 9, dtype=torch.float64)
    origin[:, [4, 5]] = HOT
    many = torch.rand(20, 9, generator=generator, dtype=torch.float64) * 4 - 2
    together = DOMAIN.nearest(many, origin)
    alone = [DOMAIN.nearest(many[n : n + 1], origin[n : n + 1]) for n in range(20)]
    assert torch.equal(together, torch.cat(alone))
    assert DOMAIN.contains(torch.cat([together[:10], many[10:]]), origin).tolist() == [True] * 10 + [False] * 10


def test_a_point_computed_as_origin_and_move_is_contained() -> None:
    domain = hf.Domain(torch.tensor([1 / 13.7], dtype=torch.float64))
    places = torch.arange(100, dtype=torch.float64)[:, None]
    for dtype in (torch.float32, torch.float64):
        x, y = (places / 13.7).to(dtype), (places.flip(0) / 13.7).to(dtype)
        assert domain.contains(x + (y - x), x).all()
        assert not domain.contains(y + 0.02, x).any()


def test_what_does_not_move_stays_to_the_last_bit() -> None:
    domain = hf.Domain(torch.tensor([1 / 13.7], dtype=torch.float64), rising=torch.tensor([True]))
    x = torch.arange(200, dtype=torch.float32)[:, None] * torch.tensor(1 / 13.7)
    assert torch.equal(domain.nearest(x, x), x)
    assert torch.equal(domain.nearest(x - 0.5, x), x)


def test_everything_is_an_input_without_rules() -> None:
    free = hf.Domain(torch.zeros(2))
    x = torch.rand(3, 2)
    assert free.is_everything
    assert not DOMAIN.is_everything
    assert torch.equal(free.nearest(x, torch.zeros(3, 2)), x)
    assert len(free) == 2
    assert free.to("cpu") is free


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": torch.tensor([-1.0])}, "step must be finite numbers >= 0"),
        ({"step": torch.zeros(2, 2)}, "shape \\(2, 2\\)"),
        ({"step": "a"}, "step must be numbers"),
        ({"step": torch.zeros(2), "hot": 0}, "hot must be a finite number > 0"),
        ({"step": torch.zeros(2), "groups": ([0],)}, "two or more coordinates from 0 to 1"),
        ({"step": torch.zeros(2), "groups": ([0, 2],)}, "two or more coordinates from 0 to 1"),
        ({"step": torch.zeros(3), "groups": ([0, 1], [1, 2])}, "in one group"),
        ({"step": torch.ones(2), "groups": ([0, 1],)}, "without a step"),
        ({"step": torch.ones(2), "rising": [True]}, "rising must be bool \\[2\\]"),
        ({"step": torch.ones(2), "rising": [True, False], "falling": [True, False]}, "coordinate 0 may neither"),
    ],
)
def test_malformed_domains_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(hf.HoldfastError, match=message):
        hf.Domain(**arguments)  # type: ignore[arg-type]


def test_points_of_another_shape_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="must be \\[R, 9\\]"):
        DOMAIN.nearest(torch.zeros(2, 9), torch.zeros(1, 9))
