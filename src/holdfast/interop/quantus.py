"""Quantus: explainers as its ``explain_func``, and the two robustness criteria as its metrics::

metric = RobustnessRest(bounds=(0, 1))
metric(model=net, x_batch=x, y_batch=y, a_batch=None, explain_func=explain_func(hf.GreedyAS(), bounds=(0, 1)))
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.cases import Cases
from holdfast.criteria import robustness as criteria
from holdfast.criteria.criterion import Criterion
from holdfast.curve import SIZES, trace
from holdfast.errors import HoldfastError, HoldfastWarning, first_line
from holdfast.explainers.explainer import Explainer, read_explainer
from holdfast.features import Features
from holdfast.interop.clipping import Clipping
from holdfast.models.torch import Bound, TorchModel
from holdfast.ranking import Ranking
from holdfast.robustness import Judge, Robustness
from holdfast.tensors import read_tensor

try:
    from quantus.helpers.enums import DataType, EvaluationCategory, ModelType, ScoreDirection
    from quantus.metrics.base import Metric
except ImportError as error:
    raise HoldfastError('holdfast.interop.quantus requires Quantus: pip install "holdfast[quantus]".') from error

Bounds = tuple[Bound, Bound] | None
FeaturesOf = Features | Tensor | Callable[[Tensor], Features] | None
"""Features of all inputs, or a function that makes them for a batch ``[B, *shape]``, such as superpixels."""


def explain_func(
    explainer: Explainer | type[Explainer] | str, bounds: Bounds = None, features: FeaturesOf = None
) -> Callable[..., np.ndarray]:
    """Make an explanation function for Quantus.

    Args:
        explainer: An instance, a class that needs no settings, or a name.
        bounds: The box that inputs live in. Inputs that a metric moves outside are clipped, with a warning the
            first time.
        features: What moves together.

    Returns:
        ``explain(model, inputs, targets) -> attributions``: the scores of the ranking. The score of a feature is
        divided among its coordinates. Colour channels that share a feature are one channel, as in Quantus.
    """
    method, clip = read_explainer(explainer), Clipping()

    def explain(model: nn.Module, inputs: Any, targets: Any, **_: Any) -> np.ndarray:
        cases = _ask(model, inputs, targets, bounds, features, clip)
        ranking = method(cases)
        for note in ranking.notes:
            warnings.warn(note, HoldfastWarning, stacklevel=2)
        size = cases.features.pool(torch.ones_like(cases.x)).clamp_min(1)
        scores = torch.where(cases.features.ids >= 0, cases.features.spread(ranking.scores / size), 0)
        one = scores.ndim == 4 and scores.shape[1] == 1
        scores = scores.expand(-1, -1, *cases.x.shape[2:]) if one else scores.expand_as(cases.x)
        attributions: np.ndarray = scores.cpu().numpy().copy()
        return attributions

    return explain


# Arguments without defaults in Quantus' base class.
_SETTINGS = {
    "abs": False,
    "normalise": False,
    "normalise_func": None,
    "normalise_func_kwargs": None,
    "return_aggregate": False,
    "aggregate_func": None,
    "default_plot_func": None,
    "disable_warnings": True,
    "display_progressbar": False,
}
_CALL = {
    "s_batch": None,
    "channel_first": None,
    "explain_func": None,
    "explain_func_kwargs": None,
    "model_predict_kwargs": None,
    "softmax": False,
}


class _RobustnessMetric(Metric):  # type: ignore[misc]  # Quantus is not typed here
    """The area under a robustness criterion over growing relevant sets: one number for each input."""

    data_applicability = {DataType.IMAGE, DataType.TIMESERIES, DataType.TABULAR}  # noqa: RUF012  # as Quantus has it
    model_applicability = {ModelType.TORCH}  # noqa: RUF012  # as Quantus has it
    evaluation_category = EvaluationCategory.FAITHFULNESS
    _criterion: type[criteria.RobustnessRest | criteria.RobustnessRelevant]

    def __init__(
        self,
        robustness: Robustness | type[Robustness] | str | None = None,
        sizes: Sequence[float] = SIZES,
        bounds: Bounds = None,
        features: FeaturesOf = None,
        **settings: Any,
    ):
        """Set up the metric.

        Args:
            robustness: The method that finds radii: an instance, a class or a name. Default: ``Judge()``.
            sizes: Sizes of the relevant set.
            bounds: The box that inputs live in.
            features: What moves together.
            **settings: Settings of every Quantus metric, such as ``abs`` and ``return_aggregate``.
        """
        super().__init__(**(_SETTINGS | settings))
        method = Judge() if robustness is None else robustness
        self._measured: Criterion = self._criterion(method)  # type: ignore[arg-type]  # a class or a name is accepted
        self._sizes, self._bounds, self._features = sizes, bounds, features

    def __call__(
        self,
        model: nn.Module,
        x_batch: np.ndarray,
        y_batch: np.ndarray,
        a_batch: np.ndarray | None = None,
        **arguments: Any,
    ) -> list[float]:
        """Return the area of each input.

        Args:
            model: The network.
            x_batch: Inputs ``[B, *shape]``.
            y_batch: Classes to explain, ``[B]``.
            a_batch: Attributions in the shape of the inputs; None: ``explain_func`` makes them.
            **arguments: Arguments of every Quantus metric, such as ``explain_func``.
        """
        areas: list[float] = super().__call__(model, x_batch, y_batch, a_batch, **(_CALL | arguments))
        return areas

    def evaluate_batch(
        self, model: Any, x_batch: np.ndarray, y_batch: np.ndarray, a_batch: np.ndarray, **_: Any
    ) -> np.ndarray:
        """Return the area of each input of a batch, ``[B]``."""
        cases = _ask(model.get_model(), x_batch, y_batch, self._bounds, self._features)
        scores = read_tensor(a_batch, "a_batch", "an array or a tensor in the shape of x_batch").to(cases.x)
        fits = scores.ndim == cases.x.ndim
        if not fits or not all(a in (1, n) for a, n in zip(scores.shape, cases.x.shape, strict=True)):
            raise HoldfastError(f"a_batch of shape {tuple(scores.shape)} does not fit x_batch {tuple(cases.x.shape)}.")
        ranking = Ranking.by_score(cases, cases.features.pool(scores.expand_as(cases.x)), "a_batch", ties=0)
        areas: np.ndarray = trace(cases, ranking, self._measured, self._sizes).auc().cpu().numpy()
        return areas


class RobustnessRest(_RobustnessMetric):
    """The area under Robustness-S̄r: all features but the relevant ones may be perturbed. Higher is better."""

    name = "Robustness-S̄r"
    score_direction = ScoreDirection.HIGHER
    _criterion = criteria.RobustnessRest


class RobustnessRelevant(_RobustnessMetric):
    """The area under Robustness-Sr: only the relevant features may be perturbed. Lower is better."""

    name = "Robustness-Sr"
    score_direction = ScoreDirection.LOWER
    _criterion = criteria.RobustnessRelevant


def _ask(
    module: Any, inputs: Any, targets: Any, bounds: Bounds, features: FeaturesOf, clip: Clipping | None = None
) -> Cases:
    """Return the cases of a batch of Quantus."""
    if not isinstance(module, nn.Module):
        raise HoldfastError(f"expected a torch.nn.Module, got {type(module).__name__}.")
    model = TorchModel(module, bounds)
    x = read_tensor(inputs, "inputs", "an array or a tensor [B, *shape]").to(model.device, model.dtype)
    x = x if clip is None else clip(x, model)
    label = None if targets is None else _classes(targets, len(x) if x.ndim else 1)
    return model.ask(x, label=label, features=_features(features, x))


def _features(features: FeaturesOf, x: Tensor) -> Features | Tensor | None:
    """Return the features of a batch."""
    if isinstance(features, (Features, Tensor)) or not callable(features):
        return features
    try:
        return features(x)
    except HoldfastError:
        raise
    except Exception as error:
        raise HoldfastError(
            f"features failed for inputs of shape {tuple(x.shape)}: {type(error).__name__}: {first_line(error)}"
        ) from error


def _classes(targets: Any, cases: int) -> Tensor:
    """Return targets as one class for each case: a number, ``[B]``, ``[B, 1]``, or whole numbers that are floats."""
    given = read_tensor(targets, "targets", f"one class for each of {cases} inputs")
    if given.numel() not in (1, cases):
        raise HoldfastError(f"targets must be one class for each of {cases} inputs, got {tuple(given.shape)}.")
    numbers = given.double()
    whole = (numbers == numbers.round()) & (numbers.abs() < 2**31)  # others have no int64, or no such class
    if given.dtype == torch.bool or not bool(whole.all()):
        raise HoldfastError(f"targets must be class numbers, got {given.flatten()[:4].tolist()}.")
    return given.long().reshape(-1).expand(cases)
