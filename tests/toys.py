"""Small networks the tests share."""

from __future__ import annotations

import torch
from torch import nn


def small_net(seed: int = 0, inputs: int = 12, classes: int = 4) -> nn.Sequential:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, classes))
    return net.double().eval().requires_grad_(False)
