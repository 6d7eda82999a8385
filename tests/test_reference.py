from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

import holdfast as hf
from holdfast.models.torch import layers_of
from holdfast.reference import FixedReference, kept_scores, live_features, read_reference, reference_points
from toys import small_net


def _cases(features: hf.Features | None = None) -> hf.Cases:
    x = torch.rand(3, 12, generator=torch.Generator().manual_seed(0))
    return hf.TorchModel(small_net(), (0, 1)).ask(x, features=features)


def _images(channels: int = 3) -> hf.Cases:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(channels * 80, 3)).double().eval()
    return hf.TorchModel(net, (0, 1)).ask(torch.rand(2, channels, 8, 10, generator=torch.Generator().manual_seed(0)))


def test_a_tensor_is_named_by_its_content() -> None:
    one, same, other = (read_reference(torch.full((3,), value)) for value in (0.5, 0.5, 0.25))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert repr(one).startswith("tensor(3,)#")
    assert hf.IntegratedGradients(torch.zeros(3)) == hf.IntegratedGradients(torch.zeros(3))


def test_blur_is_a_gaussian_of_a_tenth_of_the_longer_side() -> None:
    cases = _images()
    expected = gaussian_filter(cases.x.numpy(), (0, 0, 1.0, 1.0), mode="nearest", truncate=3)
    torch.testing.assert_close(reference_points(cases, "blur"), torch.from_numpy(expected), atol=1e-6, rtol=1e-6)


def test_mean_and_noise() -> None:
    cases = _images()
    torch.testing.assert_close(reference_points(cases, "mean")[1, 2, 3, 4], cases.x[1, 2].mean())
    noise = reference_points(cases, "uniform", seed=1)
    assert torch.equal(noise[0], noise[1])
    assert 0 <= float(noise.min()) < 0.1
    assert 0.9 < float(noise.max()) <= 1
    assert not torch.equal(noise, reference_points(cases, "uniform", seed=2))


@pytest.mark.parametrize("word", ["blur", "mean"])
def test_what_is_for_images_says_so(word: str) -> None:
    with pytest.raises(hf.HoldfastError, match="is for images"):
        reference_points(_cases(), word)  # type: ignore[arg-type]  # a word from the list above


def test_a_reference_outside_the_box_is_allowed_and_said() -> None:
    with pytest.warns(hf.HoldfastWarning, match="values from -1 to -1, some of them outside the model's bounds"):
        assert bool((reference_points(_cases(), -1.0) == -1).all())


def test_only_values_that_are_used_must_be_inside() -> None:
    """A year that never moves, beside what does."""
    low, high = torch.tensor([0.0, 0.0, 1900.0]), torch.tensor([1.0, 1.0, 2100.0])
    net = torch.nn.Linear(3, 2).eval()
    cases = hf.TorchModel(net, (low, high)).ask(
        torch.tensor([[0.5, 0.5, 2000.0]]), features=hf.Features.columns(2, n=3)
    )
    assert reference_points(cases, 0.0).tolist() == [[0, 0, 2000]]


@pytest.mark.parametrize("word", ["blur", "mean", "uniform"])
def test_made_references_stay_inside_the_bounds_of_each_channel(word: str) -> None:
    mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    low, high = ((edge - mean) / spread for edge in (0.0, 1.0))
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 400, 2)).eval()
    image = low[:, None, None].expand(3, 20, 20).clone()
    image[:, :, :7] = high[:, None, None]
    cases = hf.TorchModel(net, (low[:, None, None], high[:, None, None])).ask(image[None])
    points = reference_points(cases, word)  # type: ignore[arg-type]  # a word from the list above
    assert bool(((points >= low[:, None, None]) & (points <= high[:, None, None])).all())


def test_what_is_no_reference_is_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="NaN or infinity"):
        read_reference(float("nan"))
    with pytest.raises(hf.HoldfastError, match="must be a number"):
        read_reference(object())
    for given in (0.5, "blur", torch.zeros(3)):
        with pytest.raises(hf.HoldfastError, match=r"references must be a tensor of inputs \[N, \*shape\], got"):
            hf.ExpectedGradients(given)  # type: ignore[arg-type]  # wrong on purpose


def test_what_belongs_to_no_feature_stays() -> None:
    features = hf.Features.of(torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, -1, -1, -1, -1]))
    cases = _cases(features)
    points = reference_points(cases, 0.0)
    assert torch.equal(points[:, 8:], cases.x[:, 8:])
    assert not bool(points[:, :8].any())


def test_kept_scores_are_the_models_own() -> None:
    features = hf.Features.of(torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, -1, -1, -1, -1]))
    cases = _cases(features)
    kept = torch.tensor([[True, False, True, False], [False, False, False, True]])
    case = torch.tensor([2, 0])
    scores = kept_scores(cases, reference_points(cases, 0.5), case, lambda piece: kept[piece])
    by_hand = cases.x[case].clone()
    by_hand[0, [2, 3, 6, 7]] = 0.5
    by_hand[1, :6] = 0.5
    logits = layers_of(cases.model).module(by_hand)
    torch.testing.assert_close(scores, logits[torch.arange(2), cases.label[case]])


def test_live_features_differ_from_the_reference_somewhere() -> None:
    features = hf.Features.of(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]))
    x = torch.zeros(1, 12)
    x[0, 5] = 0.1
    cases = hf.TorchModel(small_net(), (0, 1)).ask(x, features=features)
    assert live_features(cases, reference_points(cases, 0.0)).tolist() == [[False, True, False]]


def test_arrays_and_lists_are_references() -> None:
    values = np.full(12, 0.25)
    expected = repr(hf.Insertion(torch.full((12,), 0.25)))
    for given in (values, values.tolist(), FixedReference(values)):
        assert repr(hf.Insertion(given)) == expected  # type: ignore[arg-type]  # arrays and lists are accepted
    assert hf.LeaveOneOut(np.float32(0.5)).reference == 0.5  # type: ignore[arg-type]  # so are NumPy numbers
    rows = np.random.default_rng(0).random((5, 12))
    assert hf.ExpectedGradients(rows, samples=3)(_cases()).order.shape == (3, 12)  # type: ignore[arg-type]  # an array
    assert repr(hf.Anchor(references=rows)) == repr(hf.Anchor(references=torch.as_tensor(rows)))  # type: ignore[arg-type]  # an array


def test_a_truth_value_is_no_reference() -> None:
    with pytest.raises(hf.HoldfastError, match=r"reference must be a number, a tensor or one of .*, got torch\.bool"):
        read_reference(True)
