"""Odd calls of the doors to other libraries, for the trial of the API."""

from __future__ import annotations

import random
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import torch
from captum import attr as captum
from torch import Tensor, nn

import holdfast as hf
from holdfast.interop.captum import AsCaptum, from_captum
from holdfast.interop.quantus import explain_func
from trial.api_values import CLASSES, FAULTS, INPUTS, Odd, odd_tensor, odd_value

_EXPLAINERS: list[Any] = [
    hf.Grad(),
    hf.IntegratedGradients(),
    hf.LeaveOneOut(),
    hf.KernelShap(samples=20),
    hf.ExpectedGradients(torch.rand(3, INPUTS), 4),
    hf.DeepLift(),
    hf.Random(),
    hf.GreedyAS(hf.RobustnessRest(hf.MinNorm(steps=4)), step=0.5, samples=2),
]
_METHODS: list[Callable[[nn.Module], Any]] = [
    captum.Saliency,
    captum.InputXGradient,
    captum.IntegratedGradients,
    captum.FeatureAblation,
    captum.ShapleyValueSampling,
    captum.KernelShap,
    captum.GradientShap,
    captum.Occlusion,
    captum.DeepLift,
    lambda net: captum.NoiseTunnel(captum.Saliency(net)),
    lambda net: captum.LayerActivation(net, net),
]
_NAMES = {  # of arguments, and a value that some of the methods take
    "baselines": 0.5,
    "n_steps": 3,
    "n_samples": 3,
    "internal_batch_size": 2,
    "perturbations_per_eval": 1,
    "feature_mask": torch.arange(INPUTS)[None] // 2,
    "additional_forward_args": None,
    "sliding_window_shapes": (2,),
    "strides": (1,),
    "nt_samples": 2,
    "stdevs": 0.1,
    "abs": False,
    "nsteps": 3,
    "target": 1,
}


class _Several(nn.Module):
    """A module of one or two inputs with a further argument; returns classes, a grid of them or one score."""

    def __init__(self, out: str):
        super().__init__()
        self.net, self.out = nn.Linear(INPUTS, CLASSES), out

    def forward(self, left: Tensor, right: Any = None, shift: Any = 0) -> Any:
        rows = torch.cat([left, right], 1) if isinstance(right, Tensor) else left
        scores = self.net(rows + shift)
        shaped = {"classes": scores, "grid": scores[:, :, None].repeat(1, 1, 2), "score": scores[:, 0]}
        return shaped[self.out]


def _module(draw: random.Random) -> nn.Module:
    if draw.random() < 0.3:
        return Odd(draw.choice(list(FAULTS)), draw.choice([0, 0, 1, 2, 5])).eval()
    return _Several(draw.choice([*["classes"] * 4, "grid", "score"])).eval()


def _bounds(draw: random.Random) -> Any:
    size = draw.choice([(), (INPUTS,), (3,), (1, INPUTS), (2, INPUTS), (0,)])
    odd = draw.choice([(torch.zeros(size), torch.ones(size)), odd_value(draw)])
    return draw.choice([None, (0, 1)]) if draw.random() < 0.8 else odd


def _inputs(draw: random.Random) -> Any:
    x = torch.rand(2, INPUTS)
    odd: list[Callable[[], Any]] = [
        lambda: odd_tensor(draw, (2, INPUTS)),
        lambda: (odd_tensor(draw, (2, 2)), odd_tensor(draw, (2, INPUTS - 2))),
        lambda: (x[:, :2], x[: draw.choice([1, 2]), 2:]),
        lambda: odd_value(draw),
        lambda: (odd_value(draw), odd_value(draw)),
        lambda: (),
    ]
    return x if draw.random() < 0.7 else draw.choice(odd)()


def _target(draw: random.Random) -> Any:
    odd: list[Callable[[], Any]] = [
        lambda: odd_value(draw),
        lambda: odd_tensor(draw, (2,)),
        lambda: [odd_value(draw), odd_value(draw)],
        lambda: (odd_value(draw), odd_value(draw)),
        lambda: [(0, odd_value(draw)), (1, 1)],
        lambda: [10**30] * 2,
    ]
    good = [None, 1, [0, 1], torch.tensor([0, 1]), [np.int64(0), 1], (1, 0), [(0, 1), (1, 1)]]
    return draw.choice(good) if draw.random() < 0.6 else draw.choice(odd)()


def _mask(draw: random.Random) -> Any:
    return draw.choice([odd_tensor(draw, (1, INPUTS)), (odd_value(draw), odd_tensor(draw)), odd_value(draw)])


def _forward(draw: random.Random) -> Any:
    second = draw.choice([None, torch.rand(2, 1), odd_tensor(draw, (2, INPUTS))])
    return draw.choice([(None, second), (None, odd_tensor(draw, (2, INPUTS))), second, odd_value(draw), ()])


def as_captum(draw: random.Random) -> Any:
    """Call an explainer as Captum would, with odd arguments."""
    method: Any = AsCaptum(
        draw.choice(_EXPLAINERS),
        _module(draw),
        _bounds(draw),
        class_axis=draw.choice([1] * 9 + [2, odd_value(draw)]),
    )
    odd: dict[str, Callable[[], Any]] = {
        "target": lambda: _target(draw),
        "baselines": lambda: draw.choice([odd_tensor(draw, (2, INPUTS)), odd_value(draw), (0, odd_value(draw))]),
        "feature_mask": lambda: _mask(draw),
        "additional_forward_args": lambda: _forward(draw),
        draw.choice(["n_steps", "n_samples", "internal_batch_size", "nsteps"]): lambda: odd_value(draw),
    }
    chosen = draw.sample(list(odd), draw.choice([0, 1, 1, 2]))
    inputs = _inputs(draw)
    if draw.random() < 0.1:
        method.attribute(torch.rand(2, INPUTS), target=1)  # what a first call leaves behind
    result = method.attribute(inputs, **{name: odd[name]() for name in chosen})
    return torch.cat([one.flatten() for one in result]) if isinstance(result, tuple) else result


def made_of_captum(draw: random.Random) -> Any:
    """Use a Captum object as an explainer, with odd arguments."""
    net = _module(draw)
    method = draw.choice(_METHODS)(net) if draw.random() < 0.95 else odd_value(draw)
    known = list(signature(method.attribute).parameters) if isinstance(method, captum.Attribution) else []
    fitting = [name for name in _NAMES if name in known and name != "target"] if draw.random() < 0.8 else list(_NAMES)
    names = draw.sample(fitting, min(len(fitting), draw.choice([0, 1, 1, 2])))
    arguments: dict[str, Any] = {name: _NAMES[name] if draw.random() < 0.6 else odd_value(draw) for name in names}
    if isinstance(method, captum.Occlusion):
        arguments.setdefault("sliding_window_shapes", (2,))
    explainer = from_captum(method, seed=draw.choice([0, 0, -1, -1, 10**30, odd_value(draw)]), **arguments)
    features = draw.choice([None, torch.arange(INPUTS) // 2, torch.tensor([0, 0, 1, 1, -1, -1])])
    model = hf.TorchModel(net, draw.choice([None, (0, 1)]))
    return explainer(model.ask(torch.rand(2, INPUTS), features=features)).scores


def as_quantus(draw: random.Random) -> Any:
    """Call an explanation function as Quantus would, with odd inputs and targets."""
    features: Any = None if draw.random() < 0.85 else draw.choice([lambda x: odd_tensor(draw), odd_value(draw)])
    explain = explain_func(draw.choice(_EXPLAINERS), _bounds(draw), features)
    module = _module(draw) if draw.random() < 0.9 else odd_value(draw)
    inputs = torch.rand(2, INPUTS).numpy() if draw.random() < 0.6 else odd_tensor(draw, (2, INPUTS))
    targets = np.array([0, 1]) if draw.random() < 0.6 else odd_tensor(draw, (2,))
    inputs, targets = (odd_value(draw) if draw.random() < 0.1 else one for one in (inputs, targets))
    return torch.as_tensor(explain(module, inputs, targets))


def compared(draw: random.Random) -> Any:
    """Compare odd attributions with a good one, sometimes with one more odd argument; return the scores of all."""
    model = hf.TorchModel(_module(draw), draw.choice([None, (0, 1), (0, 1)]))
    x = torch.rand(2, INPUTS)
    given: list[Callable[[], Any]] = [
        lambda: odd_tensor(draw, (2, INPUTS)),
        lambda: odd_tensor(draw, (2, INPUTS, CLASSES)),
        lambda: odd_value(draw),
    ]
    methods: Any = {"good": x, draw.choice(["odd", "a\n<b>$\x1b", ""]): draw.choice(given)()}
    odd = ["criteria", "sizes", "main", "label", "target", "features", "progress", "seed"]
    arguments: dict[str, Any] = {name: odd_value(draw) for name in draw.sample(odd, draw.choice([0, 0, 1]))}
    criteria = [hf.Insertion(0.5), hf.RobustnessRest(hf.MinNorm(steps=3))]
    result = hf.compare(model, x, methods, **{"criteria": criteria, **arguments})
    assert repr(result)
    assert result.to_dict()
    return torch.cat([ranking.scores.double() for ranking in result.rankings.values()])


DOORS: dict[str, Callable[[random.Random], Any]] = {
    "as captum": as_captum,
    "from captum": made_of_captum,
    "quantus": as_quantus,
    "compare": compared,
}
