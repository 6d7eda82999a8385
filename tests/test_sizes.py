from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.sizes import LARGEST, SIZES, read_size, read_sizes


def test_a_greedy_selection_chooses_as_many_features_as_the_largest_size_of_a_curve() -> None:
    assert max(SIZES) == LARGEST == 0.45
    for kind in (hf.GreedyAS, hf.Greedy):
        assert kind().budget == LARGEST
        assert "budget=0.45" in repr(kind())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0.2, (0.2,)),
        (5, (5,)),
        ([0.2, 0.4], (0.2, 0.4)),
        (range(1, 4), (1, 2, 3)),
        (np.array([0.2, 0.4]), (0.2, 0.4)),
        (np.int64(3), (3,)),
        ([np.int64(3), torch.tensor(5)], (3, 5)),
        (torch.tensor([1, 2]), (1, 2)),
        (torch.tensor(0.5), (0.5,)),
    ],
)
def test_one_size_or_several_are_read_as_python_numbers(given: Any, expected: tuple[float, ...]) -> None:
    sizes = read_sizes(given)
    assert sizes == expected
    assert {type(size) for size in sizes} == {type(size) for size in expected}


@pytest.mark.parametrize("given", ["20%", None, {0.2}, 1j])
def test_what_is_no_size_is_refused(given: Any) -> None:
    with pytest.raises(hf.HoldfastError, match=r"sizes must be shares \(float\) or numbers \(int\) of features"):
        read_sizes(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (True, "share of the features"),
        (None, "share of the features"),
        ("5", "share of the features"),
        (0, "at least one feature"),
        (1.5, r"at most 1 \(= 100 %\), got 1.5\.$"),
        (5.0, "got 5.0: write 5 for 5 features"),
        (float("nan"), "share over 0"),
    ],
)
def test_a_malformed_size_is_refused_in_one_sentence(given: Any, message: str) -> None:
    for make in (lambda: hf.GreedyAS(budget=given), lambda: hf.Greedy(step=given), lambda: read_size(given)):
        with pytest.raises(hf.HoldfastError, match=message):
            make()


def test_numpy_numbers_are_settings_with_the_same_key() -> None:
    step: Any = np.int64(1)
    assert repr(hf.GreedyAS(budget=np.float64(0.2), step=step)) == repr(hf.GreedyAS(budget=0.2, step=1))
    assert repr(hf.Counterfactual(step=np.float64(0.1))) == repr(hf.Counterfactual(step=0.1))
