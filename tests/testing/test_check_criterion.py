"""``check_criterion`` accepts a correct criterion and says which law a wrong one breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

import holdfast as hf
from holdfast.testing import check_criterion


@dataclass(frozen=True)
class Flips(hf.Criterion):
    """Correct: the criterion that the documentation of the interface shows."""

    higher_is_better: ClassVar[bool] = True
    requires: ClassVar[hf.Access] = hf.Access.DECISIONS

    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        case = torch.arange(len(cases)).repeat_interleave(relevant.shape[1])
        rows = torch.where(cases.features.expand(relevant.flatten(0, 1), case), 0, cases.x[case])
        changed = cases.model(rows).argmax(1) != cases.label[case]
        return changed.view(relevant.shape[:2]).to(cases.x)


class CountsFeatures(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        return relevant.sum(2).to(cases.x)


class WeighsTheFirstFeature(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        return super().measure(cases, relevant, progress) + relevant[..., 0]


class DependsOnTheBatch(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        values = hf.Insertion(0.0).measure(cases, relevant, None)
        return values - values.mean()


class DependsOnTheBatchSize(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        return super().measure(cases, relevant, progress) + (cases.model.chunk(cases.x) < 10)


class DependsOnTheOrderOfSubsets(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        return super().measure(cases, relevant, progress).cumsum(1) + torch.arange(relevant.shape[1])


class Draws(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        return torch.rand(relevant.shape[:2]).double()


class OneValueACase(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        return super().measure(cases, relevant, progress).mean(1)


class GivesNaN(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        return super().measure(cases, relevant, progress) / 0


class ExceedsItsCeiling(Flips):
    def ceiling(self, cases: hf.Cases, relevant: Tensor) -> Tensor:
        return torch.full(relevant.shape[:2], -1.0)


class NeedsMoreThanItSays(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        return hf.RobustnessRest(hf.MinNorm(steps=5))(cases, relevant)


class AcceptsEverything(Flips):
    def __call__(self, cases: hf.Cases, relevant: Any, *, progress: Any = None) -> Tensor:  # type: ignore[misc]  # wrong on purpose
        return torch.zeros(torch.as_tensor(relevant).shape[:2], dtype=cases.x.dtype)


class EndsEarly(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Tensor:
        if progress is not None:
            progress(1, 2)
        return super().measure(cases, relevant, progress)


class NoTensor(Flips):
    def measure(self, cases: hf.Cases, relevant: Tensor, progress: Any) -> Any:
        return super().measure(cases, relevant, progress).tolist()


class WithoutDirection(Flips):
    higher_is_better: ClassVar[Any] = None


def test_a_correct_criterion_passes() -> None:
    check_criterion(Flips(), rtol=0)


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (CountsFeatures, "must ignore a feature that the model does not read"),
        (WeighsTheFirstFeature, "must not depend on the order of the features"),
        (DependsOnTheBatch, "must measure a case alone as in a batch"),
        (DependsOnTheBatchSize, "must not depend on the model's batch size"),
        (DependsOnTheOrderOfSubsets, "must not depend on the order of the subsets"),
        (Draws, "must not draw from or seed torch's global generator"),
        (OneValueACase, r"must return torch.float64 of shape \(5, 4\), got torch.float64 of shape \(5,\)"),
        (GivesNaN, "must not return NaN"),
        (ExceedsItsCeiling, "must not exceed its own ceiling"),
        (NeedsMoreThanItSays, "must measure ordinary subsets, and raised: RobustnessRest needs gradients"),
        (AcceptsEverything, r"must refuse subsets that are torch.bool of shape \(5, 4, 5\)"),
        (EndsEarly, r"must report progress that rises to \(total, total\), got \[\(1, 2\)\]"),
        (NoTensor, "must return a tensor, got list"),
        (WithoutDirection, "must state whether higher_is_better"),
    ],
)
def test_a_wrong_criterion_is_caught(kind: type[Flips], law: str) -> None:
    with pytest.raises(AssertionError, match=f"^{kind.__name__} .*{law}") as caught:
        check_criterion(kind())
    assert "\n" not in str(caught.value)


def test_what_is_no_criterion_is_caught() -> None:
    with pytest.raises(AssertionError, match=r"MinNorm must be an instance of holdfast\.Criterion"):
        check_criterion(hf.MinNorm())  # type: ignore[arg-type]  # wrong on purpose
