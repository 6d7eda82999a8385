"""Odd values, odd tensors and odd networks for the trial of the API, all drawn from a generator with a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import holdfast as hf

INPUTS, CLASSES = 6, 3


def odd_value(draw: random.Random) -> Any:
    """Return a value of any type; few fit a setting."""
    values: list[Callable[[], Any]] = [
        lambda: draw.choice([0, 1, 2, 3, 5, 10, -1, -7, 10**30, 2**63, 2**31]),
        lambda: draw.choice([0.0, 0.5, 1.0, 1.5, -0.5, 1e-300, 1e308, math.inf, -math.inf, math.nan]),
        lambda: draw.choice([True, False, None, ..., NotImplemented, object(), int, print, hf.MinNorm, hf.Grad]),
        lambda: draw.choice(
            ["", "ten", "blur", "mean", "uniform", "logit", "1", "min-norm", "insertion", "é\n", "cpu"]
        ),
        lambda: draw.choice(
            [[], [1], [1, 2], (0.1, 0.2), ("a", "b"), {}, {"a": 1}, {1}, b"x", range(3), [[1], [1, 2]]]
        ),
        lambda: draw.choice([np.int64(3), np.float32(0.5), np.bool_(True), np.str_("blur"), np.float64(math.nan)]),
        lambda: draw.choice([2 + 1j, hf.Judge(steps=10, starts=1, classes=1), hf.Insertion(draws=1), hf.Regression()]),
        lambda: odd_tensor(draw),
    ]
    return draw.choice(values)()


def odd_tensor(draw: random.Random, shape: tuple[int, ...] | None = None) -> Any:
    """Return a tensor or an array of any kind, or something that looks like one."""
    shapes = [
        (),
        (0,),
        (1,),
        (INPUTS,),
        (2, INPUTS),
        (2, 1, INPUTS),
        (1, 1, 1, 1),
        (2, CLASSES),
        (3, 2, 2),
        (0, INPUTS),
    ]
    size = draw.choice(shapes) if shape is None or draw.random() < 0.3 else shape
    seed = torch.Generator().manual_seed(draw.randrange(2**31))
    dense = torch.rand(size, generator=seed)
    kinds: list[Callable[[], Any]] = [
        lambda: dense,
        lambda: dense.double().requires_grad_(True),
        lambda: dense.half(),
        lambda: dense.bfloat16(),
        lambda: dense > 0.5,
        lambda: (3 * dense).long(),
        lambda: (3 * dense).to(draw.choice([torch.uint8, torch.int8, torch.uint16, torch.uint32, torch.uint64])),
        lambda: dense.to_sparse() if dense.ndim else dense,
        lambda: dense.to_sparse_csr() if dense.ndim == 2 else dense,
        lambda: dense.to("meta"),
        lambda: torch.complex(dense, dense),
        lambda: torch.quantize_per_tensor(dense, 0.1, 0, torch.quint8),
        lambda: dense * draw.choice([1e30, math.nan, math.inf, -1.0, 1e-40]),
        lambda: dense.numpy(),
        lambda: dense.numpy()[::-1] if dense.ndim else dense.numpy(),
        lambda: dense.numpy().astype(draw.choice([">f4", "f2", "i4", "O", "U3", "g", "?", "c8"])),
        lambda: dense.tolist(),
        lambda: [dense.tolist(), [1.0]],
        lambda: np.array([None, "a"], dtype=object),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: dense.to(torch.float8_e4m3fn),
        lambda: nn.Parameter(dense),
    ]
    return draw.choice(kinds)()


class Odd(nn.Module):
    """A network that does one thing wrong, perhaps only after a few calls."""

    def __init__(self, fault: str, after: int):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(INPUTS, 8), nn.ReLU(), nn.Linear(8, CLASSES))
        self.fault, self.after, self.calls = fault, after, 0

    def forward(self, rows: Tensor) -> Any:
        self.calls += 1
        if self.calls <= self.after:
            return self.net(rows)
        return FAULTS[self.fault](self, rows)


class _Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        return rows.clone()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:
        raise KeyError("no backward pass")


_failing: Any = _Fails.apply


def _raise(error: Exception) -> Any:
    raise error


def _no_grad(net: Odd, rows: Tensor) -> Any:
    with torch.no_grad():
        out: Tensor = net.net(rows)
        return out


FAULTS: dict[str, Callable[[Odd, Tensor], Any]] = {
    "none": lambda net, rows: net.net(rows),
    "raises": lambda net, rows: _raise(ArithmeticError("first\nsecond")),
    "asserts": lambda net, rows: _raise(AssertionError()),
    "stops": lambda net, rows: _raise(StopIteration()),
    "looks up": lambda net, rows: dict[str, int]()["missing"],
    "backward": lambda net, rows: net.net(_failing(rows)),
    "detached": lambda net, rows: net.net(rows.detach()),
    "no grad": _no_grad,
    "whole": lambda net, rows: net.net(rows).round().long(),
    "numpy": lambda net, rows: net.net(rows).numpy(),
    "in place": lambda net, rows: net.net(rows.add_(1)),
    "one row": lambda net, rows: net.net(rows) if len(rows) == 1 else _raise(RuntimeError("only one row")),
    "nan": lambda net, rows: net.net(rows) * math.nan,
    "infinite": lambda net, rows: net.net(rows) * math.inf,
    "tuple": lambda net, rows: (net.net(rows),),
    "flat": lambda net, rows: net.net(rows).flatten(),
    "one class": lambda net, rows: net.net(rows)[:, :1],
    "more classes": lambda net, rows: net.net(rows).repeat(1, 2),
    "fewer rows": lambda net, rows: net.net(rows)[:-1],
    "complex": lambda net, rows: net.net(rows) * 1j,
    "sparse": lambda net, rows: net.net(rows).to_sparse(),
    "meta": lambda net, rows: net.net(rows).to("meta"),
    "bool": lambda net, rows: net.net(rows) > 0,
    "half": lambda net, rows: net.net(rows).half(),
    "softmax": lambda net, rows: net.net(rows).softmax(1),
    "constant": lambda net, rows: torch.zeros(len(rows), CLASSES),
    "nothing": lambda net, rows: None,
    "text": lambda net, rows: "scores",
}


def odd_model(draw: random.Random) -> hf.Model:
    """Return a model, mostly one with a fault."""
    bounds = draw.choice([None, (0, 1), (-1, 2)])
    fault, after = draw.choice(list(FAULTS)), draw.choice([0, 0, 1, 2, 3, 5, 9])
    net = Odd(fault, after).eval()
    if draw.random() < 0.25:
        return hf.FunctionModel(lambda rows: net(torch.tensor(rows)).detach().numpy(), bounds)
    return hf.TorchModel(net, bounds)


def good_cases(draw: random.Random) -> hf.Cases:
    """Return cases of a network without a fault."""
    model = hf.TorchModel(Odd("none", 0).eval(), draw.choice([None, (0, 1)]))
    seed = torch.Generator().manual_seed(draw.randrange(2**31))
    return model.ask(torch.rand(2, INPUTS, generator=seed))
