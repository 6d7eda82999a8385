"""What things are called on the command line and in the files of experiments."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.criteria.criterion import Criterion
from holdfast.criteria.robustness import RobustnessRelevant, RobustnessRest
from holdfast.explainers.estimators import Estimator
from holdfast.explainers.explainer import Explainer
from holdfast.robustness import Robustness

METHODS: dict[str, Callable[..., Robustness]] = Robustness.registry.makers()
EXPLAINERS: dict[str, Callable[..., Explainer]] = Explainer.registry.makers()
OBJECTIVES: dict[str, Callable[[Robustness], Criterion]] = {"rest": RobustnessRest, "relevant": RobustnessRelevant}
CRITERIA: dict[str, Callable[..., Criterion]] = Criterion.registry.makers()
ESTIMATORS: dict[str, Callable[..., Estimator]] = Estimator.registry.makers()
