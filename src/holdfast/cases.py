"""The question "why y (and not t)?" for a batch of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.features import Features

if TYPE_CHECKING:  # a model makes cases; cases only carry it along
    from holdfast.model import Classifier

ANY = -1
"""The target of an untargeted question: any class but the label."""


def explained(logits: Tensor, label: Tensor, target: Tensor) -> Tensor:
    """The score that attributions explain, ``[R]``: the label's logit, less the target's where one is asked about."""
    own = logits.gather(1, label[:, None])[:, 0]
    other = logits.gather(1, target.clamp_min(0)[:, None])[:, 0]
    return own - other.masked_fill(target == ANY, 0)


@dataclass(frozen=True, eq=False)
class Cases:
    """Inputs ``x [B, *shape]`` with the class explained, the class asked about (or ``ANY``) and features.

    Made by ``model.ask(x, ...)``. Sub-batches: ``cases[:5]``, ``cases[mask]``.
    """

    model: Classifier
    x: Tensor
    label: Tensor
    target: Tensor
    features: Features

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, which: int | slice | Tensor) -> Cases:
        if isinstance(which, int):
            which = torch.tensor([which], device=self.x.device)
        features = self.features
        if len(features.ids) > 1:
            features = Features(features.ids[which], features.count, features.kind)
        return Cases(self.model, self.x[which], self.label[which], self.target[which], features)

    def __repr__(self) -> str:
        aim = "untargeted" if bool((self.target == ANY).all()) else "targeted"
        return (
            f"Cases({len(self)} of shape {tuple(self.x.shape[1:])}, {aim}, {self.features.count} {self.features.kind})"
        )

    @classmethod
    def ask(cls, model: Classifier, x: Any, label: Any, target: Any, features: Features | Tensor | None) -> Cases:
        """Check everything a question is made of; nothing runs on bad input."""
        x = _inputs(model, x)
        laid = _features(features, x)
        logits = model(x, as_it_is=True)
        if not bool(torch.isfinite(logits).all()):
            raise HoldfastError("the module returns NaN or infinite scores for these inputs.")
        model.warn_if_saturated(logits)
        classes = logits.shape[1]
        label = logits.argmax(1) if label is None else _classes("label", label, len(x), classes)
        aim = torch.full_like(label, ANY) if target is None else _classes("target", target, len(x), classes)
        label, aim = label.to(x.device), aim.to(x.device)
        if bool((label == aim).any()):
            case = int((label == aim).nonzero()[0])
            raise HoldfastError(
                f"the target of case {case} is its own label {int(label[case])}: ask for another class."
            )
        return cls(model, x, label, aim, laid)

    def subsets(self, subsets: Any) -> Tensor:
        """Check ``subsets`` (the features that may move): bool ``[B, K, d]``, on the model's device."""
        checked = torch.as_tensor(subsets)
        d = self.features.count
        if checked.dtype != torch.bool:
            raise HoldfastError(f"subsets must be bool (True = may move), got {checked.dtype}.")
        if checked.ndim != 3 or len(checked) != len(self) or checked.shape[1] < 1 or checked.shape[2] != d:
            raise HoldfastError(f"subsets must be [B, K, d] = [{len(self)}, K, {d}], got {tuple(checked.shape)}.")
        return checked.to(self.x.device)


def class_number(name: str, classes: Sequence[str]) -> int:
    """The number of a class by its name, however it is written."""
    known = [number for number, one in enumerate(classes) if one.lower() == name.lower()]
    if len(known) > 1:
        raise HoldfastError(f"several classes are called {name!r}: name {' or '.join(map(str, known))}.")
    if not known:
        near = [one for one in classes if name.lower() in one.lower()][:5]
        every = f": use one of {', '.join(classes)}." if 0 < len(classes) <= 20 else "."
        raise HoldfastError(f"there is no class {name!r}" + (f": did you mean {', '.join(near)}?" if near else every))
    return known[0]


def _inputs(model: Classifier, given: Any) -> Tensor:
    x: Tensor = torch.as_tensor(given)
    if x.ndim < 2 or not x.numel():
        raise HoldfastError(f"x must be a batch [B, *shape] with B >= 1, got shape {tuple(x.shape)}.")
    if not x.is_floating_point():
        raise HoldfastError(f"x must be floating point, got {x.dtype}: scale it to the model's inputs first.")
    x = x.detach().to(model.device, model.dtype)
    if not bool(torch.isfinite(x).all()):
        bad = int((~torch.isfinite(x)).flatten(1).any(1).nonzero()[0])
        raise HoldfastError(f"x holds NaN or infinity, first in case {bad}.")
    if model.low is not None and model.high is not None:
        _check_bounds(x, model.low, model.high)
    return x


def _check_bounds(x: Tensor, low: Tensor, high: Tensor) -> None:
    try:
        if torch.broadcast_shapes(low.shape, high.shape, x.shape[1:]) != x.shape[1:]:
            raise RuntimeError("bounds are larger than an input")
        outside = ((x < low) | (x > high)).flatten(1).any(1)
    except RuntimeError as error:
        shapes = f"{tuple(low.shape)} and {tuple(high.shape)}"
        raise HoldfastError(f"bounds of shape {shapes} do not fit inputs of shape {tuple(x.shape[1:])}.") from error
    if bool(outside.any()):
        bad = int(outside.nonzero()[0])
        raise HoldfastError(
            f"x leaves the model's bounds, first in case {bad} (values {x[bad].min().item():g} to "
            f"{x[bad].max().item():g}): scale x or widen bounds."
        )


def _features(features: Features | Tensor | None, x: Tensor) -> Features:
    shape = tuple(x.shape[1:])
    if features is None:
        if len(shape) == 3:
            return Features.pixels(shape).bind(x)
        return Features(torch.arange(x[0].numel()).reshape(1, *shape), x[0].numel(), "coordinates").bind(x)
    return (features if isinstance(features, Features) else Features.of(features)).bind(x)


def _classes(name: str, value: Any, cases: int, classes: int) -> Tensor:
    given = torch.as_tensor(value)
    if given.is_floating_point() or given.dtype == torch.bool:
        raise HoldfastError(f"{name} must be integers, got {given.dtype}.")
    if given.ndim > 1 or (given.ndim == 1 and len(given) != cases):
        raise HoldfastError(f"{name} must be one class or one a case [{cases}], got shape {tuple(given.shape)}.")
    if bool(((given < 0) | (given >= classes)).any()):
        raise HoldfastError(f"{name} must be a class from 0 to {classes - 1}, got {given.tolist()}.")
    return given.long().expand(cases).clone()
