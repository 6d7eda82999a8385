from __future__ import annotations

import builtins
import importlib.util
from typing import Any

import pytest
import torch

import holdfast as hf
from holdfast.data import imagenet
from holdfast.data.imagenet import imagenet_classifier, imagenet_names, photos

needs_extra = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite_pytorch") is None, reason="the extra imagenet is not installed"
)


@needs_extra
@pytest.mark.slow
def test_the_network_names_photographs_as_people_would() -> None:
    model, names, shown = imagenet_classifier(), imagenet_names(), photos()
    top = model(shown.x).topk(5).indices
    known = shown.y >= 0
    assert int(known.sum()) >= 3
    right = (top == shown.y[:, None]).any(1)[known]
    assert bool(right.all()), [(shown.names[i], names[int(top[i, 0])]) for i in range(len(shown))]
    by_name = dict(zip(shown.names, top[:, 0].tolist(), strict=True))
    assert "cat" in names[by_name["chelsea.png"]]


@needs_extra
def test_pixels_are_normalised_as_the_network_was_trained() -> None:
    model = imagenet_classifier()
    x = torch.rand(1, 3, 224, 224)
    network: Any = model.module.module
    assert {layer.eps for layer in network.modules() if isinstance(layer, torch.nn.BatchNorm2d)} == {1e-3}
    torch.testing.assert_close(model(x), network((255 * x - 127) / 128), atol=1e-4, rtol=1e-4)


@needs_extra
def test_names_are_a_thousand() -> None:
    names = imagenet_names()
    assert len(names) == 1000
    assert (names[285], names[388]) == ("Egyptian cat", "giant panda")


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    bring = builtins.__import__

    def without(name: str, *given: Any, **more: Any) -> Any:
        if name.startswith("efficientnet"):
            raise ImportError(name)
        return bring(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(hf.HoldfastError, match=r"pip install \"holdfast\[imagenet\]\""):
        imagenet_classifier()
    monkeypatch.setattr(imagenet, "find_spec", lambda name: None)
    with pytest.raises(hf.HoldfastError, match=r"come in a package of their own"):
        imagenet_names()
    with pytest.raises(hf.HoldfastError, match="no package with photographs is installed"):
        photos()
