"""Cases: the question "why this class (and not that one)?" for a batch of inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.features import Features
from holdfast.models.model import Model
from holdfast.settings import shown_value
from holdfast.tensors import read_tensor

ANY = -1
"""The target of an untargeted question: any class but the label."""


def explained(logits: Tensor, label: Tensor, target: Tensor) -> Tensor:
    """Return the score that attributions explain.

    Args:
        logits: ``[R, classes]``.
        label: The explained class of each row, ``[R]``.
        target: The class asked about, ``[R]``; ``ANY`` for none.

    Returns:
        ``[R]``: the label's logit, minus the target's logit where there is a target.
    """
    own = logits.gather(1, label[:, None])[:, 0]
    other = logits.gather(1, target.clamp_min(0)[:, None])[:, 0]
    return own - other.masked_fill(target == ANY, 0)


@dataclass(frozen=True, eq=False)
class Cases:
    """Inputs with the class that is explained, the class asked about, and features. Made by ``model.ask(x)``.

    ``cases[:5]``, ``cases[3]`` and ``cases[mask]`` are smaller batches.

    Attributes:
        model: The model that is asked.
        x: Inputs ``[B, *shape]``.
        label: The explained class of each input, ``[B]``.
        target: The class asked about, ``[B]``: "why not this class?". ``ANY`` where there is none.
        features: What moves together.
    """

    model: Model
    x: Tensor
    label: Tensor
    target: Tensor
    features: Features

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, which: int | slice | Tensor | Sequence[int]) -> Cases:
        if not isinstance(which, slice):
            which = _indices(which, len(self)).to(self.x.device)
        features = self.features.at(which)
        return Cases(self.model, self.x[which], self.label[which], self.target[which], features)

    def __iter__(self) -> Iterator[Cases]:
        return (self[case] for case in range(len(self)))

    def __repr__(self) -> str:
        aim = "untargeted" if bool((self.target == ANY).all()) else "targeted"
        return (
            f"Cases({len(self)} of shape {tuple(self.x.shape[1:])}, {aim}, {self.features.count} {self.features.kind})"
        )

    @classmethod
    def ask(cls, model: Model, x: Any, label: Any, target: Any, features: Features | Tensor | str | None) -> Cases:
        """Check all parts of a question before anything runs. See ``AskableModel.ask``."""
        model.check_ready()
        x = _inputs(model, x)
        _check_domain(model, x)
        bound = _features(model.features if features is None else features, x)
        scores = model(x, exact=True)
        if not bool(torch.isfinite(scores).all()):
            raise HoldfastError("the model returns NaN or infinite scores for these inputs.")
        model.warn_if_saturated(scores)
        label = scores.argmax(1) if label is None else _classes("label", label, len(x), model)
        aim = torch.full_like(label, ANY) if target is None else _classes("target", target, len(x), model)
        label, aim = label.to(x.device), aim.to(x.device)
        if bool((label == aim).any()):
            case = int((label == aim).nonzero()[0])
            name = model.class_name(int(label[case]))
            raise HoldfastError(f"the target of case {case} is its own label {name}: ask for another class.")
        return cls(model, x, label, aim, bound)

    def subsets(self, subsets: Any) -> Tensor:
        """Check subsets of the features.

        Args:
            subsets: Bool ``[B, K, d]``, a tensor or an array: K subsets for each case. ``[B, d]`` is one for each.

        Returns:
            Bool ``[B, K, d]`` on the model's device.

        Raises:
            HoldfastError: The type or the shape is wrong.
        """
        checked = read_tensor(subsets, "subsets", "bool [B, K, d]")
        d = self.features.count
        if checked.dtype != torch.bool:
            raise HoldfastError(f"subsets must be bool (True: in the subset), got {checked.dtype}.")
        checked = checked[:, None] if checked.ndim == 2 else checked
        if checked.ndim != 3 or len(checked) != len(self) or checked.shape[1] < 1 or checked.shape[2] != d:
            raise HoldfastError(f"subsets must be [B, K, d] = [{len(self)}, K, {d}], got {tuple(checked.shape)}.")
        return checked.to(self.x.device)


class AskableModel(Model):
    """A model that makes cases."""

    def ask(
        self,
        x: Any,
        label: Any = None,
        target: Any = None,
        features: Features | Tensor | str | None = None,
    ) -> Cases:
        """Ask "why ``label`` (and not ``target``)?" about a batch of inputs.

        Args:
            x: Inputs ``[B, *shape]``, a float tensor or array.
            label: The class to explain, by number or name, one for all inputs or one for each. Default: the
                prediction.
            target: The class asked about, in the same forms. Default: none, so that any other class is a change.
            features: What moves together: ``Features``, integer ids ``[*shape]`` or ``[B, *shape]``, or
                for images ``"pixels"``, ``"patches:16"``, ``"superpixels:50"``. Default: those of the columns that the
                model was made with; pixels of images ``[B, C, H, W]``; otherwise every coordinate.

        Returns:
            The cases, ready for explainers, criteria and robustness methods.

        Raises:
            HoldfastError: A part of the question is malformed or does not fit the model.
        """
        return Cases.ask(self, x, label, target, features)


def check_cases(cases: object) -> None:
    """Refuse what is not ``Cases``, such as a bare tensor of inputs, and models that are not ready."""
    if not isinstance(cases, Cases):
        raise HoldfastError(f"expected cases, made by model.ask(x), got {type(cases).__name__}.")
    if not len(cases):
        raise HoldfastError("there is no case to work on: expected at least one.")
    cases.model.check_ready()


def _indices(given: Any, count: int) -> Tensor:
    """Return the numbers of some of the cases, or a mask of them."""
    which = read_tensor(given, "the index of cases", "whole numbers, a mask or a slice")
    which = which[None] if which.ndim == 0 else which
    mask = which.dtype == torch.bool and which.shape == (count,)
    empty = which.numel() == 0
    if which.ndim != 1 or not (mask or empty or not (which.is_floating_point() or which.dtype == torch.bool)):
        raise HoldfastError(
            f"cases are chosen by whole numbers, a mask [{count}] or a slice, got {shown_value(given)}."
        )
    if not mask and bool(((which < -count) | (which >= count)).any()):
        raise HoldfastError(f"there are {count} cases, got the index {shown_value(given)}.")
    return which if mask else which.long()


def _inputs(model: Model, given: Any) -> Tensor:
    x = read_tensor(given, "x", "a tensor or an array [B, *shape]")
    if x.ndim < 2 or not x.numel():
        raise HoldfastError(f"x must be a batch [B, *shape] with B >= 1, got shape {tuple(x.shape)}.")
    if not x.is_floating_point():
        raise HoldfastError(f"x must be floating point, got {x.dtype}: scale it to the model's inputs first.")
    x = x.to(model.device, model.dtype)
    if not bool(torch.isfinite(x).all()):
        bad = int((~torch.isfinite(x)).flatten(1).any(1).nonzero()[0])
        raise HoldfastError(f"x holds NaN or infinity, first in case {bad}.")
    if model.low is not None and model.high is not None:
        _check_bounds(x, model.low, model.high)
    return x


def _check_bounds(x: Tensor, low: Tensor, high: Tensor) -> None:
    try:
        if np.broadcast_shapes(low.shape, high.shape, x.shape[1:]) != x.shape[1:]:
            raise ValueError("bounds are larger than an input")
    except ValueError as error:
        shapes = f"{tuple(low.shape)} and {tuple(high.shape)}"
        raise HoldfastError(f"bounds of shape {shapes} do not fit inputs of shape {tuple(x.shape[1:])}.") from error
    outside = ((x < low) | (x > high)).flatten(1).any(1)
    if bool(outside.any()):
        bad = int(outside.nonzero()[0])
        raise HoldfastError(
            f"x leaves the model's bounds, first in case {bad} (values {x[bad].min().item():g} to "
            f"{x[bad].max().item():g}): scale x or widen bounds."
        )


def _check_domain(model: Model, x: Tensor) -> None:
    """Refuse inputs that are not in the domain of the model, such as 2.5 children."""
    if model.domain is None:
        return
    if tuple(x.shape[1:]) != (len(model.domain),):
        raise HoldfastError(f"x must be rows of {len(model.domain)} coordinates, got shape {tuple(x.shape)}.")
    inside = model.domain.contains(x, x)
    if not bool(inside.all()):
        raise HoldfastError(
            f"x is no row of the table, first in case {int((~inside).nonzero()[0])}: encode rows by Columns.encode, or "
            "round them by domain.nearest."
        )


def _features(features: Features | Tensor | str | None, x: Tensor) -> Features:
    shape = tuple(x.shape[1:])
    if features is None:
        if len(shape) == 3:
            return Features.pixels(shape).bind(x)
        return Features(torch.arange(x[0].numel()).reshape(1, *shape), x[0].numel(), "coordinates").bind(x)
    if isinstance(features, str):
        return Features.parse(features, x).bind(x)
    return (features if isinstance(features, Features) else Features.of(features)).bind(x)


def _classes(name: str, value: Any, cases: int, model: Model) -> Tensor:
    if isinstance(value, str):
        value = model.class_number(value)
    elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype.kind in "UO"):
        value = [model.class_number(one) if isinstance(one, str) else one for one in value]
    given = read_tensor(value, name, "class numbers or names")
    if given.is_floating_point() or given.dtype == torch.bool:
        raise HoldfastError(f"{name} must be class numbers or names, got {given.dtype}.")
    if given.ndim > 1 or (given.ndim == 1 and len(given) != cases):
        raise HoldfastError(f"{name} must be one class or one a case [{cases}], got shape {tuple(given.shape)}.")
    if bool(((given < 0) | (given >= len(model.classes))).any()):
        raise HoldfastError(f"{name} must be a class from 0 to {len(model.classes) - 1}, got {given.tolist()}.")
    return given.long().expand(cases).clone()
