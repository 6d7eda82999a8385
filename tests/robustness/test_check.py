"""Wrong methods are handled where that is possible, and caught by the laws where it is not: each law can fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.cases import ANY
from holdfast.robustness import Moves, Rows, Solution
from holdfast.testing import check_robustness
from robustness.lipschitz import Lipschitz

Tamper = Callable[[hf.Cases, hf.Radii], hf.Radii]


@dataclass(frozen=True)
class Tampered(hf.MinNorm):
    """An attack whose radii are falsified after they were measured."""

    tamper: Tamper = lambda cases, radii: radii
    steps: int = 20

    def __call__(self, cases: hf.Cases, *arguments: Any, **named: Any) -> hf.Radii:  # type: ignore[misc]  # it is final
        return self.tamper(cases, super().__call__(cases, *arguments, **named))


def _column(cases: hf.Cases, radii: hf.Radii) -> hf.Radii:
    """Give the full set the witness of the smallest subset that has one, which is farther away."""
    source = radii.witnessed.int().argmax(1)
    case = torch.arange(len(cases))
    radius, witness, new_class = radii.radius.clone(), radii.witness.clone(), radii.new_class.clone()
    for values in (radius, witness, new_class):
        values[:, -1] = values[case, source]
    return replace(radii, radius=radius, witness=witness, new_class=new_class)


def _outside(cases: hf.Cases, radii: hf.Radii) -> hf.Radii:
    """Move witnesses of the full set beyond the box."""
    if cases.model.low is None:
        return radii
    witness = radii.witness.clone()
    witness[:, -1] = cases.x + 100 * (witness[:, -1] - cases.x).sign()
    return replace(radii, witness=witness)


def _off_mask(cases: hf.Cases, radii: hf.Radii) -> hf.Radii:
    return replace(radii, witness=torch.where(radii.witnessed[..., None], radii.witness + 1e-9, radii.witness))


def _claims_x(cases: hf.Cases, radii: hf.Radii) -> hf.Radii:
    witness = cases.x[:, None].expand_as(radii.witness)
    return replace(radii, witness=witness, radius=torch.where(radii.witnessed, 0, radii.radius))


def _if_targeted(tamper: Tamper) -> Tamper:
    return lambda cases, radii: tamper(cases, radii) if bool((cases.target != ANY).all()) else radii


TAMPERS: dict[str, Tamper] = {
    "kind": lambda cases, radii: replace(radii, bound="lower"),
    "name": lambda cases, radii: replace(radii, method="MinNorm()"),
    "numbers": lambda cases, radii: replace(radii, radius=-radii.radius),
    "proof": lambda cases, radii: replace(radii, proven=torch.ones_like(radii.proven)),
    "no witness": lambda cases, radii: replace(radii, new_class=torch.full_like(radii.new_class, -1)),
    "mask": _off_mask,
    "box": _outside,
    "decision": _claims_x,
    "class": lambda cases, radii: replace(radii, new_class=torch.where(radii.witnessed, cases.label[:, None], -1)),
    "length": lambda cases, radii: replace(radii, radius=0.9 * radii.radius),
    "monotone": _column,
    "cost": lambda cases, radii: replace(radii, queries=hf.Queries(0, 1)),
    "batch": lambda cases, radii: replace(radii, radius=(1 + 1e-4 * (len(cases) == 1)) * radii.radius),
    "empty subset": lambda cases, radii: replace(radii, proven=torch.isinf(radii.radius).all() | radii.proven),
    "changed label": lambda cases, radii: replace(
        radii, radius=radii.radius + float((radii.radius == 0).all()) * torch.ones(())
    ),
}


def test_an_infinite_radius_has_no_witness() -> None:
    def infinite(cases: hf.Cases, radii: hf.Radii) -> hf.Radii:
        return replace(radii, radius=torch.full_like(radii.radius, math.inf))

    with pytest.raises(AssertionError, match="breaks the law of 'no witness': an infinite radius has a new class"):
        check_robustness(Tampered(tamper=infinite))


@dataclass(frozen=True)
class Witnessed(Lipschitz):
    """A certificate that borrows witnesses."""

    def __call__(self, cases: hf.Cases, *arguments: Any, **named: Any) -> hf.Radii:  # type: ignore[misc]  # it is final
        radii, attack = super().__call__(cases, *arguments, **named), hf.MinNorm(steps=20)(cases, *arguments)
        return replace(radii, witness=attack.witness, new_class=attack.new_class)


def test_a_certificate_has_no_witness() -> None:
    with pytest.raises(AssertionError, match="breaks the law of 'no witness': a certificate has witnesses"):
        check_robustness(Witnessed())


@pytest.mark.parametrize("law", TAMPERS)
def test_each_law_can_fail(law: str) -> None:
    with pytest.raises(AssertionError, match=f"^Tampered.* breaks the law of '{law}': [^.]*\\.$"):
        check_robustness(Tampered(tamper=TAMPERS[law]))


def test_untampered_radii_pass() -> None:
    check_robustness(Tampered())


@dataclass(frozen=True)
class Wrong(hf.Attack):
    """An attack that proposes what ``act`` returns, and no move where the decision has changed already."""

    act: Callable[[Rows], Tensor]
    p: float = 2

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        changed = rows.changed(rows.model(rows.points(torch.zeros_like(rows.x))))
        return Moves(torch.where(changed[:, None], 0, self.act(rows)))


def test_a_move_off_the_mask_is_cut_to_the_mask() -> None:
    """The base handles it: such an attack gives true radii, if large ones."""
    check_robustness(Wrong(lambda rows: torch.full_like(rows.x, -50.0)))


def test_a_move_that_changes_nothing_gives_no_radius() -> None:
    with pytest.raises(AssertionError, match="breaks the law of 'informative': it finds and proves nothing"):
        check_robustness(Wrong(lambda rows: torch.full_like(rows.x, 1e-9)))


def _reseeds(rows: Rows) -> Tensor:
    torch.manual_seed(0)
    return 20 * torch.randn(rows.x.shape[1]).to(rows.x).expand_as(rows.x)


def _meddles(rows: Rows) -> Tensor:
    model = rows.model
    assert isinstance(model, hf.TorchModel)
    for layer in model.module.modules():
        if isinstance(layer, nn.Linear):
            layer.bias.add_(1e-13)
    return torch.full_like(rows.x, -50.0)


@pytest.mark.parametrize(
    ("act", "law"),
    [
        (lambda rows: 50 * torch.randn_like(rows.x), "determinism"),
        (_reseeds, "global state"),
        (_meddles, "model"),
    ],
)
def test_an_attack_leaves_the_rest_of_the_program_alone(act: Callable[[Rows], Tensor], law: str) -> None:
    with torch.random.fork_rng(devices=[]), pytest.raises(AssertionError, match=f"breaks the law of '{law}'"):
        check_robustness(Wrong(act))


@dataclass(frozen=True)
class OtherRadius(hf.MinNorm):
    def radius(self, cases: hf.Cases, *arguments: Any, **named: Any) -> Tensor:  # type: ignore[misc]  # it is final
        return 2 * super().radius(cases, *arguments, **named)


def test_radii_alone_must_agree() -> None:
    with pytest.raises(AssertionError, match="breaks the law of 'radius alone'"):
        check_robustness(OtherRadius(steps=20))


def test_an_attack_must_see_that_a_label_is_not_the_decision() -> None:
    @dataclass(frozen=True)
    class Blind(Wrong):
        def search(self, rows: Rows, start: Tensor | None) -> Moves:
            return Moves(self.act(rows))

    with pytest.raises(AssertionError, match="breaks the law of 'changed label'"):
        check_robustness(Blind(lambda rows: torch.full_like(rows.x, -50.0)))


def test_a_witness_must_have_the_class_of_the_target() -> None:
    def elsewhere(cases: hf.Cases, radii: hf.Radii) -> hf.Radii:
        free = cases.model.ask(cases.x, features=cases.features)
        return hf.MinNorm(steps=20)(
            free,
            torch.ones_like(radii.radius[..., None], dtype=torch.bool).expand(
                *radii.radius.shape, cases.features.count
            ),
        )

    with pytest.raises(AssertionError, match="breaks the law of 'target'"):
        check_robustness(Tampered(tamper=_if_targeted(elsewhere)))


@pytest.mark.parametrize("factor", [1.001, 10.0, math.inf])
def test_a_certificate_that_claims_too_much_is_caught(factor: float) -> None:
    with pytest.raises(AssertionError, match=r"^Lipschitz.* breaks the law of 'bound': a proven radius is above"):
        check_robustness(Lipschitz(factor))


@dataclass(frozen=True)
class WrongForTargets(Lipschitz):
    def certify(self, rows: Rows) -> Tensor:
        return torch.where(rows.target == ANY, super().certify(rows), math.inf)


def test_a_certificate_that_is_wrong_for_targets_is_caught() -> None:
    with pytest.raises(AssertionError, match=r"'bound': a proven radius is above a known one on .* with a target"):
        check_robustness(WrongForTargets())


def test_a_certificate_that_proves_nothing_is_caught() -> None:
    @dataclass(frozen=True)
    class Nothing(hf.Certificate):
        p: float = 2

        def certify(self, rows: Rows) -> Tensor:
            return torch.zeros_like(rows.x[:, 0])

    with pytest.raises(AssertionError, match="'informative': it finds and proves nothing"):
        check_robustness(Nothing())


@dataclass(frozen=True)
class ClaimsProof(hf.Exact):
    """Calls every move of an attack the smallest."""

    steps: int = 4
    factor: float = 1.0
    p: float = 2

    def solve(self, rows: Rows) -> Solution:
        delta = self.factor * hf.MinNorm(self.p, self.steps).search(rows, None).delta
        return Solution(delta, torch.ones(len(rows), dtype=torch.bool))


def test_an_exact_method_that_is_not_is_caught() -> None:
    with pytest.raises(AssertionError, match="breaks the law of 'bound': a proven radius is above"):
        check_robustness(ClaimsProof(factor=1.1))


def test_an_exact_method_that_settles_nothing_is_caught() -> None:
    @dataclass(frozen=True)
    class Unsettled(ClaimsProof):
        def solve(self, rows: Rows) -> Solution:
            return Solution(torch.zeros_like(rows.x), torch.zeros(len(rows), dtype=torch.bool))

    with pytest.raises(AssertionError, match="breaks the law of 'informative'"):
        check_robustness(Unsettled())


def test_what_is_no_method_is_said_so() -> None:
    with pytest.raises(AssertionError, match="breaks the law of 'kind'"):
        check_robustness("MinNorm")  # type: ignore[arg-type]  # wrong on purpose


def test_a_method_may_refuse_models_but_not_all_of_them() -> None:
    @dataclass(frozen=True)
    class Refuses(hf.MinNorm):
        def search(self, rows: Rows, start: Tensor | None) -> Moves:
            if rows.x.shape[1] != 5:
                raise hf.HoldfastError("five inputs are needed.")
            return super().search(rows, start)

    with pytest.raises(AssertionError, match="it refuses every question: pass cases that it accepts"):
        check_robustness(Refuses(steps=20))
    torch.manual_seed(0)
    model = hf.TorchModel(nn.Linear(5, 3).eval().requires_grad_(False), bounds=(0, 1))
    check_robustness(Refuses(steps=20), [model.ask(torch.rand(3, 5))])
