"""What things are called on the command line and in the files of experiments."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.criteria import Criterion, Deletion, Insertion, PerturbRelevant, PerturbRest
from holdfast.explainers import (
    Anchor,
    Bbmp,
    BoundaryNormals,
    Counterfactual,
    DeepLift,
    Estimator,
    ExpectedGradients,
    Explainer,
    Grad,
    Greedy,
    GreedyAS,
    IntegratedGradients,
    LeaveOneOut,
    Lrp,
    OneStepBanzhaf,
    Random,
    Regression,
    Shap,
)
from holdfast.robustness import PGD, Judge, Linear, MinNorm, Robustness

METHODS: dict[str, Callable[..., Robustness]] = {
    "judge": Judge,
    "judge-quick": Judge.quick,
    "judge-thorough": Judge.thorough,
    "minnorm": MinNorm,
    "pgd": PGD,
    "pgd-paper": PGD.paper,
    "linear": Linear,
}

EXPLAINERS: dict[str, Callable[..., Explainer]] = {
    "greedy-as": GreedyAS,
    "greedy-as-quick": GreedyAS.quick,
    "greedy-as-thorough": GreedyAS.thorough,
    "greedy-as-words": GreedyAS.words,
    "greedy": Greedy,
    "one-step-banzhaf": OneStepBanzhaf,
    "grad": Grad,
    "integrated-gradients": IntegratedGradients,
    "expected-gradients": ExpectedGradients,
    "shap": Shap,
    "shap-paper": Shap.paper,
    "leave-one-out": LeaveOneOut,
    "deep-lift": DeepLift,
    "lrp": Lrp,
    "bbmp": Bbmp,
    "counterfactual": Counterfactual,
    "anchor": Anchor,
    "random": Random,
}

OBJECTIVES: dict[str, Callable[[Robustness], Criterion]] = {"rest": PerturbRest, "relevant": PerturbRelevant}

CRITERIA: dict[str, Callable[..., Criterion]] = {**OBJECTIVES, "insertion": Insertion, "deletion": Deletion}

ESTIMATORS: dict[str, Callable[..., Estimator]] = {"boundary-normals": BoundaryNormals, "regression": Regression}
