from __future__ import annotations

from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.data.idx import write_idx
from holdfast.experiment import Store, run
from studies import small_study

torch.set_num_threads(1)  # the tests themselves run side by side


@pytest.fixture(scope="session")
def digit_model() -> hf.Classifier:
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
