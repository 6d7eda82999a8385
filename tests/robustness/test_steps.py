"""Closed-form steps against general-purpose solvers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from torch import Tensor

from holdfast.robustness.steps import farthest, nearest, norm, project

NORMS = (1.0, 2.0, math.inf)


def problem(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A slope with an interval that has masked, one-sided and wide coordinates, and a reachable drop."""
    generator = torch.Generator().manual_seed(seed)
    n = int(torch.randint(2, 9, (1,), generator=generator))
    slope = torch.randn(1, n, generator=generator).double()
    low = -torch.rand(1, n, generator=generator).double()
    high = torch.rand(1, n, generator=generator).double()
    kind = torch.randint(0, 5, (1, n), generator=generator)
    low, high = torch.where(kind == 0, 0, low), torch.where((kind == 0) | (kind == 1), 0, high)
    most = -(slope * torch.where(slope > 0, low, high)).sum(1)
    return slope, low, high, most * torch.rand(1, generator=generator).double() * 0.98


def solve_nearest(g: np.ndarray, drop: float, low: np.ndarray, high: np.ndarray, p: float) -> float:
    n = len(g)
    if p == 2:
        start = np.where(g > 0, low, high)
        solved = minimize(
            lambda d: d @ d,
            start,
            jac=lambda d: 2 * d,
            bounds=list(zip(low, high, strict=True)),
            constraints={"type": "ineq", "fun": lambda d: -drop - g @ d, "jac": lambda d: -g},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        return float(np.linalg.norm(solved.x))
    # p = 1: d = up - down; p = inf: |d| <= t
    if p == 1:
        solved = linprog(
            np.ones(2 * n),
            A_ub=[np.r_[g, -g]],
            b_ub=[-drop],
            bounds=[(0, h) for h in high] + [(0, -lo) for lo in low],
        )
    else:
        rows = np.vstack([np.c_[np.eye(n), -np.ones(n)], np.c_[-np.eye(n), -np.ones(n)], np.r_[g, 0]])
        solved = linprog(
            np.r_[np.zeros(n), 1],
            A_ub=rows,
            b_ub=np.r_[np.zeros(2 * n), -drop],
            bounds=[*zip(low, high, strict=True), (0, None)],
        )
    return float(solved.fun)


@pytest.mark.parametrize("p", NORMS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_nearest_point_of_a_linear_boundary(p: float, seed: int) -> None:
    slope, low, high, drop = problem(seed)
    delta = nearest(slope, drop, low, high, p)
    assert bool(((delta >= low) & (delta <= high)).all())
    assert float((slope * delta).sum()) == pytest.approx(-float(drop), abs=1e-6)
    best = solve_nearest(slope[0].numpy(), float(drop), low[0].numpy(), high[0].numpy(), p)
    assert float(norm(delta, p)) == pytest.approx(best, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("p", NORMS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_farthest_undoes_nearest(p: float, seed: int) -> None:
    slope, low, high, drop = problem(seed)
    delta = nearest(slope, drop, low, high, p)
    again = farthest(slope, norm(delta, p), low, high, p)
    assert bool(((again >= low) & (again <= high)).all())
    assert float(norm(again, p)) <= float(norm(delta, p)) * (1 + 1e-6)
    assert float((slope * again).sum()) == pytest.approx(-float(drop), abs=1e-6)


@pytest.mark.parametrize("p", NORMS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.01, 2))
def test_projection_is_the_nearest_point_of_ball_and_box(p: float, seed: int, share: float) -> None:
    slope, low, high, _ = problem(seed)
    radius = norm(slope, p) * share
    point = project(slope, radius, low, high, p)
    assert bool(((point >= low - 1e-12) & (point <= high + 1e-12)).all())
    assert float(norm(point, p)) <= float(radius) * (1 + 1e-6)
    # No feasible point is nearer: the projection's defining inequality, tried on many of them.
    others = low + torch.rand(500, slope.shape[1], generator=torch.Generator().manual_seed(seed)).double() * (
        high - low
    )
    others = others * (radius / norm(others, p).clamp_min(1e-12)).clamp_max(1)[:, None]
    assert float(((slope - point) * (others - point)).sum(1).max()) <= 1e-5


@pytest.mark.parametrize("p", NORMS)
def test_without_a_box_the_dual_norm_rules(p: float) -> None:
    slope = torch.tensor([[3.0, -4.0, 0.0]]).double()
    free = torch.full_like(slope, math.inf)
    delta = nearest(slope, torch.tensor([2.0]).double(), -free, free, p)
    q = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[p]
    assert float(norm(delta, p)) == pytest.approx(2.0 / float(norm(slope, q)))


@pytest.mark.parametrize("p", NORMS)
def test_what_cannot_be_reached_goes_as_far_as_it_can(p: float) -> None:
    slope = torch.tensor([[1.0, -1.0, 0.0]]).double()
    low, high = torch.tensor([[-0.5, -1.0, -1.0]]).double(), torch.tensor([[1.0, 0.25, 1.0]]).double()
    delta = nearest(slope, torch.tensor([99.0]).double(), low, high, p)
    assert delta.tolist() == [[-0.5, 0.25, 0.0]]


def test_what_a_gpu_leaves_out_is_small_and_exact_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cap on kinks, tried on a CPU: moves fall short, never past, and ``exact`` does without."""
    generator = torch.Generator().manual_seed(0)
    slope = torch.randn(60, 200, generator=generator).double()
    low, high = -torch.rand(60, 200, generator=generator).double(), torch.rand(60, 200, generator=generator).double()
    most = (slope.abs() * torch.where(slope > 0, -low, high)).sum(1)
    whole = nearest(slope, 0.97 * most, low, high, 2)
    monkeypatch.setattr(Tensor, "is_cuda", True)
    blind, exact = (nearest(slope, 0.97 * most, low, high, 2, exact=asked) for asked in (False, True))
    assert torch.equal(exact, whole)
    assert bool((norm(blind, 2) <= norm(whole, 2) * (1 + 1e-12)).all())
    assert float((norm(blind, 2) / norm(whole, 2)).min()) > 0.9
