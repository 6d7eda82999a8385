"""What callers may give to ``AsCaptum.attribute``: every form of numbers is read, all else is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.interop.captum import AsCaptum
from toys import small_net

X = torch.rand(3, 12, generator=torch.Generator().manual_seed(0)).double()
MASK = torch.arange(12)[None] // 3


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_net()

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        out: Tensor = self.net(torch.cat([left, right], 1))
        return out


class Fails(nn.Module):
    def __init__(self, error: BaseException):
        super().__init__()
        self.error = error

    def forward(self, rows: Tensor) -> Tensor:
        raise self.error


class Score(nn.Module):
    """One score of four numbers."""

    def forward(self, rows: Tensor) -> Tensor:
        assert rows.shape[1:] == (4,)
        return rows.square().sum(1)


@pytest.mark.parametrize("inputs", [X.numpy(), X.tolist(), X.to_sparse(), X.clone().requires_grad_()])
def test_inputs_come_in_every_form(inputs: Any) -> None:
    method = AsCaptum(hf.Grad(), small_net())
    torch.testing.assert_close(method.attribute(inputs, target=1), method.attribute(X, target=1), check_dtype=False)


def test_masks_and_baselines_come_in_every_form() -> None:
    method = AsCaptum(hf.LeaveOneOut(), small_net())
    expected = method.attribute(X, target=1, feature_mask=MASK, baselines=0.25)
    for mask in (MASK.numpy(), MASK.tolist(), MASK[0].tolist(), MASK.int(), MASK.expand(3, -1)):
        torch.testing.assert_close(method.attribute(X, target=1, feature_mask=mask, baselines=0.25), expected)
    for baselines in (np.float32(0.25), np.full((1, 12), 0.25), [[0.25] * 12] * 3, np.full((3, 12), 0.25, np.float32)):
        given: dict[str, Any] = {"target": 1, "feature_mask": MASK, "baselines": baselines}
        torch.testing.assert_close(method.attribute(X, **given), expected)


def test_a_number_as_a_baseline_keeps_its_precision() -> None:
    method = AsCaptum(hf.IntegratedGradients(), small_net())
    whole = method.attribute(X, target=1, baselines=torch.full((1, 12), 0.1, dtype=torch.double))
    torch.testing.assert_close(method.attribute(X, target=1, baselines=0.1), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "target", [[np.int64(0), np.int32(1), 2], np.array([0, 1, 2], np.uint8), [torch.tensor(0), 1, torch.tensor([2])]]
)
def test_targets_come_in_every_form(target: Any) -> None:
    method = AsCaptum(hf.Grad(), small_net())
    torch.testing.assert_close(method.attribute(X, target=target), method.attribute(X, target=[0, 1, 2]))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"inputs": ()}, r"inputs must be a tensor \[B, \*shape\] or a tuple of them, with B >= 1, got an empty tuple"),
    ({"inputs": "text"}, r"inputs must be a tensor \[B, \*shape\]"),
    ({"inputs": None}, r"inputs must be a tensor \[B, \*shape\]"),
    ({"inputs": [[1.0], [1.0, 2.0]]}, r"inputs must be a tensor \[B, \*shape\]"),
    ({"inputs": torch.rand(12)}, r"with B >= 1, got \(12,\)"),
    ({"inputs": torch.rand(0, 12)}, r"with B >= 1, got \(0, 12\)"),
    ({"inputs": X.to("meta")}, "got a meta tensor"),
    ({"inputs": X.to(torch.complex64)}, "got a complex tensor"),
    ({"inputs": (X, X[:2])}, r"must be equally many, got \(3, 12\), \(2, 12\)"),
    ({"target": [10**30] * 3}, "target must be one class for each of 3 inputs"),
    ({"target": 10**30}, "target must be one class for each of 3 inputs"),
    ({"target": [0.0, 1.0, 2.0]}, r"target must be one class for each of 3 inputs, by number, got 0\.0"),
    ({"target": [True, 0, 1]}, "target must be one class for each of 3 inputs, by number, got True"),
    ({"target": ["a", "b", "c"]}, "target must be one class for each of 3 inputs, by number"),
    ({"target": [0, 1]}, r"target must be one class for each of 3 inputs, got \[0, 1\]"),
    ({"target": {0: 1}}, "target must be one class for each of 3 inputs"),
    ({"feature_mask": "text"}, "feature_mask must be numbers of features in the shape of the inputs"),
    ({"feature_mask": MASK.double()}, "the number of its feature, from 0"),
    ({"feature_mask": MASK.expand(2, -1)}, r"feature_mask of shape \(2, 12\) does not cover"),
    ({"feature_mask": torch.zeros(0, 12).long()}, r"feature_mask of shape \(0, 12\) does not cover"),
    ({"baselines": "blur"}, r"baselines must be a number or a tensor \[1 or 3, \*shape\] of inputs \(3, 12\)"),
    ({"baselines": True}, r"baselines must be a number or a tensor .*, got torch\.bool"),
    ({"baselines": float("nan")}, "baselines hold NaN or infinity"),
    ({"baselines": 10**30}, "baselines must be a number or a tensor"),
    ({"additional_forward_args": torch.rand(3).to("meta")}, "additional_forward_args must have values"),
    ({"internal_batch_size": True}, "internal_batch_size must be a whole number >= 1, got True"),
    ({"internal_batch_size": "a"}, "internal_batch_size must be a whole number >= 1, got 'a'"),
    ({"n_steps": "a"}, "steps must be a whole number >= 1, got 'a'"),
]


@pytest.mark.parametrize(("odd", "message"), REFUSED)
def test_what_cannot_be_read_is_refused(odd: dict[str, Any], message: str) -> None:
    method = AsCaptum(hf.IntegratedGradients(), small_net())
    with pytest.raises(hf.HoldfastError, match=message):
        method.attribute(**{"inputs": X, **odd})


def test_masks_of_several_inputs_may_differ_in_their_batch() -> None:
    method = AsCaptum(hf.LeaveOneOut(), Two().eval())
    parts, (left, right) = (X[:, :8], X[:, 8:]), (torch.arange(8)[None] // 4, torch.full((4,), 2))
    expected = method.attribute(parts, target=1, feature_mask=(left, right))
    attributed = method.attribute(parts, target=1, feature_mask=(left.expand(3, -1).numpy(), right.tolist()))
    for one, other in zip(attributed, expected, strict=True):
        torch.testing.assert_close(one, other)
    with pytest.raises(hf.HoldfastError, match=r"feature_mask of shape \(2, 8\) does not cover"):
        method.attribute(parts, target=1, feature_mask=(left.expand(2, -1), right))


def test_bounds_that_do_not_fit_are_refused() -> None:
    for shape in ((3,), (2, 12), (3, 1, 12)):
        method = AsCaptum(hf.Grad(), small_net(), bounds=(torch.zeros(shape), torch.ones(shape)))
        with pytest.raises(hf.HoldfastError, match=r"bounds of shape .* do not fit inputs of shape \(12,\)"):
            method.attribute(X)
    several = AsCaptum(hf.Grad(), Two().eval(), bounds=(torch.zeros(8), torch.ones(8)))
    with pytest.raises(hf.HoldfastError, match="several inputs needs bounds that are two numbers"):
        several.attribute((X[:, :8], X[:, 8:]))


@pytest.mark.parametrize(
    "error", [KeyError("k"), AssertionError(), AttributeError("a"), ZeroDivisionError("z"), StopIteration(), OSError()]
)
def test_what_the_module_raises_is_one_error(error: Exception) -> None:
    with pytest.raises(hf.HoldfastError, match=rf"the model failed in its forward pass .*{type(error).__name__}"):
        AsCaptum(hf.Grad(), Fails(error).eval()).attribute(X)


def test_errors_of_memory_pass() -> None:
    with pytest.raises(MemoryError):
        AsCaptum(hf.Grad(), Fails(MemoryError()).eval()).attribute(X)


def test_a_call_that_failed_says_nothing_about_the_module() -> None:
    method = AsCaptum(hf.Grad(), Score().eval())
    with pytest.raises(hf.HoldfastError, match="the model failed"):
        method.attribute(X)
    torch.testing.assert_close(method.attribute(X[:, :4]), 2 * X[:, :4], check_dtype=False)


def test_an_argument_as_long_as_the_batch_has_one_row_for_each_input() -> None:
    """As in Captum; a constant of this length is given with a first axis of length one."""

    class Shifted(nn.Module):
        def forward(self, rows: Tensor, shift: Tensor) -> Tensor:
            moved = rows + shift
            return torch.stack([moved.square().sum(1), moved.sum(1)], 1)

    x, shift = X[:, :3], torch.tensor([1.0, 2.0, 3.0])
    method = AsCaptum(hf.Grad(), Shifted().eval())
    rows = method.attribute(x, target=0, additional_forward_args=shift[:, None])
    torch.testing.assert_close(rows, 2 * (x + shift[:, None]), check_dtype=False)
    constant = method.attribute(x, target=0, additional_forward_args=shift[None])
    torch.testing.assert_close(constant, 2 * (x + shift), check_dtype=False)
