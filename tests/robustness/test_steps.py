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

from holdfast.errors import HoldfastError
from holdfast.robustness.norms import L1, L2, Linf, Norm, norm_of

NORMS = (L1(), L2(), Linf())


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


@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_nearest_point_of_a_linear_boundary(norm: Norm, seed: int) -> None:
    slope, low, high, drop = problem(seed)
    delta = norm.nearest(slope, drop, low, high)
    assert bool(((delta >= low) & (delta <= high)).all())
    assert float((slope * delta).sum()) == pytest.approx(-float(drop), abs=1e-6)
    best = solve_nearest(slope[0].numpy(), float(drop), low[0].numpy(), high[0].numpy(), norm.p)
    assert float(norm.length(delta)) == pytest.approx(best, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_farthest_undoes_nearest(norm: Norm, seed: int) -> None:
    slope, low, high, drop = problem(seed)
    delta = norm.nearest(slope, drop, low, high)
    again = norm.farthest(slope, norm.length(delta), low, high)
    assert bool(((again >= low) & (again <= high)).all())
    assert float(norm.length(again)) <= float(norm.length(delta)) * (1 + 1e-6)
    assert float((slope * again).sum()) == pytest.approx(-float(drop), abs=1e-6)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.01, 2))
def test_projection_is_the_nearest_point_of_ball_and_box(norm: Norm, seed: int, share: float) -> None:
    slope, low, high, _ = problem(seed)
    radius = norm.length(slope) * share
    point = norm.project(slope, radius, low, high)
    assert bool(((point >= low - 1e-12) & (point <= high + 1e-12)).all())
    assert float(norm.length(point)) <= float(radius) * (1 + 1e-6)
    # No feasible point is nearer: the projection's defining inequality, tried on many of them.
    others = low + torch.rand(500, slope.shape[1], generator=torch.Generator().manual_seed(seed)).double() * (
        high - low
    )
    others = others * (radius / norm.length(others).clamp_min(1e-12)).clamp_max(1)[:, None]
    assert float(((slope - point) * (others - point)).sum(1).max()) <= 1e-5


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_without_a_box_the_dual_norm_rules(norm: Norm) -> None:
    slope = torch.tensor([[3.0, -4.0, 0.0]]).double()
    free = torch.full_like(slope, math.inf)
    delta = norm.nearest(slope, torch.tensor([2.0]).double(), -free, free)
    q = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[norm.p]
    assert norm.dual.p == q
    assert norm.dual.dual.p == norm.p
    assert float(norm.length(delta)) == pytest.approx(2.0 / float(torch.linalg.vector_norm(slope, q)))


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_what_cannot_be_reached_goes_as_far_as_it_can(norm: Norm) -> None:
    slope = torch.tensor([[1.0, -1.0, 0.0]]).double()
    low, high = torch.tensor([[-0.5, -1.0, -1.0]]).double(), torch.tensor([[1.0, 0.25, 1.0]]).double()
    delta = norm.nearest(slope, torch.tensor([99.0]).double(), low, high)
    assert delta.tolist() == [[-0.5, 0.25, 0.0]]


def test_the_step_limit_of_a_gpu_costs_little_and_exact_lifts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limit applied on a CPU, moves fall short and never pass the goal."""
    generator = torch.Generator().manual_seed(0)
    slope = torch.randn(60, 200, generator=generator).double()
    low, high = -torch.rand(60, 200, generator=generator).double(), torch.rand(60, 200, generator=generator).double()
    most = (slope.abs() * torch.where(slope > 0, -low, high)).sum(1)
    norm = L2()
    whole = norm.nearest(slope, 0.97 * most, low, high)
    monkeypatch.setattr(Tensor, "is_cuda", True)
    capped, exact = (norm.nearest(slope, 0.97 * most, low, high, exact=exact) for exact in (False, True))
    assert torch.equal(exact, whole)
    assert bool((norm.length(capped) <= norm.length(whole) * (1 + 1e-12)).all())
    assert float((norm.length(capped) / norm.length(whole)).min()) > 0.9


@pytest.mark.parametrize(("p", "norm"), [(1, L1), (2, L2), (2.0, L2), (np.int64(2), L2), (math.inf, Linf)])
def test_a_norm_is_known_by_its_p(p: float, norm: type[Norm]) -> None:
    assert type(norm_of(p)) is norm


@pytest.mark.parametrize("p", [0, 3, 1.5, -1, math.nan, "2", None, [2]])
def test_other_norms_are_refused(p: object) -> None:
    with pytest.raises(HoldfastError, match=r"p must be 1, 2 or inf, got"):
        norm_of(p)
