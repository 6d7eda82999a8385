"""Convert rankings, inputs and explanations to arrays for the store, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from holdfast.analyses.analysis import Arrays
from holdfast.cases import Cases
from holdfast.experiment.store import Unit
from holdfast.explanation import Explanation
from holdfast.features import Features
from holdfast.ranking import Ranking

_FULL = 32767  # stands for the largest change, in 16 bits


def pack_ranking(ranking: Ranking) -> Arrays:
    """Convert a ranking to arrays.

    Args:
        ranking: The ranking of B cases.

    Returns:
        ``order`` and ``scores`` ``[B, d]``, ``count`` and ``uninformative`` ``[B]``, and ``uncertain`` if it is known.
    """
    small = ranking.order.shape[1] < 2**15
    arrays = {
        "order": _array(ranking.order).astype(np.int16 if small else np.int32),
        "scores": _array(ranking.scores.float()),
        "count": _array(ranking.count),
        "uninformative": _array(ranking.uninformative),
    }
    if ranking.uncertain is not None:
        arrays["uncertain"] = _array(ranking.uncertain.float())
    return arrays


def unpack_ranking(unit: Unit, device: torch.device | str = "cpu") -> Ranking:
    """Convert the arrays of a ranking job to a ranking.

    Args:
        unit: The unit of the ranking job.
        device: Where to put the tensors.

    Returns:
        The ranking that ``pack_ranking`` converted.
    """
    tensors = {name: torch.from_numpy(np.array(array)).to(device) for name, array in unit.arrays.items()}
    return Ranking(
        tensors["order"].long(),
        tensors["scores"],
        tensors["count"],
        unit.made_of["explainer"],
        tensors.get("uncertain"),
        unit.notes,
        tensors["uninformative"],
    )


def pack_inputs(cases: Cases, examples: int) -> Arrays:
    """Convert the classes of all cases, and the inputs of the first ones, to arrays.

    Args:
        cases: B cases.
        examples: The number E of inputs to include, from the first on.

    Returns:
        ``label`` and ``target`` ``[B]``, ``logits`` ``[B, classes]``, ``x`` ``[E, *shape]`` and the feature ``ids``.
    """
    shown = cases[:examples]
    ids = shown.features.ids.expand(len(shown), *shown.features.ids.shape[1:]).int()
    tensors = {"label": cases.label, "target": cases.target, "logits": cases.model(cases.x, exact=True)}
    x = shown.x.float() if cases.model.domain is None else shown.x  # a rounded row may be none
    tensors |= {"x": x, "ids": ids}
    return {name: _array(value) for name, value in tensors.items()}


def pack_explanations(explanations: Sequence[Explanation], moves: bool) -> Arrays:
    """Convert explanations to arrays with one row each. Inputs are not included.

    Args:
        explanations: E explanations of inputs of the same shape.
        moves: Whether to include the changes, as 16-bit shares of their largest coordinate: exact enough to draw.
            Rows of tables are also included as they are after the changes.

    Returns:
        ``order`` ``[E, d]`` padded with -1, ``top`` and ``probability`` ``[E]``, pairs ``[E, 2]``, and the changes.
    """
    d = max(len(one.order) for one in explanations)
    order = np.full((len(explanations), d), -1, dtype=np.int32)
    for row, one in enumerate(explanations):
        order[row, : len(one.order)] = one.order
    arrays = {
        "order": order,
        "top": np.array([one.size for one in explanations]),
        "radius": np.array([one.radius for one in explanations]),
        "new_class": np.array([one.new_class for one in explanations], dtype=np.int16),
        "proven": np.array([one.proven for one in explanations]),
        "probability": np.array([one.probability for one in explanations]),
        "new_probability": np.array([one.new_probability for one in explanations]),
    }
    changes = [one.moves for one in explanations if one.moves is not None]
    if moves and changes:
        flat = torch.stack(changes).flatten(2)
        largest = flat.abs().amax(2, keepdim=True).clamp_min(torch.finfo(flat.dtype).tiny)
        arrays |= {"moves": _array((flat / largest * _FULL).round().short()), "largest": _array(largest[..., 0])}
    after = [one.witness for one in explanations if one.witness is not None]
    if moves and after:
        arrays["witness"] = _array(torch.stack(after))
    return arrays


def unpack_explanations(
    inputs: Unit, unit: Unit, method: str, features: Sequence[Features], classes: tuple[str, ...]
) -> list[Explanation]:
    """Convert the arrays of a unit to explanations.

    Args:
        inputs: The unit with the inputs; for targeted explanations the same as ``unit``.
        unit: The unit with the explanations.
        method: The name of the method.
        features: The features of each example.
        classes: Names of the classes.

    Returns:
        One explanation for each example that both units have.
    """
    arrays, x = unit.arrays, inputs.arrays["x"]
    count = min(len(x), len(arrays["radius"]))
    return [
        Explanation(
            method=method,
            x=torch.from_numpy(x[row]),
            features=features[row],
            classes=classes,
            label=int(inputs.arrays["label"][row]),
            target=int(inputs.arrays["target"][row]),
            order=tuple(int(feature) for feature in arrays["order"][row] if feature >= 0),
            size=int(arrays["top"][row]),
            radius=_pair(arrays["radius"][row]),
            new_class=(int(arrays["new_class"][row, 0]), int(arrays["new_class"][row, 1])),
            moves=_moves(unit, row, x.shape[1:]),
            witness=torch.from_numpy(arrays["witness"][row]) if "witness" in arrays else None,
            probability=float(arrays["probability"][row]),
            new_probability=_pair(arrays["new_probability"][row]),
            proven=(bool(arrays["proven"][row, 0]), bool(arrays["proven"][row, 1])),
            explainer=str(unit.made_of.get("explainer", "")),
            judge=str(unit.made_of["judge"]),
            key=str(unit.made_of.get("ranking", unit.key)),
        )
        for row in range(count)
    ]


def _moves(unit: Unit, row: int, shape: tuple[int, ...]) -> Tensor | None:
    if "moves" not in unit.arrays:
        return None
    moves = unit.arrays["moves"][row].astype(np.float64) / _FULL * unit.arrays["largest"][row][:, None]
    return torch.from_numpy(moves.reshape(2, *shape))


def _pair(values: np.ndarray) -> tuple[float, float]:
    return float(values[0]), float(values[1])


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().cpu().numpy()
    return array
