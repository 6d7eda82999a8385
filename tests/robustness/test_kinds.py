"""Attacks, certificates and exact methods: what each may claim, and what subsets of a case learn from each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.robustness import Moves, Rows, Solution


def axis_cases(label: int = 0, copies: int = 1) -> hf.Cases:
    """Class 0 while x0 + x1 < 1, in the box [0, 1]^3, asked at (0.25, 0.25, 0.25)."""
    net = nn.Linear(3, 2).double().eval().requires_grad_(False)
    net.weight.copy_(torch.tensor([[0.0, 0, 0], [1, 1, 0]]))
    net.bias.copy_(torch.tensor([1.0, 0]))
    return hf.TorchModel(net, bounds=(0, 1)).ask(torch.full((copies, 3), 0.25).double(), label=label)


def subsets(*names: str) -> Tensor:
    """Subsets of the coordinates 0, 1 and 2, by the digits in their names."""
    return torch.tensor([[[str(i) in name for i in range(3)] for name in names]])


def key(free: Tensor) -> str:
    return "".join(str(i) for i in free.nonzero()[:, 0].tolist())


@dataclass(frozen=True)
class Scripted(hf.Exact):
    """An exact method that returns moves and proofs by the free coordinates of a row."""

    script: Callable[[str], tuple[list[float], bool]]
    p: float = 2

    def solve(self, rows: Rows) -> Solution:
        moves, proven = zip(*(self.script(key(free)) for free in rows.free), strict=True)
        return Solution(torch.tensor(moves).to(rows.x), torch.tensor(proven))


@dataclass(frozen=True)
class Bound(hf.Certificate):
    """A certificate that returns bounds by the free coordinates of a row."""

    script: Callable[[str], float]
    p: float = 2

    def certify(self, rows: Rows) -> Tensor:
        return torch.tensor([self.script(key(free)) for free in rows.free])


ZERO, NEAR, FAR, OFF = [0.0, 0, 0], [0.26, 0.26, 0], [0.7, 0.7, 0], [0.26, 0.26, 0.5]


@pytest.mark.parametrize(
    ("move", "proven", "radius", "holds"),
    [
        (NEAR, True, 0.26 * math.sqrt(2), True),
        (NEAR, False, 0.26 * math.sqrt(2), False),  # an upper bound
        (ZERO, True, math.inf, True),  # unreachable
        (ZERO, False, math.inf, False),  # censored
        ([0.1, 0.1, 0], True, math.inf, False),  # the move does not change the decision: its proof is worthless
        (OFF, True, 0.26 * math.sqrt(2), False),  # the proof is of a move off the mask
        ([math.nan, 0, 0], True, math.inf, False),
    ],
)
def test_a_proof_counts_only_if_its_move_does(move: list[float], proven: bool, radius: float, holds: bool) -> None:
    radii = Scripted(lambda _: (move, proven))(axis_cases(), subsets("01"))
    assert radii.radius.item() == pytest.approx(radius)
    assert bool(radii.proven) is holds
    assert bool(radii.censored) is (math.isinf(radius) and not holds)
    assert bool(radii.unreachable) is (math.isinf(radius) and holds)
    assert bool(radii.witnessed) is math.isfinite(radius)
    assert radii.bound == "exact"
    assert bool(radii.notes) is not holds


def test_an_exact_method_shares_witnesses_with_supersets() -> None:
    radii = Scripted(lambda free: (NEAR, True) if free == "01" else (FAR, False))(axis_cases(), subsets("01", "012"))
    assert radii.radius.tolist() == [pytest.approx([0.26 * math.sqrt(2)] * 2)]
    assert radii.proven.tolist() == [[True, False]]
    assert torch.equal(radii.witness[0, 0], radii.witness[0, 1])
    assert "1 of 2 rows were not settled" in radii.notes[0]


def test_an_unreachable_superset_proves_its_subsets_unreachable() -> None:
    radii = Scripted(lambda free: (ZERO, free == "12"))(axis_cases(), subsets("12", "1", "2", "01"))
    assert radii.unreachable.tolist() == [[True, True, True, False]]
    assert radii.censored.tolist() == [[False, False, False, True]]


def test_a_radius_no_larger_than_a_proven_one_of_a_superset_is_proven() -> None:
    radii = Scripted(lambda free: (NEAR, free == "012"))(axis_cases(), subsets("01", "012"))
    assert radii.proven.tolist() == [[True, True]]
    looser = Scripted(lambda free: (NEAR, True) if free == "012" else (FAR, False))(axis_cases(), subsets("01", "012"))
    assert looser.proven.tolist() == [[False, True]]


@pytest.mark.parametrize("claim", [ZERO, FAR])
def test_a_closer_witness_refutes_a_proof(claim: list[float]) -> None:
    radii = Scripted(lambda free: (claim, True) if free == "012" else (NEAR, False))(axis_cases(), subsets("01", "012"))
    assert radii.proven.tolist() == [[False, False]]
    assert radii.radius.tolist() == [pytest.approx([0.26 * math.sqrt(2)] * 2)]


def test_what_needs_no_proof_is_proven() -> None:
    unsettled = Scripted(lambda _: (ZERO, False))
    assert bool(unsettled(axis_cases(), subsets("")).unreachable)
    changed = unsettled(axis_cases(label=1), subsets("01"))
    assert (changed.radius.item(), bool(changed.proven)) == (0, True)


def test_a_certificate_has_bounds_and_no_witness() -> None:
    cases = axis_cases()
    radii = Bound(lambda _: 0.2)(cases, subsets("01", "2"))
    assert radii.bound == "lower"
    assert radii.radius.tolist() == [pytest.approx([0.2, 0.2])]
    assert bool(radii.proven.all())
    assert not bool(radii.witnessed.any() | radii.censored.any())
    assert torch.equal(radii.witness, cases.x[:, None].expand_as(radii.witness))
    assert radii.radius.dtype == cases.x.dtype
    start = cases.x[:, None]
    assert torch.equal(Bound(lambda _: 0.2)(cases, subsets("01", "2"), start=start).radius, radii.radius)


def test_a_lower_bound_holds_for_every_subset() -> None:
    script = {"012": 0.3, "01": 0.1, "0": 0.2, "2": math.inf, "12": 0.1}
    radii = Bound(lambda free: script[free])(axis_cases(), subsets("012", "01", "0", "2", "12"))
    assert radii.radius.tolist() == [pytest.approx([0.3, 0.3, 0.3, math.inf, 0.3])]
    assert radii.unreachable.tolist() == [[False, False, False, True, False]]
    alone = Bound(lambda free: script[free]).radius(axis_cases(), subsets("012", "01", "0", "2", "12"))
    assert torch.equal(alone, radii.radius)


def test_lower_bounds_are_not_shared_between_cases() -> None:
    masks = subsets("012", "01").expand(2, 2, 3)
    radii = Bound(lambda free: {"012": 0.2, "01": 0.3}[free])(axis_cases(copies=2), masks)
    assert radii.radius.tolist() == [pytest.approx([0.2, 0.3])] * 2


@pytest.mark.parametrize("claim", [math.nan, -1.0])
def test_a_claim_that_is_no_bound_counts_as_zero(claim: float) -> None:
    assert Bound(lambda _: claim)(axis_cases(), subsets("01")).radius.item() == 0


def test_a_certificate_knows_what_needs_no_proof() -> None:
    assert Bound(lambda _: 0.1)(axis_cases(), subsets("")).radius.item() == math.inf
    assert Bound(lambda _: 0.1)(axis_cases(label=1), subsets("01", "")).radius.tolist() == [[0, 0]]


def test_an_attack_proves_nothing() -> None:
    radii = hf.MinNorm(steps=10)(axis_cases(), subsets("01", "2", ""))
    assert not bool(radii.proven.any())
    assert radii.censored.tolist() == [[False, True, True]]


@dataclass(frozen=True)
class Misshapen(hf.Attack):
    p: float = 2

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        return Moves(rows.x[:, :2])


def test_results_of_another_shape_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match=r"search must return a tensor of shape \(1, 3\), got \(1, 2\)"):
        Misshapen()(axis_cases(), subsets("01"))
    with pytest.raises(hf.HoldfastError, match="solve must return"):
        Scripted(lambda _: ([0.0], True))(axis_cases(), subsets("01"))


def test_the_exact_method_of_linear_models_tells_unreachable_from_censored() -> None:
    masks = subsets("01", "0", "2", "")
    radii = hf.ExactLinear()(axis_cases(), masks)
    assert bool(radii.proven.all())
    assert radii.unreachable.tolist() == [[False, False, True, True]]
    assert radii.notes == ()
    small = axis_cases().model.ask(torch.tensor([[0.0, 0.0, 0.5]]))
    assert hf.ExactLinear()(small, masks).unreachable.tolist() == [[False, True, True, True]], "the box is too small"


@dataclass(frozen=True)
class _Contradiction(hf.Exact):
    """A method whose lower bound is refuted by its own witness."""

    requires: ClassVar[hf.Access] = hf.Access.DECISIONS
    p: float = 2

    def solve(self, rows: Rows) -> Solution:
        delta = torch.zeros_like(rows.x)
        delta[:, 0] = 3.0
        return Solution(delta, torch.zeros(len(rows), dtype=torch.bool), torch.full((len(rows),), 5.0).to(rows.x))


def test_a_lower_bound_that_a_witness_refutes_proves_nothing() -> None:
    model = hf.FunctionModel(lambda rows: (rows[:, 0] > 0.5).astype(int), bounds=(-10, 10), classes=2)
    radii = _Contradiction()(model.ask(torch.zeros(1, 1)), torch.ones(1, 1, 1, dtype=torch.bool))
    assert float(radii.radius) == 3
    assert float(radii.lower) == 0
    assert not bool(radii.proven)
