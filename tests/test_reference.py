from __future__ import annotations

import pytest
import torch
from scipy.ndimage import gaussian_filter

import holdfast as hf
from holdfast.reference import kept_scores, live_features, read_reference, reference_points
from toys import small_net


def _cases(features: hf.Features | None = None) -> hf.Cases:
    x = torch.rand(3, 12, generator=torch.Generator().manual_seed(0))
    return hf.Classifier(small_net(), (0, 1)).ask(x, features=features)


def _images(channels: int = 3) -> hf.Cases:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(channels * 80, 3)).double().eval()
    return hf.Classifier(net, (0, 1)).ask(torch.rand(2, channels, 8, 10, generator=torch.Generator().manual_seed(0)))


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
        reference_points(_cases(), word)  # type: ignore[arg-type]


def test_a_reference_outside_the_box_or_not_finite_is_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="leaves the model's bounds"):
        reference_points(_cases(), -1.0)
    with pytest.raises(hf.HoldfastError, match="NaN or infinity"):
        read_reference(float("nan"))
    with pytest.raises(hf.HoldfastError, match="must be a number"):
        read_reference(object())


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
    found = kept_scores(cases, reference_points(cases, 0.5), case, lambda piece: kept[piece])
    by_hand = cases.x[case].clone()
    by_hand[0, [2, 3, 6, 7]] = 0.5
    by_hand[1, :6] = 0.5
    logits = cases.model.module(by_hand)
    torch.testing.assert_close(found, logits[torch.arange(2), cases.label[case]])


def test_live_features_differ_from_the_reference_somewhere() -> None:
    features = hf.Features.of(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]))
    x = torch.zeros(1, 12)
    x[0, 5] = 0.1
    cases = hf.Classifier(small_net(), (0, 1)).ask(x, features=features)
    assert live_features(cases, reference_points(cases, 0.0)).tolist() == [[False, True, False]]
