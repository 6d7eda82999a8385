"""The arguments of Captum's ``attribute`` in the terms of this package: inputs, classes, features, settings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.explainers.gradients import ExpectedGradients, IntegratedGradients
from holdfast.explainers.removal import KernelShap
from holdfast.features import Features
from holdfast.reference import FixedReference
from holdfast.settings import Count, read_setting, shown_value
from holdfast.tensors import read_tensor

# Captum's argument, the setting it is, and the explainers that have it.
_COUNTS: dict[str, tuple[str, tuple[type[Explainer], ...]]] = {
    "n_steps": ("steps", (IntegratedGradients,)),
    "n_samples": ("samples", (KernelShap, ExpectedGradients)),
}
_BATCHES = ("internal_batch_size", "perturbations_per_eval")


def read_inputs(inputs: Any) -> tuple[Tensor, ...]:
    """Return the inputs of a module, one tensor ``[B, *shape]`` for each.

    Raises:
        HoldfastError: One is no batch, or they are not equally many.
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    parts = tuple(read_tensor(one, "inputs", "a tensor [B, *shape] or a tuple of them") for one in given)
    shapes = ", ".join(str(tuple(part.shape)) for part in parts) or "an empty tuple"
    if not parts or any(part.ndim < 2 or not part.numel() for part in parts):
        raise HoldfastError(f"inputs must be a tensor [B, *shape] or a tuple of them, with B >= 1, got {shapes}.")
    if len({len(part) for part in parts}) > 1:
        raise HoldfastError(f"the inputs of a module with several must be equally many, got {shapes}.")
    return parts


def read_forward(given: Any, cases: int) -> tuple[tuple[Any, ...], tuple[bool, ...]]:
    """Return further arguments of the module, and which of them have one row for each case.

    Raises:
        HoldfastError: A tensor has no values.
    """
    arguments = given if isinstance(given, tuple) else () if given is None else (given,)
    if any(isinstance(one, Tensor) and one.is_meta for one in arguments):
        raise HoldfastError("additional_forward_args must have values, got a meta tensor.")
    return arguments, tuple(_has_rows(one, cases) for one in arguments)


def _has_rows(given: Any, cases: int) -> bool:
    """Whether an argument is a dense tensor whose first axis is as long as the batch."""
    dense = isinstance(given, Tensor) and given.layout is torch.strided and not given.is_nested
    return dense and given.ndim > 0 and len(given) == cases


def read_target(target: Any, cases: int, class_axis: int) -> tuple[Tensor | None, list[tuple[int, ...]]]:
    """Return the class of each case, and its position on the other axes of the output.

    Args:
        target: k, ``(k, …)``, a list of either for each case, or a tensor of one class or one for each case.
        cases: The number of cases.
        class_axis: The axis of the classes in outputs with more than two axes.

    Returns:
        Classes ``[B]``, None for no target, and positions, empty for outputs ``[B, classes]``.

    Raises:
        HoldfastError: The target has none of these forms.
    """
    if target is None:
        return None, [()] * cases
    expected = f"one class for each of {cases} inputs"
    each = [target] * cases if isinstance(target, tuple) else target
    if not isinstance(each, list):
        labels = read_tensor(each, "target", expected)
        labels = labels.reshape(()) if labels.numel() == 1 else labels
        if tuple(labels.shape) not in {(), (cases,)}:
            raise HoldfastError(f"target must be {expected}, got {tuple(labels.shape)}.")
        return labels.expand(cases), [()] * cases
    each = [one if isinstance(one, tuple) else (one,) for one in each]
    each = each * cases if len(each) == 1 else each
    lengths = {len(one) for one in each}
    if len(each) != cases or len(lengths) != 1:
        raise HoldfastError(f"target must be {expected}, got {shown_value(target)}.")
    each = [tuple(_number(one, expected) for one in numbers) for numbers in each]
    axes = lengths.pop()
    if axes == 0 or (axes > 1 and not 1 <= class_axis <= axes):
        raise HoldfastError(
            f"target must have an index for the classes on axis {class_axis}, got {shown_value(target)}."
        )
    own = class_axis - 1 if axes > 1 else 0
    return torch.tensor([one[own] for one in each]), [(*one[:own], *one[own + 1 :]) for one in each]


def _number(given: Any, expected: str) -> int:
    one = read_tensor(given, "target", f"{expected}, by number")
    if one.numel() != 1 or one.is_floating_point() or one.dtype == torch.bool:
        raise HoldfastError(f"target must be {expected}, by number, got {shown_value(given)}.")
    return int(one)


def read_features(feature_mask: Any, parts: tuple[Tensor, ...]) -> Features:
    """Return the features of one input or of several joined ones.

    Args:
        feature_mask: Numbers of features in the shape of an input or of the batch, a tuple of them for several inputs.
            None: every coordinate is a feature.
        parts: The inputs.

    Raises:
        HoldfastError: It does not hold the number of a feature for every coordinate.
    """
    joined = len(parts) > 1
    if feature_mask is None:
        shape = (sum(part[0].numel() for part in parts),) if joined else tuple(parts[0].shape[1:])
        return Features.of(torch.arange(sum(part[0].numel() for part in parts)).reshape(1, *shape))
    masks = feature_mask if isinstance(feature_mask, tuple) else (feature_mask,)
    if len(masks) != len(parts):
        raise HoldfastError(f"feature_mask has {len(masks)} tensors for {len(parts)} inputs: give one for each.")
    ids = [_ids(mask, part) for mask, part in zip(masks, parts, strict=True)]
    if not joined:
        return Features.of(ids[0])
    most = max(len(mask) for mask in ids)
    return Features.of(torch.cat([mask.expand(most, *mask.shape[1:]).flatten(1).cpu() for mask in ids], 1))


def _ids(given: Any, part: Tensor) -> Tensor:
    """Return the mask of one input as whole numbers ``[1 or B, *shape]``."""
    mask = read_tensor(given, "feature_mask", "numbers of features in the shape of the inputs")
    rows = len(mask) if mask.ndim == part.ndim else 1
    try:
        whole = torch.broadcast_to(mask, (rows, *part.shape[1:]))
    except RuntimeError:
        rows = 0
    if rows not in (1, len(part)):
        raise HoldfastError(
            f"feature_mask of shape {tuple(mask.shape)} does not cover inputs of shape {tuple(part.shape)}."
        )
    if whole.is_floating_point() or bool((whole < 0).any()):
        raise HoldfastError("feature_mask must give every coordinate the number of its feature, from 0.")
    return whole.long()


def takes_baselines(explainer: Explainer | type[Explainer]) -> bool:
    """Return whether an explainer has a reference, or a distribution of them, as a setting."""
    return bool({"reference", "references"} & _settings(explainer))


def read_baselines(explainer: Explainer, baselines: Any, parts: tuple[Tensor, ...]) -> Tensor | None:
    """Check baselines and join them as the inputs are.

    Args:
        explainer: The explainer that is to take them.
        baselines: A number or a tensor ``[1 or B, *shape]``, or a tuple of these for several inputs. For an explainer
            with a distribution of references: ``[N, *shape]``.
        parts: The inputs.

    Returns:
        ``[1 or B or N, *shape]``; None for none.

    Raises:
        HoldfastError: The explainer takes none, or they do not fit the inputs.
    """
    if baselines is None:
        return None
    if not takes_baselines(explainer):
        names = [name for name, kind in Explainer.registry.classes().items() if takes_baselines(kind)]
        raise HoldfastError(
            f"{type(explainer).__name__} compares with no baseline: leave baselines out, or use one of "
            f"{', '.join(names)}."
        )
    given = baselines if isinstance(baselines, tuple) else (baselines,)
    if len(given) != len(parts):
        raise HoldfastError(f"baselines has {len(given)} entries for {len(parts)} inputs: give one for each.")
    many = "reference" not in _settings(explainer)
    rows = []
    for one, part in zip(given, parts, strict=True):
        expected = (
            f"a number or a tensor [{'N' if many else f'1 or {len(part)}'}, *shape] of inputs {tuple(part.shape)}"
        )
        exact = torch.tensor(one, dtype=torch.double) if isinstance(one, float) else one
        values = read_tensor(exact, "baselines", expected)
        if values.dtype == torch.bool:
            raise HoldfastError(f"baselines must be {expected}, got {values.dtype}.")
        values = values.to(parts[0].device, torch.promote_types(part.dtype, torch.float32))
        values = values.expand(1, *part.shape[1:]) if values.ndim == 0 else values
        if values.shape[1:] != part.shape[1:] or not (len(values) if many else len(values) in (1, len(part))):
            raise HoldfastError(f"baselines must be {expected}, got {tuple(values.shape)}.")
        if not bool(torch.isfinite(values).all()):
            raise HoldfastError("baselines hold NaN or infinity.")
        rows.append(values)
    most = max(map(len, rows))
    if any(len(values) not in (1, most) for values in rows):
        counts = ", ".join(str(len(values)) for values in rows)
        raise HoldfastError(f"baselines of several inputs must be equally many, got {counts}.")
    if len(rows) == 1:
        return rows[0]
    return torch.cat([values.expand(most, *values.shape[1:]).flatten(1) for values in rows], 1)


def with_baselines(explainer: Explainer, rows: Tensor | None, cases: int, which: Tensor) -> Explainer:
    """Return the explainer of some cases with baselines as its reference."""
    if rows is None:
        return explainer
    names = _settings(explainer)
    if "reference" not in names:
        return replace(explainer, references=FixedReference(rows))  # type: ignore[type-var]  # a dataclass
    own = rows[which.to(rows.device)] if len(rows) == cases else rows[0]
    changed: dict[str, Any] = {"reference": FixedReference(own)} | (
        {"references": None} if "references" in names else {}
    )
    return replace(explainer, **changed)  # type: ignore[type-var]  # a dataclass


def with_counts(explainer: Explainer, further: dict[str, Any]) -> tuple[Explainer, int | None]:
    """Read the other arguments of Captum's methods. One that is None, False or 0 is off.

    Returns:
        The explainer with the settings that they name, and the batch size if one is given.

    Raises:
        HoldfastError: An argument has no meaning for this explainer.
    """
    batch = None
    for name, value in further.items():
        if value is None or (isinstance(value, (bool, int, float)) and not value):
            continue
        if name in _BATCHES:
            batch = read_setting(value, Count, name)
            continue
        setting, kinds = _COUNTS.get(name, ("", ()))
        if not isinstance(explainer, kinds):
            known = ["baselines", "additional_forward_args", "feature_mask", *_BATCHES]
            known += [one for one, (_, own) in _COUNTS.items() if isinstance(explainer, own)]
            raise HoldfastError(f"{type(explainer).__name__} has no argument {name}: use {', '.join(known)}.")
        explainer = replace(explainer, **{setting: value})  # type: ignore[type-var]  # a dataclass
    return explainer, batch


def _settings(explainer: Explainer | type[Explainer]) -> set[str]:
    return {one.name for one in fields(explainer)} if is_dataclass(explainer) else set()
