"""Quantus: explainers as its ``explain_func``, and the two robustness criteria as its metrics.

>>> metric = RobustnessRest(bounds=(0, 1))
>>> metric(model=net, x_batch=x, y_batch=y, a_batch=None, explain_func=explain_func(hf.GreedyAS(), bounds=(0, 1)))
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.cases import Cases
from holdfast.criteria.criterion import Criterion
from holdfast.criteria.robustness import RobustnessRelevant, RobustnessRest
from holdfast.curve import SIZES, trace
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.explainers.explainer import Explainer
from holdfast.features import Features
from holdfast.models.torch import Bound, TorchModel
from holdfast.ranking import Ranking
from holdfast.robustness import Judge, Robustness

try:
    from quantus.helpers.enums import DataType, EvaluationCategory, ModelType, ScoreDirection
    from quantus.metrics.base import Metric
except ImportError as error:
    raise HoldfastError('this door needs Quantus: pip install "holdfast[quantus]".') from error

Bounds = tuple[Bound, Bound] | None
FeaturesOf = Features | Tensor | Callable[[Tensor], Features] | None
"""Features of all inputs, or a function that lays them over a batch ``[B, *shape]`` (superpixels, say)."""


def explain_func(explainer: Explainer, bounds: Bounds = None, features: FeaturesOf = None) -> Callable[..., np.ndarray]:
    """``explain_func(model, inputs, targets) -> attributions`` as Quantus calls it: the scores of the ranking.

    The numbers of one feature share its score. Colour channels that share a feature are one channel in the answer, as
    in Quantus' own. Inputs that a metric has moved out of the bounds are clipped to them.
    """

    def explain(model: nn.Module, inputs: Any, targets: Any, **_: Any) -> np.ndarray:
        cases = _ask(model, inputs, targets, bounds, features, clip=True)
        ranking = explainer(cases)
        for note in ranking.notes:
            warnings.warn(note, HoldfastWarning, stacklevel=2)
        size = cases.features.pool(torch.ones_like(cases.x)).clamp_min(1)
        scores = torch.where(cases.features.ids >= 0, cases.features.spread(ranking.scores / size), 0)
        one = scores.ndim == 4 and scores.shape[1] == 1
        scores = scores.expand(-1, -1, *cases.x.shape[2:]) if one else scores.expand_as(cases.x)
        answer: np.ndarray = scores.cpu().numpy().copy()
        return answer

    return explain


# What Quantus' base class has no defaults for.
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
_ASKED = {
    "s_batch": None,
    "channel_first": None,
    "explain_func": None,
    "explain_func_kwargs": None,
    "model_predict_kwargs": None,
    "softmax": False,
}


class _RobustnessMetric(Metric):  # type: ignore[misc]  # Quantus is not typed here
    """The area under a robustness criterion as more features are called relevant, one number an input."""

    data_applicability = {DataType.IMAGE, DataType.TIMESERIES, DataType.TABULAR}  # noqa: RUF012  # as Quantus has it
    model_applicability = {ModelType.TORCH}  # noqa: RUF012  # as Quantus has it
    evaluation_category = EvaluationCategory.FAITHFULNESS
    _criterion: type[RobustnessRest | RobustnessRelevant]

    def __init__(
        self,
        robustness: Robustness | None = None,
        sizes: Sequence[float] = SIZES,
        bounds: Bounds = None,
        features: FeaturesOf = None,
        **settings: Any,
    ):
        """``settings`` are those that every Quantus metric has: ``abs``, ``return_aggregate`` and so on."""
        super().__init__(**(_SETTINGS | settings))
        self._judge: Criterion = self._criterion(Judge() if robustness is None else robustness)
        self._sizes, self._bounds, self._features = sizes, bounds, features

    def __call__(
        self,
        model: nn.Module,
        x_batch: np.ndarray,
        y_batch: np.ndarray,
        a_batch: np.ndarray | None = None,
        **asked: Any,
    ) -> list[float]:
        """One area an input. ``asked`` is what every Quantus metric may be asked with: ``explain_func`` and so on."""
        found: list[float] = super().__call__(model, x_batch, y_batch, a_batch, **(_ASKED | asked))
        return found

    def evaluate_batch(
        self, model: Any, x_batch: np.ndarray, y_batch: np.ndarray, a_batch: np.ndarray, **_: Any
    ) -> np.ndarray:
        """The area of every input of a batch."""
        cases = _ask(model.get_model(), x_batch, y_batch, self._bounds, self._features)
        given = torch.as_tensor(np.ascontiguousarray(a_batch)).to(cases.x)
        if given.ndim != cases.x.ndim or not all(a in (1, n) for a, n in zip(given.shape, cases.x.shape, strict=True)):
            raise HoldfastError(f"a_batch of shape {tuple(given.shape)} does not fit x_batch {tuple(cases.x.shape)}.")
        ranking = Ranking.by_score(cases, cases.features.pool(given.expand_as(cases.x)), "a_batch", ties=0)
        areas: np.ndarray = trace(cases, ranking, self._judge, self._sizes).auc().cpu().numpy()
        return areas


class RobustnessRest(_RobustnessMetric):
    """Area under Robustness-S̄r: the relevant features are held, all others may move. Higher is better."""

    name = "Robustness-S̄r"
    score_direction = ScoreDirection.HIGHER
    _criterion = RobustnessRest


class RobustnessRelevant(_RobustnessMetric):
    """Area under Robustness-Sr: only the relevant features may move. Lower is better."""

    name = "Robustness-Sr"
    score_direction = ScoreDirection.LOWER
    _criterion = RobustnessRelevant


def _ask(model: Any, inputs: Any, targets: Any, bounds: Bounds, features: FeaturesOf, clip: bool = False) -> Cases:
    if not isinstance(model, nn.Module):
        raise HoldfastError(f"only torch modules can be measured, got {type(model).__name__}.")
    classifier = TorchModel(model, bounds)
    x = torch.as_tensor(np.ascontiguousarray(inputs)).to(classifier.device, classifier.dtype)
    if clip and classifier.low is not None:
        x = x.clamp(classifier.low, classifier.high)
    label = None if targets is None else torch.as_tensor(np.asarray(targets)).long()
    laid = features(x) if callable(features) and not isinstance(features, Tensor) else features
    return classifier.ask(x, label=label, features=laid)
