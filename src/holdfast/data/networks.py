"""Network architectures the package carries weights for."""

from __future__ import annotations

from torch import nn


def mnist_cnn() -> nn.Sequential:
    """The paper's kind of digit network: two 5x5 convolutions (20, 50), 500 hidden units, logits out."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(50 * 4 * 4, 500),
        nn.ReLU(),
        nn.Linear(500, 10),
    )
