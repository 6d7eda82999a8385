"""One explanation for a reader: what it says of upper bounds, lower bounds and proofs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.experiment.packing import pack_explanations
from holdfast.explaining import explain_cases
from holdfast.explanation import HELD, MOVED, Explanation
from holdfast.modalities.modality import radius_facts
from holdfast.robustness import Certificate, Exact, Rows, Solution
from toys import small_net


@dataclass(frozen=True)
class Constant(Certificate):
    """Claims the same lower bound everywhere."""

    p: float = 2
    value: float = 0.01

    def certify(self, rows: Rows) -> Tensor:
        return torch.full_like(rows.x[:, 0], self.value)


@dataclass(frozen=True)
class TooFar(Exact):
    """Claims as proven a point outside the box, which is cut to the box."""

    p: float = 2

    def solve(self, rows: Rows) -> Solution:
        return Solution(torch.full_like(rows.x, 50.0), torch.ones(len(rows), dtype=torch.bool))


NUMBER: Any = 3  # where names are expected


def _cases() -> hf.Cases:
    model = hf.TorchModel(small_net(), (0, 1), classes=["a", "b", "c", "d"])
    return model.ask(torch.rand(2, 12, generator=torch.Generator().manual_seed(0)).double())


def _explained(judge: hf.Robustness) -> Explanation:
    return explain_cases(_cases(), "grad", hf.Grad(), judge, 0.25)[0]


def test_an_attack_names_the_class_that_it_reaches() -> None:
    cases = _cases()
    one = _explained(hf.MinNorm())
    assert one.relevant == tuple(hf.Grad()(cases).order[0, :3].tolist())
    assert int(one.relevant_mask.sum()) == 3
    assert one.heat.argmax() == one.order[0]
    assert one.question == f"why {one.classes[one.label]}?"
    assert one.moves is not None
    assert not bool(one.moves[HELD][list(one.relevant)].any())
    for which in (MOVED, HELD):
        new = one.new_class[which]
        assert one.change_text(which) == f"changes to {one.classes[new]} ({one.new_probability[which]:.0%})"
        assert float(one.moves[which].norm()) == pytest.approx(one.radius[which])


def test_a_lower_bound_is_shown_as_one() -> None:
    one = _explained(Constant())
    assert one.radius_text(MOVED) == "at least 0.01"
    assert one.change_text(MOVED) == "no smaller change exists"
    assert math.isnan(one.new_probability[MOVED])
    assert radius_facts(one)[0] == ("only these move", "at least 0.01")
    assert pack_explanations([one], moves=False)["proven"].tolist() == [[True, True]]


def test_what_is_proven_unreachable_is_not_censored() -> None:
    assert _explained(Constant(value=math.inf)).radius_text(HELD) == "unreachable (proven)"


def test_nothing_is_proven_by_a_point_outside_the_box() -> None:
    radii = TooFar()(_cases(), torch.ones(2, 1, 12, dtype=torch.bool))
    assert not bool(radii.proven[~radii.censored].any())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: hf.TorchModel(small_net(), classes=NUMBER), "classes must be names of all classes"),
        (lambda: hf.TorchModel(small_net(), classes="cat"), "classes must be names of all classes"),
        (lambda: _cases().model.ask(torch.rand(1, 5)), r"failed in its forward pass"),
        (lambda: _cases().model.ask(torch.rand(1, 12), features=["a"]), "feature ids must be integers"),
        (lambda: hf.MinNorm()(_cases(), "a"), r"subsets must be bool \[B, K, d\]"),
        (lambda: hf.Random()(_cases()[5:]), "there is no case to work on"),
        (lambda: hf.FunctionModel(lambda x: 1 / 0).ask(torch.rand(1, 2)), "the model failed in its forward pass"),
        (
            lambda: hf.FunctionModel(lambda x: ["a"] * len(x)).ask(torch.rand(1, 2)),
            "the function returns texts: give the names of all classes and decisions=True",
        ),
        (lambda: hf.FunctionModel(lambda x: x[:, 0]).ask(torch.rand(1, 2)), "the function must return scores"),
        (lambda: hf.Counterfactual(Constant()), "Counterfactual needs witnesses"),
        (
            lambda: hf.GreedyAS(hf.RobustnessRest(Constant()))(_cases()),
            "BoundaryNormals searches for changes by itself",
        ),
    ],
)
def test_mistakes_are_one_sentence(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(hf.HoldfastError, match=words):
        call()


def test_cases_are_chosen_by_number_list_and_array() -> None:
    cases = _cases()
    for which in (1, torch.tensor(1), [1], torch.tensor([1]), torch.tensor([False, True])):
        assert torch.equal(cases[which].x, cases.x[1:])


def test_a_constant_network_explains_nothing() -> None:
    net = nn.Linear(3, 2).eval()
    net.weight.data.zero_()
    with pytest.raises(hf.HoldfastError, match="no change of the decision was found"):
        hf.GreedyAS()(hf.TorchModel(net, (0, 1)).ask(torch.rand(1, 3)))
