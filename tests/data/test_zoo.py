"""Loading from torchvision and timm, on small packages of the same interface: neither loads beside a CPU-only torch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import holdfast as hf
from holdfast.data.zoo import zoo_classifier, zoo_preprocessing
from toys import tiny_photo_net


@pytest.mark.parametrize("library", ["torchvision", "timm"])
def test_a_network_by_name_reads_pixels_from_zero_to_one(tiny_zoo: list[str], tmp_path: Path, library: str) -> None:
    seen = zoo_preprocessing(f"{library}:tiny")
    assert (seen.size, seen.crop) == (64, 0.8)
    model = zoo_classifier(f"{library}:tiny")
    assert tiny_zoo == ["tiny"]
    x = torch.rand(2, 3, 64, 64)
    mean, std = (torch.tensor(part)[:, None, None] for part in ((0.4, 0.5, 0.6), (0.2, 0.3, 0.2)))
    with torch.no_grad():
        torch.testing.assert_close(model(x), tiny_photo_net(seed=1)((x - mean) / std))
    assert float(model.high) == 1  # type: ignore[arg-type]  # a box of numbers
    for path in (tmp_path / "weights.safetensors", tmp_path / "weights.pth"):
        state = tiny_photo_net(seed=7).state_dict()
        save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)
        with torch.no_grad():
            filled = zoo_classifier(f"{library}:tiny", path)
            torch.testing.assert_close(filled(x), tiny_photo_net(seed=7)((x - mean) / std))
    assert tiny_zoo == ["tiny"], "with a file of weights nothing is fetched"


def test_wrong_names_and_files_are_one_sentence(tiny_zoo: list[str], tmp_path: Path) -> None:
    for name in ("resnet50", "keras:vgg", "timm:"):
        with pytest.raises(hf.HoldfastError, match="torchvision:NAME or timm:NAME"):
            zoo_classifier(name)
    with pytest.raises(hf.HoldfastError, match="torchvision has no network 'huge'"):
        zoo_classifier("torchvision:huge")
    with pytest.raises(hf.HoldfastError, match=r"^timm has no network 'huge'"):
        zoo_classifier("timm:huge")
    with pytest.raises(hf.HoldfastError, match="cannot read weights from"):
        zoo_classifier("timm:tiny", tmp_path / "none.safetensors")
    torch.save(tiny_photo_net(seed=0), tmp_path / "whole.pth")  # a pickled module: code, not tensors
    with pytest.raises(
        hf.HoldfastError, match=r"^cannot read weights from \S+whole\.pth: expected a file with nothing but"
    ):
        zoo_classifier("timm:tiny", tmp_path / "whole.pth")
    (tmp_path / "empty.pth").write_bytes(b"")
    (tmp_path / "text.pth").write_text("these are no weights", encoding="utf-8")
    for name in ("empty.pth", "text.pth"):
        with pytest.raises(hf.HoldfastError, match="cannot read weights"):
            zoo_classifier("timm:tiny", tmp_path / name)
    os.mkfifo(tmp_path / "pipe.pth")
    with pytest.raises(hf.HoldfastError, match=r"pipe\.pth: it is not a regular file"):
        zoo_classifier("timm:tiny", tmp_path / "pipe.pth")
    torch.save({"state_dict": tiny_photo_net(seed=7).state_dict(), "epoch": 3}, tmp_path / "kept.pth")
    zoo_classifier("timm:tiny", tmp_path / "kept.pth")
    torch.save({"other": torch.zeros(1)}, tmp_path / "other.pth")
    with pytest.raises(hf.HoldfastError, match="Missing key"):
        zoo_classifier("timm:tiny", tmp_path / "other.pth")


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(hf.HoldfastError, match="needs timm, which cannot be loaded here"):
        zoo_classifier("timm:resnet50")
