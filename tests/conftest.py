from __future__ import annotations

import pytest
import torch

import holdfast as hf

torch.set_num_threads(1)  # the tests themselves run side by side


@pytest.fixture(scope="session")
def digit_model() -> hf.Classifier:
    return hf.data.mnist_cnn()


@pytest.fixture(scope="session")
def digits() -> hf.data.Digits:
    return hf.data.mnist()
