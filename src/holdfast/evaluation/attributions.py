"""Attributions of other libraries and of the caller: which shapes they come in, and which class they are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.errors import HoldfastError, first_line
from holdfast.prose import counted, listed
from holdfast.ranking import Ranking, fits_scores
from holdfast.tensors import read_tensor


def ranking_of(given: Any, cases: Cases, name: str, seed: int) -> Ranking:
    """Rank features by attributions in any usual form.

    Args:
        given: A tensor, an array, lists, a data frame, or an object that keeps them in ``values``, as SHAP's do. One
            score a feature ``[B, d]`` or a coordinate ``[B, *shape]``, or as ``[B, H, W]`` or ``[B, H, W, C]`` of
            images. A last axis with one entry for each class, or a list of one array for each class, is read at the
            class that is explained, minus the target if there is one.
        cases: The cases.
        name: What made them, as text.
        seed: Draws the order of features with equal scores.

    Returns:
        The ranking, with a note if all features of a case have the same score.

    Raises:
        HoldfastError: They are in no such form, do not fit the cases, or are not finite.
    """
    held, columns = _opened(given)
    values, by_class = _tensor(held)
    values = values if values.is_floating_point() else values.to(cases.x)
    values = _by_names(values, columns, cases)
    for scores in _readings(values, cases, by_class):
        if fits_scores(cases, scores.shape):
            ranking = Ranking.by_score(cases, scores, name, seed)
            one_output = hasattr(given, "base_values") and scores.shape == values.shape
            return replace(ranking, notes=(*_equal(ranking), *(_two_classes(cases) if one_output else ())))
    raise _unfit(values, cases)


def _opened(given: Any) -> tuple[Any, list[Any]]:
    """Return the values that an object keeps, or the object itself, and the names of its columns, if it has any."""
    try:
        held, columns = getattr(given, "values", None), getattr(given, "columns", None)
        return (given if held is None or callable(held) else held), [] if columns is None else [*columns]
    except Exception as error:  # objects of the caller fail in many ways
        raise HoldfastError(f"attributions cannot be read from {type(given).__name__}: {first_line(error)}") from error


def _tensor(given: Any) -> tuple[Tensor, bool]:
    """Return attributions as a tensor, and whether they come as a list of arrays, which are by class in SHAP."""
    if isinstance(given, (list, tuple)) and given and all(hasattr(one, "shape") for one in given):
        parts = [read_tensor(one, "attributions", "a tensor or an array") for one in given]
        if len(parts) == 1 and parts[0].ndim > 1:  # Captum returns a tuple where inputs are one
            return parts[0], False
        shapes = sorted({tuple(one.shape) for one in parts})
        if len(shapes) > 1:
            raise HoldfastError(f"a list of attributions must have one shape, got {listed([*map(str, shapes[:3])])}.")
        return torch.stack([one.cpu() for one in parts]), parts[0].ndim > 1
    return read_tensor(given, "attributions", "a tensor or an array, such as [B, d]"), False


def _by_names(values: Tensor, names: list[Any], cases: Cases) -> Tensor:
    """Put the columns of a data frame into the order of the features of the same names."""
    known = cases.features.names
    if known is None or len(known) != 1 or not names or not all(isinstance(one, str) for one in names):
        return values
    missing = [one for one in known[0] if one not in names]
    if missing or len(names) != len(known[0]) or values.ndim != 2:
        what = f"no column {missing[0]!r}" if missing else f"{counted(len(names), 'column')}"
        raise HoldfastError(f"a data frame needs one column for each of {len(known[0])} features, got {what}.")
    return values[:, [names.index(one) for one in known[0]]]


def _readings(values: Tensor, cases: Cases, by_class: bool) -> Iterator[Tensor]:
    """Yield what the values may mean, the likeliest first."""
    classes = len(cases.model.classes)
    for given in (values, values[None]) if len(cases) == 1 else (values,):
        yield given
        first = [given.movedim(0, -1)] if given.ndim > 2 and given.shape[0] == classes else []
        last = [given] if given.ndim > 2 and given.shape[-1] == classes else []
        for scores in [*first, *last] if by_class else [*last, *first]:
            if len(scores) == len(cases):
                chosen = _of_class(scores, cases)
                yield chosen
                yield from _channels_first(chosen, cases)
        yield from _channels_first(given, cases)


def _of_class(scores: Tensor, cases: Cases) -> Tensor:
    """Return the scores of the explained class, ``[B, …]`` of ``[B, …, classes]``, minus those of the target."""
    rows = torch.arange(len(cases), device=scores.device)
    label, target = cases.label.to(scores.device), cases.target.to(scores.device)
    own, other = scores[rows, ..., label], scores[rows, ..., target.clamp_min(0)]
    asked = (target != ANY).view(-1, *[1] * (own.ndim - 1))
    return torch.where(asked, own - other, own)


def _channels_first(scores: Tensor, cases: Cases) -> Iterator[Tensor]:
    """Yield scores of images as ``[B, C, H, W]``, if they came as ``[B, H, W, C]``."""
    if scores.ndim == 4 and cases.x.ndim == 4:
        yield scores.movedim(-1, 1)


def _equal(ranking: Ranking) -> tuple[str, ...]:
    """Return a note on cases without any order."""
    equal = int((ranking.scores == ranking.scores[:, :1]).all(1).sum()) if ranking.scores.shape[1] > 1 else 0
    return (f"all features of {counted(equal, 'case')} have the same score: the seed draws their order.",) * bool(equal)


def _two_classes(cases: Cases) -> tuple[str, ...]:
    """Return a note on explanations of SHAP without classes, which are about the second one of two."""
    first = int((cases.label == 0).sum())
    if len(cases.model.classes) != 2 or not first:
        return ()
    name = cases.model.class_name(0)
    return (
        f"these SHAP values have no axis of classes and were read as about the label of each case: if they are about "
        f"the second class, multiply those of the {counted(first, 'case')} of class {name} by -1.",
    )


def _unfit(values: Tensor, cases: Cases) -> HoldfastError:
    b, d, shape = len(cases), cases.features.count, tuple(cases.x.shape)
    fitting = [f"[{b}, {d}]"] if shape == (b, d) else [f"[{b}, {d}]", f"the shape of the inputs {[*shape]}"]
    return HoldfastError(
        f"attributions must be {listed(fitting, 'or')}, with or without a last axis of {len(cases.model.classes)} "
        f"classes, got {[*values.shape]}."
    )
