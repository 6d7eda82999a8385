"""Attributions in every usual form give the ranking of the same scores, and others are refused in one sentence."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import holdfast as hf
from holdfast.evaluation.attributions import ranking_of
from toys import small_net, tiny_photo_net

pd: Any = pytest.importorskip("pandas")
Explanation = namedtuple("Explanation", ["values", "base_values", "data"])  # as SHAP's


Columned = namedtuple("Columned", ["values", "columns"])


class _Failing:
    @property
    def values(self) -> None:
        raise RuntimeError("it is lost")


def _table(count: int = 5, names: Any = None, **question: Any) -> hf.Cases:
    model = hf.TorchModel(small_net(), (0, 1), classes=list("abcd"))
    x = torch.rand(count, 12, generator=torch.Generator().manual_seed(0))
    features = None if names is None else hf.Features.columns(12, names=names)
    return model.ask(x, features=features, **question)


def _images() -> hf.Cases:
    x = torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    return hf.TorchModel(tiny_photo_net(), (0, 1)).ask(x, features="patches:16")


def _drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2), dtype=torch.double)


def _order(given: Any, cases: hf.Cases) -> Tensor:
    return ranking_of(given, cases, "mine", 0).order


def _by_class(cases: hf.Cases, values: Tensor, place: int) -> Tensor:
    """Put values for the label of each case among noise for all other classes, along a new axis."""
    classes = len(cases.model.classes)
    every = torch.stack([_drawn(*values.shape) + 9 * number for number in range(classes)], -1)
    every[torch.arange(len(cases)), ..., cases.label] = values.double()
    return every.movedim(-1, place)


def test_forms_of_a_table_give_the_same_order() -> None:
    cases, scores = _table(), _drawn(5, 12)
    expected = hf.Ranking.by_score(cases, scores, ties=0).order
    every = _by_class(cases, scores, -1)
    first = every.movedim(-1, 0)
    forms = [
        scores.clone().requires_grad_(),
        scores.numpy(),
        scores.tolist(),
        list(scores),
        list(scores.numpy()),
        (scores,),
        pd.DataFrame(scores.numpy()),
        scores.float().half().double().mul(0).add(scores),
        Explanation(scores.numpy(), 0.0, None),
        every,
        every.numpy(),
        Explanation(every.numpy(), np.zeros((5, 4)), None),
        list(first.numpy()),
        first,
    ]
    for number, form in enumerate(forms):
        assert torch.equal(_order(form, cases), expected), number


def test_forms_of_images_give_the_same_order() -> None:
    cases, scores = _images(), _drawn(3, 3, 64, 64)
    expected = hf.Ranking.by_score(cases, scores, ties=0).order
    every = _by_class(cases, scores, -1)
    forms: list[Any] = [scores, scores.sum(1), scores.sum(1, keepdim=True), scores.movedim(1, -1), every]
    forms += [list(every.movedim(-1, 0)), cases.features.pool(scores), _by_class(cases, scores.movedim(1, -1), -1)]
    forms += [_by_class(cases, scores.sum(1), -1), scores.sum(1, keepdim=True).movedim(1, -1)]
    for number, form in enumerate(forms):
        assert torch.equal(_order(form, cases), expected), number


def test_one_case_needs_no_batch_axis() -> None:
    cases, scores = _table(1), _drawn(1, 12)
    expected = _order(scores, cases)
    assert torch.equal(_order(scores[0], cases), expected)
    assert torch.equal(_order(_by_class(cases, scores, -1)[0], cases), expected)


def test_a_targeted_question_takes_the_difference_of_two_classes() -> None:
    free = _table()
    target = (free.label + 1) % 4
    cases, every = _table(target=target), _drawn(5, 12, 4)
    rows = torch.arange(5)
    expected = _order(every[rows, :, free.label] - every[rows, :, target], cases)
    assert torch.equal(_order(every, cases), expected)


def test_columns_of_a_data_frame_are_found_by_name() -> None:
    names, scores = [f"column {number}" for number in range(12)], _drawn(5, 12)
    cases, frame = _table(names=names), pd.DataFrame(scores.numpy(), columns=names)
    assert torch.equal(_order(frame[names[::-1]], cases), _order(scores, cases))
    assert torch.equal(_order(pd.DataFrame(scores.numpy()), cases), _order(scores, cases)), "numbers are no names"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.rename(columns={"column 3": "other"}), "no column 'column 3'"),
        (lambda frame: frame.drop(columns="column 0"), "no column 'column 0'"),
        (lambda frame: frame.assign(more=1.0), "got 13 columns"),
    ],
)
def test_columns_that_are_no_features_are_refused(change: Any, said: str) -> None:
    names = [f"column {number}" for number in range(12)]
    frame = change(pd.DataFrame(_drawn(5, 12).numpy(), columns=names))
    with pytest.raises(hf.HoldfastError, match=said):
        _order(frame, _table(names=names))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (_drawn(5, 11), r"attributions must be \[5, 12\], with or without a last axis of 4 classes, got \[5, 11\]"),
        (_drawn(4, 12), r"got \[4, 12\]"),
        (_drawn(5, 12, 3), r"got \[5, 12, 3\]"),
        (torch.tensor(3.0), r"got \[\]"),
        (_drawn(5, 12).fill_(torch.nan), "finite"),
        ([_drawn(5, 12), _drawn(5, 11)], r"one shape, got “\(5, 11\)” and “\(5, 12\)”"),
        ([[1.0, 2.0], [3.0]], "attributions must be"),
        (pd.DataFrame({"a": ["x"] * 5}), "attributions must be"),
        (_Failing(), "attributions cannot be read from _Failing: it is lost"),
        (Columned(np.zeros((5, 12)), 3), "attributions cannot be read from Columned: "),
        (object(), "attributions must be a tensor or an array"),
        (None, "attributions must be a tensor or an array"),
        ({"a": 1}, "attributions must be a tensor or an array"),
        (torch.empty(0), r"got \[0\]"),
        (_drawn(5, 12).to(torch.complex64), "got a complex tensor"),
    ],
)
def test_bad_attributions_are_one_sentence(given: Any, said: str) -> None:
    with pytest.raises(hf.HoldfastError, match=said) as error:
        ranking_of(given, _table(), "mine", 0)
    assert "\n" not in str(error.value)


def test_equal_scores_are_noted_and_their_order_is_drawn() -> None:
    cases = _table()
    scores = _drawn(5, 12)
    scores[1:3] = 0
    ranking = ranking_of(scores, cases, "mine", 0)
    assert ranking.notes == ("all features of 2 cases have the same score: the seed draws their order.",)
    assert not torch.equal(ranking.order[1], ranking_of(scores, cases, "mine", 1).order[1])
    assert torch.equal(ranking.order[0], ranking_of(scores, cases, "mine", 1).order[0])


def test_values_of_shap_for_the_second_of_two_classes_are_noted() -> None:
    model = hf.TorchModel(small_net(classes=2), (0, 1), classes=["no", "yes"])
    cases = model.ask(torch.rand(5, 12, generator=torch.Generator().manual_seed(0)), label=[0, 1, 0, 1, 1])
    [note] = ranking_of(Explanation(_drawn(5, 12), 0.0, None), cases, "shap", 0).notes
    assert "those of the 2 cases of class no by -1" in note
    assert ranking_of(Explanation(_drawn(5, 12, 2), 0.0, None), cases, "shap", 0).notes == ()
    assert ranking_of(_drawn(5, 12), cases, "mine", 0).notes == ()
    assert ranking_of(Explanation(_drawn(5, 12), 0.0, None), _table(), "shap", 0).notes == (), "four classes"


def test_whole_numbers_and_truth_values_are_taken() -> None:
    free = _table()
    cases, every = _table(target=(free.label + 1) % 4), torch.arange(5 * 12 * 4).reshape(5, 12, 4) % 7
    for kind in (torch.uint8, torch.int64, torch.bool):
        values = every.to(kind)
        assert torch.equal(_order(values, cases), _order(values.double(), cases)), kind
