"""Small networks the tests share."""

from __future__ import annotations

import torch
from torch import nn


def small_net(seed: int = 0, inputs: int = 12, classes: int = 4) -> nn.Sequential:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, classes))
    return net.double().eval().requires_grad_(False)


def tiny_photo_net(seed: int = 0, classes: int = 5) -> nn.Sequential:
    """A convolutional network for photographs of 64 x 64 pixels."""
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 8, 8),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 64, 16),
        nn.ReLU(),
        nn.Linear(16, classes),
    )
    return net.eval().requires_grad_(False)
