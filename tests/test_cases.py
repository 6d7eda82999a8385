from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.cases import ANY
from toys import small_net

X = torch.full((3, 12), 0.5, dtype=torch.float64)


def _model() -> hf.TorchModel:
    return hf.TorchModel(small_net(), bounds=(0, 1))


def test_defaults_are_the_prediction_and_no_target() -> None:
    model = _model()
    cases = model.ask(X)
    assert torch.equal(cases.label, model(X).argmax(1))
    assert cases.target.tolist() == [ANY] * 3
    assert cases.features.count == 12
    assert (len(cases[:2]), len(cases[1])) == (2, 1)


def test_numpy_and_single_classes_are_taken() -> None:
    cases = _model().ask(np.full((3, 12), 0.5), label=1, target=np.array([0, 2, 3]))
    assert cases.label.tolist() == [1, 1, 1]
    assert cases.target.tolist() == [0, 2, 3]


def test_sub_batches_keep_their_own_features() -> None:
    ids = torch.stack([torch.arange(12) // size for size in (1, 2, 3)])
    cases = _model().ask(X, features=ids)
    assert torch.equal(cases[torch.tensor([2])].features.ids, ids[2:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": X.index_fill(1, torch.tensor([0]), float("nan"))}, "NaN or infinity"),
        ({"x": X.index_fill(1, torch.tensor([0]), float("inf"))}, "NaN or infinity"),
        ({"x": X + 1}, "leaves the model's bounds"),
        ({"x": X[0]}, "batch"),
        ({"x": X[:0]}, "batch"),
        ({"x": X.long()}, "floating point"),
        ({"x": X[:, :5]}, "failed in its forward pass"),
        ({"label": 4}, "class from 0 to 3"),
        ({"label": -1}, "class from 0 to 3"),
        ({"label": [0, 1]}, "one a case"),
        ({"label": 0.5}, "class numbers or names, got torch.float32"),
        ({"target": 9}, "class from 0 to 3"),
        ({"label": [0, 1, 2], "target": [1, 2, 2]}, "its own label 2"),
        ({"features": torch.arange(5)}, "do not fit"),
        ({"features": "patches"}, "features must be pixels, patches:N or superpixels:N, got 'patches'"),
        ({"features": "patches:4"}, "expected an image shape"),
        ({"label": True}, "class numbers or names"),
        ({"features": torch.rand(12)}, "integers"),
    ],
)
def test_bad_questions_get_one_clear_error(arguments: dict[str, Any], message: str) -> None:
    model = _model()
    with pytest.raises(hf.HoldfastError, match=message) as caught:
        model.ask(**{"x": X, **arguments})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("subsets", "message"),
    [
        (torch.ones(3, 2, 11, dtype=torch.bool), r"\[3, K, 12\]"),
        (torch.ones(2, 2, 12, dtype=torch.bool), r"\[3, K, 12\]"),
        (torch.ones(12, dtype=torch.bool), r"\[3, K, 12\]"),
        (torch.ones(3, 0, 12, dtype=torch.bool), r"\[3, K, 12\]"),
        (torch.ones(3, 2, 12), "bool"),
    ],
)
def test_bad_subsets_start_nothing(subsets: torch.Tensor, message: str) -> None:
    model = _model()
    cases = model.ask(X)
    before = model.queries
    with pytest.raises(hf.HoldfastError, match=message):
        hf.MinNorm()(cases, subsets)
    assert model.queries == before


def test_one_subset_a_case_needs_no_axis_of_its_own() -> None:
    cases = _model().ask(X)
    assert torch.equal(cases.subsets(np.ones((3, 12), bool)), torch.ones(3, 1, 12, dtype=torch.bool))


def test_bounds_that_do_not_fit_the_input_are_refused() -> None:
    for shape in ((5,), (2, 12)):
        model = hf.TorchModel(small_net(), bounds=(torch.zeros(shape), torch.ones(shape)))
        with pytest.raises(hf.HoldfastError, match="do not fit"):
            model.ask(X)


def test_image_features_are_made_from_text() -> None:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2)).eval()
    cases = hf.TorchModel(net).ask(np.zeros((2, 1, 8, 8), np.float32), label=np.array([0, 1]), features="patches:4")
    assert cases.features.count == 4
    assert cases.label.tolist() == [0, 1]


@pytest.mark.parametrize("method", [hf.GreedyAS(), hf.Grad(), hf.Anchor()])
def test_inputs_are_not_cases(method: hf.Explainer) -> None:
    with pytest.raises(hf.HoldfastError, match=r"expected cases, made by model\.ask\(x\), got Tensor"):
        method(X)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(hf.HoldfastError, match=r"expected cases, made by model\.ask\(x\), got ndarray"):
        hf.Insertion()(X.numpy(), np.ones((3, 1, 12), bool))  # type: ignore[arg-type]  # wrong on purpose
