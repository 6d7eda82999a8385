from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn

import holdfast as hf
from holdfast.data.idx import write_idx
from holdfast.experiment import Store, run
from studies import small_study
from toys import tiny_photo_net

torch.set_num_threads(1)  # the tests themselves run side by side


@pytest.fixture(scope="session")
def digit_model() -> hf.TorchModel:
    return hf.data.mnist_cnn()


@pytest.fixture(scope="session")
def digits() -> hf.data.Digits:
    return hf.data.mnist()


@pytest.fixture(scope="session")
def small_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small experiment, run whole and undisturbed."""
    path = tmp_path_factory.mktemp("small") / "results.db"
    with Store.open(path) as store:
        summary = run(small_study(), store)
    assert (summary.missing, summary.failed) == (0, {})
    return path


@pytest.fixture
def idx_folder(tmp_path: Path) -> Path:
    """A folder in MNIST's format with a few hundred random pictures."""
    folder = tmp_path / "source"
    folder.mkdir()
    generator = torch.Generator().manual_seed(0)
    for prefix in ("train", "t10k"):
        pictures = torch.randint(0, 256, (300, 28, 28), generator=generator)
        for kind, values in (("images-idx3", pictures), ("labels-idx1", torch.arange(300) % 10)):
            write_idx(folder / f"{prefix}-{kind}-ubyte.gz", values)
    return folder


@pytest.fixture
def tiny_zoo(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand-ins for torchvision and timm with one network, called tiny; lists what they would have fetched."""
    fetched: list[str] = []

    def made(name: str, fetch: bool) -> nn.Module:
        fetched.extend([name] if fetch else [])
        return tiny_photo_net(seed=int(fetch)).train()

    def get_model(name: str, weights: str | None) -> nn.Module:
        return made(name, weights == "DEFAULT")

    def get_model_weights(name: str) -> Any:
        if name != "tiny":
            raise ValueError(f"Unknown model {name}")
        seen = SimpleNamespace(crop_size=[64], resize_size=[80], mean=[0.4, 0.5, 0.6], std=[0.2, 0.3, 0.2])
        return SimpleNamespace(DEFAULT=SimpleNamespace(transforms=lambda: seen))

    vision, models = ModuleType("torchvision"), ModuleType("torchvision.models")
    vars(models).update(get_model=get_model, get_model_weights=get_model_weights)
    timm, timm_data = ModuleType("timm"), ModuleType("timm.data")
    vars(timm).update(
        is_model=lambda name: name == "tiny", create_model=lambda name, pretrained: made(name, pretrained)
    )
    config = {"input_size": (3, 64, 64), "crop_pct": 0.8, "mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.2)}
    vars(timm_data).update(resolve_model_data_config=lambda model: config)
    for module in (vision, models, timm, timm_data):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return fetched


@pytest.fixture
def photo_folder(tmp_path: Path) -> Path:
    """Four photographs of noise and a bright square, in two folders by class."""
    folder = tmp_path / "photographs"
    generator = torch.Generator().manual_seed(0)
    for number in range(4):
        pixels = torch.randint(0, 120, (80, 100, 3), generator=generator)
        pixels[20:50, 10 + 15 * number : 40 + 15 * number] += 120
        (folder / f"n{number % 2}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.byte().numpy()).save(folder / f"n{number % 2}" / f"{number}.png")
    return folder
