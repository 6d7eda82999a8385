from __future__ import annotations

import math

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

import holdfast as hf

# Coordinates: one continuous, one of thirds, one of halves that rises, one continuous that falls, two groups.
STEP = torch.tensor([0, 1 / 3, 0.5, 0, 0, 0, 0, 0, 0], dtype=torch.float64)
GROUPS = (torch.tensor([4, 6, 8]), torch.tensor([5, 7]))
RISING = torch.tensor([n == 2 for n in range(9)])
FALLING = torch.tensor([n == 3 for n in range(9)])
DOMAIN = hf.Domain(STEP, GROUPS, rising=RISING, falling=FALLING)
HOT = math.sqrt(0.5)

STEADY = hypothesis.settings(deadline=None, derandomize=True)

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


@STEADY
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


@STEADY
@hypothesis.given(point=points, origin=origins())
def test_no_input_is_nearer(point: Tensor, origin: Tensor) -> None:
    near = DOMAIN.nearest(point, origin)
    halves = torch.arange(-12, 13, dtype=torch.float64) / 2
    grid = torch.cartesian_prod(
        torch.arange(-10, 11, dtype=torch.float64) / 3,
        halves[halves >= origin[0, 2] - 1e-9],
        torch.tensor([4.0, 6, 8], dtype=torch.float64),
        torch.tensor([5.0, 7], dtype=torch.float64),
    )
    others = torch.zeros(len(grid), 9, dtype=torch.float64)
    others[:, 0], others[:, 3] = point[0, 0], torch.minimum(point[0, 3], origin[0, 3])
    others[:, 1:3] = grid[:, :2]
    others.scatter_(1, grid[:, 2:].long(), HOT)
    assert DOMAIN.contains(others, origin.expand(len(others), -1)).all()
    assert (point - others).square().sum(1).min() >= (point - near).square().sum() - 1e-9


@STEADY
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


def test_no_values_are_asked_for() -> None:
    origin = torch.zeros(3, 9)

    def nearest(points: Tensor, origin: Tensor) -> Tensor:
        return DOMAIN.nearest(points, origin)

    traced = make_fx(nearest, tracing_mode="fake", _allow_non_fake_inputs=True)(origin + 1, origin)
    assert torch.equal(traced(origin + 2, origin), DOMAIN.nearest(origin + 2, origin))


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
