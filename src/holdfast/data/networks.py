"""The architecture of the digit network whose weights the package contains."""

from __future__ import annotations

from torch import nn


def mnist_cnn() -> nn.Sequential:
    """Make the digit network of the paper, with random weights.

    Two convolutions of 5 x 5 with 20 and 50 channels, each followed by ReLU and 2 x 2 max-pooling, then 500 hidden
    units.

    Returns:
        A module from images ``[R, 1, 28, 28]`` to logits ``[R, 10]``.
    """
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
