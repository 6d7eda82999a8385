from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.features import FIXED


def test_pixels_share_channels_or_not() -> None:
    x = torch.rand(2, 3, 4, 5)
    joint, separate = hf.Features.pixels((3, 4, 5)), hf.Features.pixels((3, 4, 5), channels="separate")
    assert (joint.count, separate.count) == (20, 60)
    one = torch.zeros(2, 20, dtype=torch.bool)
    one[:, 7] = True
    free = joint.bind(x).expand(one).expand_as(x)
    assert free.sum().item() == 2 * 3
    assert bool(free[:, :, 1, 2].all())


def test_patches_cover_the_edges() -> None:
    features = hf.Features.patches((1, 5, 7), 3)
    assert features.count == 2 * 3
    assert torch.bincount(features.ids.flatten()).tolist() == [9, 9, 3, 6, 6, 2]


@pytest.mark.parametrize("channels", [1, 3])
def test_superpixels_follow_each_image(channels: int) -> None:
    image = torch.zeros(2, channels, 32, 32)
    image[0, :, :, 12:] = 1
    image[1, :, 12:, :] = 1
    features = hf.Features.superpixels(image, 4)
    assert features.ids.shape == (2, 1, 32, 32)
    for ids, edge in zip(features.ids, (image[0, 0] > 0, image[1, 0] > 0), strict=True):
        assert not set(ids[0][edge].tolist()) & set(ids[0][~edge].tolist())


def test_tokens_never_move_padding_or_special_ones() -> None:
    features = hf.Features.tokens(torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]), words=[[-1, 0, 0, 1], [-1, 0, 5, 6]])
    assert features.count == 2
    assert features.ids[..., 0].tolist() == [[FIXED, 0, 0, 1], [FIXED, 0, FIXED, FIXED]]
    free = features.bind(torch.rand(2, 4, 8)).expand(torch.ones(2, 2, dtype=torch.bool))
    assert free[..., 0].tolist() == [[False, True, True, True], [False, True, False, False]]


def test_columns_group_and_leave_the_rest() -> None:
    assert hf.Features.columns(4).ids.tolist() == [[0, 1, 2, 3]]
    grouped = hf.Features.columns([[0, 2], 1], n=5)
    assert grouped.ids.tolist() == [[0, 1, 0, FIXED, FIXED]]


def test_a_tensor_of_ids_works() -> None:
    model = hf.TorchModel(torch.nn.Linear(4, 2).eval())
    cases = model.ask(torch.rand(3, 4), features=torch.tensor([0, 0, 1, -7]))
    assert cases.features.count == 2
    assert cases.features.expand(torch.ones(3, 2, dtype=torch.bool)).tolist() == [[True, True, True, False]] * 3


@settings(deadline=None)  # a busy machine is not a wrong answer
@given(st.integers(0, 10**6))
def test_pool_undoes_expand(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(-1, 4, (3, 2, 5), generator=generator)
    ids[0, 0, 0] = 3
    values = torch.rand(3, 2, 5, generator=generator).double()
    features = hf.Features.of(ids).bind(values)
    pooled = features.pool(values)
    by_hand = [[sum(values[b][ids[b] == i].tolist()) for i in range(4)] for b in range(3)]
    torch.testing.assert_close(pooled, torch.tensor(by_hand, dtype=torch.float64))
    for i in range(4):
        one = torch.zeros(3, 4, dtype=torch.bool)
        one[:, i] = True
        assert torch.equal(features.expand(one), ids == i)
    back = features.spread(pooled)
    for b in range(3):
        assert torch.equal(back[b], pooled[b, ids[b].clamp_min(0)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hf.Features.pixels((28, 28)), "image shape"),
        (lambda: hf.Features.pixels((1, 2, 2), channels="both"), "joint"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: hf.Features.patches((1, 8, 8), 0), "patch size"),
        (lambda: hf.Features.superpixels(torch.rand(3, 8, 8), 0), "segments"),
        (lambda: hf.Features.superpixels(torch.rand(8, 8), 4), "float image"),
        (lambda: hf.Features.tokens(torch.tensor([[1, 2]])), "zeros and ones"),
        (lambda: hf.Features.tokens(torch.tensor([[0, 0]])), "no feature to move"),
        (lambda: hf.Features.columns([]), "at least one"),
        (lambda: hf.Features.columns([[0], [0]]), "one group"),
        (lambda: hf.Features.columns([5], n=3), "past the table"),
        (lambda: hf.Features.of(torch.rand(3)), "integers"),
        (lambda: hf.Features.columns(3).bind(torch.rand(2, 4)), "do not fit"),
    ],
)
def test_bad_features_get_one_clear_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(hf.HoldfastError, match=message):
        make()
