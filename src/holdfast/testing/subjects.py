"""Small networks, models and inputs that the checks run on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.draws import generator
from holdfast.models.function import FunctionModel
from holdfast.models.model import Access

WIDTH = 12
CASES = 5


def inputs(cases: int = CASES, width: int = WIDTH, seed: int = 0) -> Tensor:
    """Return inputs ``[cases, width]`` between 0 and 1, in double precision."""
    return torch.rand(cases, width, generator=generator(seed)).double()


def network(seed: int = 0, classes: int = 4) -> nn.Sequential:
    """Return a random network of 12 inputs, in double precision."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(WIDTH, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, classes))
    return net.double().eval().requires_grad_(False)


def image_network(seed: int = 0) -> nn.Sequential:
    """Return a random convolutional network of colour images ``[B, 3, 4, 4]``, in double precision."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    return net.double().eval().requires_grad_(False)


class SelectedColumns(nn.Module):
    """A network that reads some columns of its input, in some order."""

    def __init__(self, net: nn.Module, columns: Tensor):
        super().__init__()
        self.net, self.columns = net, columns
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(x[:, self.columns])
        return out


def function_model(access: Access) -> FunctionModel:
    """Return a model that gives only scores or only decisions, with bounds from 0 to 1."""
    net = network()

    def scores(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        out: np.ndarray[Any, Any] = net(torch.as_tensor(rows).double()).numpy()
        return out

    if access == Access.DECISIONS:
        return FunctionModel(lambda rows: scores(rows).argmax(1), (0, 1), classes=4)
    return FunctionModel(scores, (0, 1))


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and torch, and restore them afterwards."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng([]):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


def broken(subject: object, sentence: str) -> AssertionError:
    """Return the error that says which law an extension breaks."""
    return AssertionError(f"{type(subject).__name__} {sentence}.")
