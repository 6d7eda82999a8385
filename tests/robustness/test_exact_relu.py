"""The judge against exact radii of small ReLU networks, and the oracle against brute force."""

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import holdfast as hf
from exact_relu import exact_radii, random_subsets, relu_net
from holdfast.robustness import Rows
from holdfast.robustness.many_starts import many_starts, refine
from holdfast.robustness.norms import norm_of
from holdfast.robustness.search import Search

NORMS = (1.0, 2.0, math.inf)
PRESETS = (hf.Judge.quick, hf.Judge.default, hf.Judge.thorough)


def _linf_by_enumeration(cases: hf.Cases, free: torch.Tensor) -> float:
    """Return the Linf radius: one linear program for each activation pattern and class."""
    first, _, second = cases.model.module  # type: ignore[attr-defined]
    w, b, v, c = (part.detach().double().numpy() for part in (*first.parameters(), *second.parameters()))
    x, label, best = cases.x[0].double().numpy(), int(cases.label[0]), math.inf
    n, at = len(x), w @ x + b
    edges = [(-x[i], 1 - x[i]) if free[i] else (0, 0) for i in range(n)]
    within = [[[*(sign * (np.arange(n) == i)).tolist(), -1] for i in range(n)] for sign in (1, -1)]
    for pattern in itertools.product([0.0, 1.0], repeat=len(b)):
        active = np.array(pattern)
        signs = np.where(active > 0, -1.0, 1.0)
        kept = np.hstack([signs[:, None] * w, np.zeros((len(b), 1))])
        for other in set(range(len(c))) - {label}:
            gap = (v[other] - v[label]) * active
            rows = np.vstack([kept, [*-(gap @ w), 0], *within])
            limits = np.concatenate([-signs * at, [gap @ at + c[other] - c[label]], np.zeros(2 * n)])
            found = linprog([0] * n + [1], rows, limits, bounds=[*edges, (0, None)])
            best = min(best, found.fun if found.status == 0 else math.inf)
    return best


@pytest.mark.parametrize("seed", range(4))
def test_the_oracle_agrees_with_enumeration(seed: int) -> None:
    cases, subsets = relu_net(4, 5, 3, seed), random_subsets(2, 4, seed)
    exact = exact_radii(cases, subsets[0], math.inf, torch.full((2,), math.inf))
    assert exact.tolist() == pytest.approx([_linf_by_enumeration(cases, free) for free in subsets[0]], rel=1e-5)


@pytest.mark.parametrize("p", NORMS)
def test_the_oracle_needs_no_known_radius_and_nothing_is_below_it(p: float) -> None:
    for seed in range(3):
        cases, subsets = relu_net(4, 6, 3, seed), random_subsets(3, 4, seed)
        exact = exact_radii(cases, subsets[0], p, torch.full((3,), math.inf))
        judged = hf.Judge.quick(p)(cases, subsets).radius[0]
        assert torch.allclose(exact, exact_radii(cases, subsets[0], p, judged), rtol=1e-5, atol=0)
        assert (judged.double() >= exact * (1 - 1e-5)).all()
        moves = (torch.rand(20_000, 4) * 2 - 1)[:, None] * subsets[0]
        for k in range(3):
            points = cases.x + moves[:, k]
            inside = ((points >= 0) & (points <= 1)).all(1)
            changed = inside & (cases.model(points).argmax(1) != cases.label)
            length = torch.linalg.vector_norm(moves[:, k], p, dim=1)
            assert not changed.any() or length[changed].min() >= exact[k] * (1 - 1e-5)


@pytest.mark.parametrize("p", NORMS)
def test_more_budget_never_gives_a_larger_radius(p: float) -> None:
    for seed in range(3):
        cases, subsets = relu_net(5, 8, 3, seed), random_subsets(3, 5, seed)
        quick, default, thorough = (preset(p)(cases, subsets).radius for preset in PRESETS)
        # A witness may be moved by 1 / 1,000 where rounding puts it in front of the boundary.
        assert (default <= quick * 1.0011).all()
        assert (thorough <= default * 1.0011).all()


@pytest.mark.parametrize("p", NORMS)
def test_the_judge_is_near_the_exact_radius(p: float) -> None:
    for seed in range(4):
        cases, subsets = relu_net(6, 12, 3, seed), random_subsets(6, 6, seed)
        judged = hf.Judge.default(p)(cases, subsets).radius[0]
        exact = exact_radii(cases, subsets[0], p, judged)
        assert (judged <= exact * 1.005).all()


@pytest.mark.parametrize(("widths", "seed"), [((6, 12, 3), 63), ((6, 12, 3), 81), ((10, 16, 4), 89), ((10, 16, 4), 93)])
@pytest.mark.parametrize("p", NORMS)
def test_rows_with_few_free_coordinates_have_no_nearer_basin(widths: tuple[int, int, int], seed: int, p: float) -> None:
    cases, subsets = relu_net(*widths, seed), random_subsets(6, widths[0], seed)
    quick, default = (preset(p)(cases, subsets).radius[0] for preset in PRESETS[:2])
    exact = exact_radii(cases, subsets[0], p, default)
    assert torch.isfinite(quick).equal(torch.isfinite(exact))
    found = torch.isfinite(exact)
    assert (quick <= exact * 1.03)[found].all()
    assert (default <= exact * 1.01)[found].all()


@pytest.mark.parametrize("p", NORMS)
def test_the_many_starts_does_not_depend_on_the_rows_that_share_a_batch(p: float) -> None:
    single, subsets = relu_net(6, 12, 3, 63), random_subsets(6, 6, 63)
    net = copy.deepcopy(single.model.module).double()  # type: ignore[attr-defined]
    cases = hf.TorchModel(net, bounds=(0, 1)).ask(single.x.double())  # in single precision, rounding moves a search
    found = []
    for pieces in ([slice(0, 6)], [slice(k, k + 1) for k in range(6)]):
        searches = [Search(Rows.of(cases, subsets, piece), norm_of(p)) for piece in pieces]
        for search in searches:
            many_starts(search, 20, 10, 0)
            refine(search.part(torch.isfinite(search.radius)), 3, 20)
        found.append(torch.cat([search.radius for search in searches]))
    assert torch.isfinite(found[0]).any()
    assert torch.allclose(found[0], found[1], rtol=1e-6, atol=0)


def test_many_free_coordinates_cost_no_many_starts() -> None:
    generator = torch.Generator().manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(40, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).eval()
    cases = hf.TorchModel(net, bounds=(0, 1)).ask(torch.rand(1, 40, generator=generator))
    free = torch.ones(1, 1, 40, dtype=torch.bool)
    few = free.clone()
    few[..., 8:] = False
    assert hf.Judge.quick()(cases, free).queries.gradient <= 600 < hf.Judge.quick()(cases, few).queries.gradient
