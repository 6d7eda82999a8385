"""``check_explainer`` accepts a correct explainer and says which law a wrong one breaks."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

import holdfast as hf
from holdfast.models.torch import layers_of
from holdfast.ranking import features_of
from holdfast.testing import check_explainer


@dataclass(frozen=True)
class Brightness(hf.Attribution):
    """Correct: the explainer that the documentation of the interface shows."""

    absolute: bool = False
    seed: int = 0
    source: ClassVar[str] = "these tests"
    requires: ClassVar[hf.Access] = hf.Access.DECISIONS

    def attribute(self, cases: hf.Cases, progress: object = None) -> Tensor:
        return cases.features.pool(cases.x)


@dataclass(frozen=True)
class Wrong(hf.Explainer):
    """Correct as well; each subclass breaks one law."""

    source: ClassVar[str] = "these tests"
    requires: ClassVar[hf.Access] = hf.Access.DECISIONS

    def scores(self, cases: hf.Cases) -> Tensor:
        return cases.features.pool(cases.x)

    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        return hf.Ranking.by_score(cases, self.scores(cases), repr(self), ties=0)


class ForgetsAFeature(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        right = super().rank(cases)
        order = right.order.clone()
        order[:, -1] = order[:, 0]
        return hf.Ranking(order, right.scores, right.count, repr(self))


class HidesAFeature(Wrong):
    """Builds the ranking first and forgets a feature afterwards, where the ranking does not check."""

    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        ranking = super().rank(cases)
        ranking.order[:, -1] = ranking.order[:, 0]
        return ranking


class TooShort(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        return hf.Ranking(
            torch.arange(11).expand(len(cases), -1), torch.zeros(len(cases), 11), torch.full((len(cases),), 11)
        )


class TooFewCases(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        return super().rank(cases)[:1]


class NoRanking(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> Any:
        return super().rank(cases).order


class RisingScores(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        right = super().rank(cases)
        return hf.Ranking(right.order, -right.scores, right.count, repr(self))


class Anonymous(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        return hf.Ranking.by_score(cases, self.scores(cases))


class DependsOnTheBatch(Wrong):
    def scores(self, cases: hf.Cases) -> Tensor:
        return super().scores(cases) - super().scores(cases).mean(0)


class DrawsFromTorch(Wrong):
    def scores(self, cases: hf.Cases) -> Tensor:
        return torch.rand(len(cases), cases.features.count)


class DrawsFromNumpy(Wrong):
    def scores(self, cases: hf.Cases) -> Tensor:
        return torch.as_tensor(np.random.rand(len(cases), cases.features.count))


class DrawsFromPython(Wrong):
    def scores(self, cases: hf.Cases) -> Tensor:
        return super().scores(cases) * (random.random() - 0.5)


class SeedsTorch(Wrong):
    def scores(self, cases: hf.Cases) -> Tensor:
        torch.manual_seed(0)
        return super().scores(cases)


class PaddingFirst(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        right = super().rank(cases)
        order = torch.cat([right.order[:, 6:], right.order[:, :6]], 1)
        return hf.Ranking(order, torch.zeros_like(right.scores), right.count, repr(self))


class WrongCount(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        right = super().rank(cases)
        return hf.Ranking(right.order, right.scores, torch.full_like(right.count, 12), repr(self))


class RefusesTargets(Wrong):
    def scores(self, cases: hf.Cases) -> Tensor:
        if bool((cases.target >= 0).any()):
            raise hf.HoldfastError("no targets.")
        return super().scores(cases)


class ChangesTheModel(Wrong):
    requires: ClassVar[hf.Access] = hf.Access.LAYERS

    def scores(self, cases: hf.Cases) -> Tensor:
        for weight in layers_of(cases.model).module.parameters():
            weight.mul_(2)
        return super().scores(cases)


class LeavesAHook(Wrong):
    requires: ClassVar[hf.Access] = hf.Access.LAYERS

    def scores(self, cases: hf.Cases) -> Tensor:
        layers_of(cases.model).module.register_forward_hook(lambda *_: None)
        return super().scores(cases)


class NeedsMoreThanItSays(Wrong):
    def scores(self, cases: hf.Cases) -> Tensor:
        return hf.Grad().rank(cases).scores


class AcceptsWeakModels(Wrong):
    requires: ClassVar[hf.Access] = hf.Access.GRADIENTS

    def __call__(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:  # type: ignore[misc]  # wrong on purpose
        return self.rank(cases, progress)


class AcceptsTrainingMode(Wrong):
    def __call__(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:  # type: ignore[misc]  # wrong on purpose
        present = features_of(cases)
        scores = self.scores(cases).masked_fill(~present, -1)
        return hf.Ranking(scores.argsort(1, descending=True), scores, present.sum(1), repr(self))


class Understates(Wrong):
    def scores(self, cases: hf.Cases) -> Tensor:
        for _ in range(10):
            cases.model(cases.x)
        return super().scores(cases)

    def rows(self, features: int) -> int:
        return 1


class EndsEarly(Wrong):
    def rank(self, cases: hf.Cases, progress: Any = None) -> hf.Ranking:
        if progress is not None:
            progress(1, 2)
        return super().rank(cases)


class WithoutSource(Wrong):
    source: ClassVar[Any] = None


class WithoutEquality(Wrong):
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def test_a_correct_explainer_passes() -> None:
    check_explainer(Brightness())
    check_explainer(Wrong())


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (ForgetsAFeature, "must rank 5 ordinary cases, and raised: order must name each of the 12 features"),
        (HidesAFeature, "must name every feature once"),
        (TooShort, r"must rank every feature of every case, expected order and scores \(5, 12\), got \(5, 11\)"),
        (TooFewCases, r"expected order and scores \(5, 12\), got \(1, 12\)"),
        (NoRanking, "must return a holdfast.Ranking, got Tensor"),
        (RisingScores, "scores that never rise along the order"),
        (Anonymous, "must name itself"),
        (DependsOnTheBatch, "must rank a case alone as in a batch, and case 0 differs"),
        (DrawsFromTorch, "must not draw from or seed torch's global generator"),
        (DrawsFromNumpy, "must give the same order for the same seed"),
        (DrawsFromPython, "must give the same order for the same seed"),
        (SeedsTorch, "must not draw from or seed torch's global generator"),
        (PaddingFirst, r"must put features that a case does not have \(padding\) last"),
        (WrongCount, r"expected \[12, 5\], got \[12, 12\]"),
        (RefusesTargets, "must rank 5 ordinary cases, and raised: no targets"),
        (ChangesTheModel, "must leave the model unchanged"),
        (LeavesAHook, "must leave the model unchanged"),
        (NeedsMoreThanItSays, "must rank 2 ordinary cases, and raised: gradients are needed"),
        (AcceptsWeakModels, "needs gradients and must refuse a model that gives only decisions"),
        (AcceptsTrainingMode, "must refuse a module in training mode"),
        (Understates, "states 1 rows a case and uses 10"),
        (EndsEarly, r"must report progress that rises to \(total, total\), got \[\(1, 2\)\]"),
        (WithoutSource, "must name its source"),
        (WithoutEquality, "must equal its copy"),
    ],
)
def test_a_wrong_explainer_is_caught(kind: type[Wrong], law: str) -> None:
    with pytest.raises(AssertionError, match=f"^{kind.__name__} .*{law}") as caught:
        check_explainer(kind())
    assert "\n" not in str(caught.value)


def test_what_is_no_explainer_is_caught() -> None:
    with pytest.raises(AssertionError, match=r"MinNorm must be an instance of holdfast\.Explainer"):
        check_explainer(hf.MinNorm())  # type: ignore[arg-type]  # wrong on purpose


def test_the_check_leaves_the_global_generators_alone() -> None:
    torch.manual_seed(3)
    random.seed(3)
    before, python = torch.get_rng_state(), random.getstate()
    check_explainer(Brightness())
    assert torch.equal(before, torch.get_rng_state())
    assert python == random.getstate()
