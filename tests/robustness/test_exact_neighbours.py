"""The exact radii of nearest-neighbour classifiers against programs that know every half space at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

import holdfast as hf

NORMS = (1.0, 2.0, math.inf)


def asked(
    seed: int, inputs: int, points: int, *, k: int = 1, box: bool = True, target: bool = False, classes: int = 3
) -> tuple[hf.Cases, Tensor]:
    """Two cases with three masks each."""
    generator = torch.Generator().manual_seed(seed)
    train, x = (torch.rand(count, inputs, generator=generator).double() for count in (points, 2))
    labels = torch.cat([torch.arange(classes), torch.randint(0, classes, (points - classes,), generator=generator)])
    model = hf.neighbours(train, labels, k, (0, 1) if box else None)
    label = model(x).argmax(1)
    cases = model.ask(x, target=(label + 1) % classes if target else None)
    subsets = torch.rand(2, 3, inputs, generator=generator) < torch.tensor([1.1, 0.6, 0.4])[:, None]
    return cases, subsets


def brute(cases: hf.Cases, case: int, free: Tensor, p: float) -> float:
    """One program for each rival, with all of its half spaces."""
    model = cases.model
    assert isinstance(model, hf.NeighboursModel)
    points, labels, x = model.points.numpy(), model.labels.numpy(), cases.x[case].numpy()
    target = int(cases.target[case])
    blocks = labels == int(cases.label[case]) if target < 0 else labels != target
    at = free.numpy()
    low, high = (-x[at], 1 - x[at]) if model.low is not None else (np.full(at.sum(), -50.0), np.full(at.sum(), 50.0))
    best = math.inf
    for rival in points[~blocks]:
        rows = 2 * (rival - points[blocks])[:, at]
        goals = ((x - rival) ** 2).sum() - ((x - points[blocks]) ** 2).sum(1)
        best = min(best, program(rows, goals, low, high, p))
    return best


def program(rows: np.ndarray, goals: np.ndarray, low: np.ndarray, high: np.ndarray, p: float) -> float:
    m, n = rows.shape
    widest = linprog(
        np.r_[np.zeros(n), -1], np.c_[-rows, np.ones(m)], -goals, bounds=[*zip(low, high, strict=True), (0, 1)]
    )
    if widest.status == 2 or -widest.fun < 1e-7:
        return math.inf  # nothing but ties
    # Moves, and bounds of their sizes: one for each coordinate in L1, one for all in Linf.
    eye, sizes = np.eye(n), np.eye(n) if p == 1 else np.ones((n, 1))
    matrix = np.block([[-rows, np.zeros((m, sizes.shape[1]))], [eye, -sizes], [-eye, -sizes]])
    cost = np.r_[np.zeros(n), np.ones(sizes.shape[1])]
    limits = [*zip(low, high, strict=True), *[(0, None)] * sizes.shape[1]]
    linear = linprog(cost, matrix, np.r_[-goals, np.zeros(2 * n)], bounds=limits)
    if linear.status == 2:
        return math.inf
    assert linear.status == 0
    if p != 2:
        return float(linear.fun)
    solved = minimize(
        lambda d: d @ d,
        linear.x[:n],
        jac=lambda d: 2 * d,
        bounds=limits[:n],
        constraints={"type": "ineq", "fun": lambda d: rows @ d - goals, "jac": lambda d: rows},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return math.sqrt(solved.fun)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("target", [False, True])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), inputs=st.integers(2, 6), points=st.integers(3, 25), box=st.booleans())
def test_radii_are_those_of_brute_force(p: float, target: bool, seed: int, inputs: int, points: int, box: bool) -> None:
    cases, subsets = asked(seed, inputs, points, box=box, target=target)
    radii = hf.ExactNeighbours(p)(cases, subsets)
    for case in range(2):
        for k in range(3):
            free = subsets[case, k]
            expected = brute(cases, case, free, p) if bool(free.any()) else math.inf
            if not box and math.isinf(expected):
                assert float(radii.radius[case, k]) > 49, "brute force searches a box of 50"
                continue
            assert float(radii.radius[case, k]) == pytest.approx(expected, rel=1e-5, abs=1e-7)
            # An input that lies on a boundary up to rounding is not settled: its bracket is as narrow as rounding.
            gap = float(radii.radius[case, k] - radii.lower[case, k])
            assert bool(radii.proven[case, k]) or 0 <= gap <= 1e-9


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("k", [1, 3, 4])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_point_inside_the_proven_ball_changes_the_decision(p: float, k: int, seed: int) -> None:
    cases, subsets = asked(seed, 4, 20, k=k)
    radii = hf.ExactNeighbours(p)(cases, subsets)
    generator = torch.Generator().manual_seed(seed)
    for case in range(2):
        for subset in range(3):
            reach = min(float(radii.lower[case, subset]), 2.0)
            away = torch.randn(3000, 4, generator=generator).double() * subsets[case, subset]
            away *= (torch.rand(3000, 1, generator=generator) ** 0.25) * 0.999 * reach
            away /= torch.linalg.vector_norm(away / (0.999 * reach + 1e-300), p, dim=1, keepdim=True).clamp_min(1)
            near = (cases.x[case] + away).clamp(0, 1)
            assert bool((cases.model(near).argmax(1) == cases.label[case]).all())


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("k", [1, 3, 4, 5])
def test_witnesses_change_the_prediction_of_scikit_learn(p: float, k: int) -> None:
    generator = np.random.default_rng(k)
    points, labels = generator.normal(size=(80, 5)), generator.integers(0, 3, 80)
    whole = make_pipeline(StandardScaler(), KNeighborsClassifier(k)).fit(points * [1, 10, 100, 1, 1], labels)
    x = generator.normal(size=(6, 5)) * [1, 10, 100, 1, 1]
    radii = hf.ExactNeighbours(p)(hf.from_sklearn(whole).ask(x), torch.ones(6, 1, 5, dtype=torch.bool))
    assert bool(radii.witnessed.all())
    assert (whole.predict(x) != whole.predict(radii.witness[:, 0].numpy())).all()
    assert k > 1 or bool(radii.proven.all())
    assert bool((radii.lower > 0).all())
    assert bool((radii.lower <= radii.radius).all())


def test_a_pipeline_is_measured_in_its_own_units() -> None:
    generator = np.random.default_rng(0)
    points, labels, x = generator.normal(size=(40, 3)), generator.integers(0, 2, 40), generator.normal(size=(5, 3))
    every = torch.ones(5, 1, 3, dtype=torch.bool)
    plain = hf.ExactNeighbours()(hf.neighbours(points, labels).ask(x), every)
    scaler = StandardScaler(with_std=False)  # moves points and inputs alike
    moved = make_pipeline(scaler, KNeighborsClassifier(1)).fit(points, labels)
    torch.testing.assert_close(hf.ExactNeighbours()(hf.from_sklearn(moved).ask(x), every).radius, plain.radius)


def test_two_points_have_their_bisector() -> None:
    model = hf.neighbours([[0.0, 0], [4, 0]], ["a", "b"])
    masks = torch.tensor([[[True, True], [True, False], [False, True]]])
    radii = hf.ExactNeighbours()(model.ask(torch.tensor([[1.0, 7]])), masks)
    assert radii.radius[0, :2].tolist() == [pytest.approx(1), pytest.approx(1)]
    assert radii.unreachable.tolist() == [[False, False, True]], "no move along the bisector changes anything"


def test_a_box_makes_a_row_unreachable() -> None:
    model = hf.neighbours([[0.0, 0], [4, 0]], ["a", "b"], bounds=(0, 1.9))
    assert bool(hf.ExactNeighbours()(model.ask(torch.tensor([[1.0, 1]])), torch.ones(1, 1, 2).bool()).unreachable)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_copies_of_points_with_other_labels(k: int) -> None:
    points = torch.tensor([[0.0, 0], [0, 0], [1, 1], [1, 1], [2, 0]])
    cases = hf.neighbours(points, [0, 1, 0, 1, 1], k).ask(torch.tensor([[0.1, 0.0], [1.9, 0]]))
    radii = hf.ExactNeighbours()(cases, torch.ones(2, 1, 2, dtype=torch.bool))
    assert not bool(radii.radius.isnan().any())
    if k == 1:
        assert bool(radii.proven.all())
        assert float(radii.radius[0]) == pytest.approx(0.9), "only the point (2, 0) has no copy of class 0"


def test_more_neighbours_than_swaps() -> None:
    """Three neighbours of one class: two of them must leave."""
    points = torch.tensor([[0.0], [0.1], [0.2], [5], [6], [7]])
    cases = hf.neighbours(points, [0, 0, 0, 1, 1, 1], k=3).ask(torch.zeros(1, 1))
    radii = hf.ExactNeighbours()(cases, torch.ones(1, 1, 1, dtype=torch.bool))
    assert float(radii.radius) == pytest.approx(3.05)  # where the second of class 1 is as near as the second of class 0
    assert float(radii.lower) <= 3.05 + 1e-6


def test_other_models_are_refused() -> None:
    cases = hf.TorchModel(torch.nn.Linear(3, 2).eval()).ask(torch.zeros(1, 3))
    with pytest.raises(hf.HoldfastError, match=r"needs a model made by hf\.neighbours, got a TorchModel"):
        hf.ExactNeighbours()(cases, torch.ones(1, 1, 3, dtype=torch.bool))


def test_digits_are_settled_in_a_box() -> None:
    digits = hf.data.mnist()
    model = hf.neighbours(digits.x[:300], digits.y[:300], bounds=(0, 1))
    cases = model.ask(digits.x[300:310])
    share = torch.tensor([1.0, 0.5, 0.2, 0.02])[:, None]
    subsets = torch.rand(1, 784, generator=torch.Generator().manual_seed(0)) < share
    radii = hf.ExactNeighbours()(cases, subsets.expand(10, 4, 784))
    assert bool(radii.proven.all())
    assert bool(radii.unreachable[:, 3].any())


def test_judge_and_greedy_explanations_use_it() -> None:
    cases, subsets = asked(0, 5, 30)
    judged, exact = hf.Judge()(cases, subsets), hf.ExactNeighbours()(cases, subsets)
    assert torch.equal(judged.radius, exact.radius)
    assert hf.GreedyAS()(cases).order.shape == (2, 5)
