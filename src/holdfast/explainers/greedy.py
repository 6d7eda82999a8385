"""The explainers of the paper: greedy selection of the features that optimise an objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.criteria.robustness import RobustnessRest
from holdfast.draws import mixed
from holdfast.errors import HoldfastError
from holdfast.explainers.estimators import (
    BoundaryNormals,
    Draw,
    Estimate,
    Estimator,
    Regression,
    SampledBanzhaf,
)
from holdfast.explainers.explainer import Explainer
from holdfast.explainers.selection import Selection, Valuation
from holdfast.models.model import Access, Model
from holdfast.ranking import Ranking, features_of
from holdfast.robustness import PGD, Judge, MinNorm
from holdfast.settings import Count, Range, Read, read_setting
from holdfast.sizes import LARGEST, Size

_BLOCK = 256  # features tried in one call
_DEFAULT_STEPS = (20, 75)  # gradients of the objectives that no caller chose


def _default_objective(steps: int = 20) -> Criterion:
    return RobustnessRest(MinNorm(steps=steps))


def _without_gradients(objective: Criterion) -> Criterion:
    """Return the objective for a model without gradients: the default search becomes that of ``Judge.quick``."""
    robustness = getattr(objective, "robustness", None)
    if not isinstance(robustness, MinNorm) or robustness.steps not in _DEFAULT_STEPS:
        return objective
    changed: Any = objective
    made: Criterion = replace(changed, robustness=Judge.quick(robustness.p))
    return made


def _read_objective(given: Any, name: str) -> Criterion:
    """Return the objective; a class or a name of a robustness criterion searches as the default does."""
    objective: Any = read_setting(given, Criterion, name)
    if objective is not given and hasattr(objective, "robustness"):
        objective = replace(objective, robustness=MinNorm(steps=20))
    made: Criterion = objective
    return made


Objective = Annotated[Criterion, Read(_read_objective)]


@dataclass(frozen=True)
class GreedyAS(Explainer):
    """Greedy by set aggregation (section 4.2 of the paper): the most useful features join the relevant set first.

    The use of a feature is its Banzhaf value: its mean effect on the criterion in random sets of features. After each
    step the others are valued again, given those that have joined. Features that are not chosen follow in the order of
    their last values.

    >>> from holdfast.models.torch import TorchModel
    >>> net = torch.nn.Linear(3, 2, bias=False).eval()
    >>> net.weight.data = torch.tensor([[3.0, 0.1, 2.0], [0.0, 0.0, 0.0]])
    >>> cases = TorchModel(net, bounds=(-1, 1)).ask(torch.full((1, 3), 0.5))
    >>> GreedyAS(budget=2, step=1)(cases).order
    tensor([[0, 2, 1]])

    Attributes:
        objective: The criterion to optimise: an instance, a class or a name. Default:
            ``RobustnessRest(MinNorm(steps=20))``; a class or a name of a robustness criterion searches in the same way.
        budget: How many features to choose: a share (float) or a number (int). A case with fewer has all chosen.
        step: How many features join at a time: a share or a number.
        samples: Random subsets for each valuation.
        inclusion: The probability that an unchosen feature is in such a subset.
        estimator: How Banzhaf values are estimated: an instance, a class or a name.
        shortlist: Measure this many of the best features, each together with those chosen, and let the best of them
            join. Needs ``step=1``; pays where features are few, as words are.
        seed: Seed of the random subsets.
    """

    objective: Objective = field(default_factory=_default_objective)
    budget: Size = LARGEST
    step: Size = 0.0125
    samples: Count = 8
    inclusion: Annotated[float, Range(0, under=1)] = 0.2
    estimator: Estimator = field(default_factory=BoundaryNormals)
    shortlist: Count = 1
    seed: int = 0
    name: ClassVar[str] = "greedy-as"
    presets: ClassVar[tuple[str, ...]] = ("quick", "thorough", "words", "paper")
    source: ClassVar[str] = "Hsieh et al. 2021, section 4.2"
    requires: ClassVar[Access] = Access.GRADIENTS

    def __post_init__(self) -> None:
        if self.shortlist > 1 and self.step != 1:
            raise HoldfastError(
                f"GreedyAS.shortlist may be more than 1 only with step=1, got {self.shortlist} with step={self.step}."
            )

    @classmethod
    def quick(cls, objective: Criterion | None = None) -> GreedyAS:
        """Return settings for CPUs: a sixth of the gradients of ``default``."""
        return cls(
            _default_objective() if objective is None else objective,
            step=0.025,
            estimator=BoundaryNormals(steps=3, classes=4),
        )

    @classmethod
    def default(cls, objective: Criterion | None = None) -> GreedyAS:
        """Return the default settings of the class."""
        return cls(_default_objective() if objective is None else objective)

    @classmethod
    def thorough(cls, objective: Criterion | None = None) -> GreedyAS:
        """Return settings with half the step, twice the subsets and more classes: ten times the gradients."""
        return cls(
            _default_objective() if objective is None else objective,
            step=0.00625,
            samples=16,
            estimator=BoundaryNormals(steps=12, classes=9),
        )

    @classmethod
    def words(cls, objective: Criterion | None = None) -> GreedyAS:
        """Return settings for texts: five words, each the best of a shortlist of four.

        At least one text of a batch must have five words; of shorter ones all words are chosen.

        Args:
            objective: The criterion to optimise. Default: a search with 75 gradients towards three classes. Another
                objective should search about as long.
        """
        return cls(
            _default_objective(steps=75) if objective is None else objective,
            budget=5,
            step=1,
            inclusion=0.1,
            estimator=BoundaryNormals(steps=3, classes=4),
            shortlist=4,
        )

    @classmethod
    def paper(cls, objective: Criterion | None = None) -> GreedyAS:
        """Return the settings of the paper's released code.

        5,000 subsets a step, a regression without intercept or pairs, and the norm of x in place of censored values.
        """
        return cls(
            RobustnessRest(PGD.paper()) if objective is None else objective,
            step=0.05,
            samples=5000,
            estimator=Regression(intercept=False, paired=False, censored="norm of x"),
        )

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        def valuation(part: Cases) -> Valuation:
            state: Any = None

            def value(chosen: Tensor, unchosen: Tensor, turn: int, wanted: Tensor) -> Estimate:
                nonlocal state
                seed = mixed(self.seed, turn)
                draw = Draw(self.objective, part, chosen, unchosen, self.samples, self.inclusion, seed, state)
                estimate = self.estimator(draw)
                state = estimate.state
                return self._measure_shortlist(part, chosen, unchosen, estimate) if self.shortlist > 1 else estimate

            return value

        self.estimator.check(self.samples, self.inclusion, int(features_of(cases).sum(1).max()))
        bytes_a_case = self.estimator.bytes_held(cases, self.samples)
        return self._selection().rank(cases, valuation, bytes_a_case, repr(self), progress)

    @property
    def needs(self) -> Access:
        made = self._without_gradients()
        return max(made.estimator.requires, made.objective.needs)

    def adapted(self, model: Model) -> GreedyAS:
        return self if model.smooth else self._without_gradients()

    def _without_gradients(self) -> GreedyAS:
        normals = self.estimator if isinstance(self.estimator, BoundaryNormals) else None
        estimator = self.estimator if normals is None else SampledBanzhaf(normals.relative)
        return replace(self, objective=_without_gradients(self.objective), estimator=estimator)

    def rows(self, features: int) -> int | None:
        each = self.estimator.rows(self.objective, self.samples)
        measured = 0 if self.shortlist == 1 else self.objective.rows
        if each is None or measured is None:
            return None
        return (each + self.shortlist * measured) * len(self._selection().unchosen(features))

    def _selection(self) -> Selection:
        return Selection(self.objective, self.budget, self.step)

    def _measure_shortlist(self, cases: Cases, chosen: Tensor, unchosen: Tensor, estimate: Estimate) -> Estimate:
        """Permute the values of the shortlist into the order of what each feature measures beside those chosen.

        Errors are dropped: they belong to the estimated order.
        """
        best = self.objective.higher_is_better
        score = estimate.values.masked_fill(~unchosen, -math.inf if best else math.inf)
        value, few = score.topk(min(self.shortlist, score.shape[1]), 1, largest=best)
        relevant = chosen[:, None].repeat(1, few.shape[1], 1).scatter_(2, few[..., None], True)
        measured = self.objective(cases, relevant)
        measured = measured.masked_fill(~unchosen.gather(1, few), -math.inf if best else math.inf)
        order = measured.argsort(dim=1, descending=best, stable=True)
        values = estimate.values.scatter(1, few.gather(1, order), torch.where(torch.isinf(value), 0, value))
        return replace(estimate, values=torch.where(unchosen, values, estimate.values), error=None)


@dataclass(frozen=True)
class OneStepBanzhaf(Explainer):
    """Features in the order of their Banzhaf values, estimated once with nothing chosen: the ablation of the paper.

    Attributes:
        objective: The criterion to optimise: an instance, a class or a name.
        samples: Random subsets.
        inclusion: The probability that a feature is in such a subset.
        estimator: How Banzhaf values are estimated: an instance, a class or a name.
        seed: Seed of the random subsets.
    """

    objective: Objective = field(default_factory=_default_objective)
    samples: Count = 8
    inclusion: Annotated[float, Range(0, under=1)] = 0.2
    estimator: Estimator = field(default_factory=BoundaryNormals)
    seed: int = 0
    name: ClassVar[str] = "one-step-banzhaf"
    source: ClassVar[str] = "Hsieh et al. 2021, the ablation"
    requires: ClassVar[Access] = Access.GRADIENTS

    def _one_step(self) -> GreedyAS:
        """Return the greedy selection whose first step chooses all features."""
        return GreedyAS(self.objective, 1.0, 1.0, self.samples, self.inclusion, self.estimator, seed=self.seed)

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        return replace(self._one_step().rank(cases, progress), method=repr(self))

    @property
    def needs(self) -> Access:
        return self._one_step().needs

    def adapted(self, model: Model) -> OneStepBanzhaf:
        made = self._one_step().adapted(model)
        changed = replace(self, objective=made.objective, estimator=made.estimator)
        return self if changed == self else changed

    def rows(self, features: int) -> int | None:
        return self._one_step().rows(features)


@dataclass(frozen=True)
class Greedy(Explainer):
    """Greedy (section 4.1 of the paper): measure every unchosen feature beside those chosen, and let the best join.

    This takes one search for each unchosen feature at each step. Features that matter only together are not found.

    Attributes:
        objective: The criterion to optimise: an instance, a class or a name. Default:
            ``RobustnessRest(MinNorm(steps=20))``; a class or a name of a robustness criterion searches in the same way.
        budget: How many features to choose: a share (float) or a number (int).
        step: How many features join at a time: a share or a number.
    """

    objective: Objective = field(default_factory=_default_objective)
    budget: Size = LARGEST
    step: Size = 0.05
    name: ClassVar[str] = "greedy"
    source: ClassVar[str] = "Hsieh et al. 2021, section 4.1"
    requires: ClassVar[Access] = Access.GRADIENTS

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        def valuation(part: Cases) -> Valuation:
            state: Any = None

            def value(chosen: Tensor, unchosen: Tensor, turn: int, wanted: Tensor) -> Estimate:
                nonlocal state
                if part.model.smooth:
                    return self._value(part, chosen, unchosen)
                leading = self.objective.leading(part, chosen, unchosen, wanted, state)
                state = leading.state
                return Estimate(_ordered(leading.values), None, leading.changed)

            return value

        bytes_a_case = 2 * _BLOCK * cases.features.count  # the subsets of a block
        return self._selection().rank(cases, valuation, bytes_a_case, repr(self), progress)

    @property
    def needs(self) -> Access:
        return _without_gradients(self.objective).needs

    def adapted(self, model: Model) -> Greedy:
        return self if model.smooth else replace(self, objective=_without_gradients(self.objective))

    def rows(self, features: int) -> int | None:
        each = self.objective.rows
        return None if each is None else each * sum(self._selection().unchosen(features))

    def _selection(self) -> Selection:
        return Selection(self.objective, self.budget, self.step)

    def _value(self, cases: Cases, chosen: Tensor, unchosen: Tensor) -> Estimate:
        """Measure the objective with each unchosen feature in turn beside those chosen."""
        values = torch.full_like(chosen, math.inf, dtype=cases.x.dtype)
        candidates = (~unchosen).long().argsort(dim=1, stable=True)[:, : int(unchosen.sum(1).max())]
        for block in candidates.split(_BLOCK, 1):
            relevant = chosen[:, None].repeat(1, block.shape[1], 1).scatter_(2, block[..., None], True)
            values.scatter_(1, block, self.objective(cases, relevant))
        known = torch.isfinite(values)
        if not bool((known | ~unchosen).all()):
            # Censored values are larger than all others; among themselves their linearised effects decide, if any.
            largest = values.masked_fill(~known, 0).amax(1, keepdim=True)
            values = torch.where(known, values, 2 * largest + 1 + self._effects(cases, chosen, unchosen))
        return Estimate(values, None, (known & unchosen).any(1))

    def _effects(self, cases: Cases, chosen: Tensor, unchosen: Tensor) -> Tensor:
        """Return linearised effects ``[B, d]``, scaled to at most 1."""
        effect = BoundaryNormals()(Draw(self.objective, cases, chosen, unchosen, 1, 0.0, seed=0)).values
        return effect / effect.abs().amax(1, keepdim=True).clamp_min(torch.finfo(effect.dtype).tiny)


def _ordered(values: Tensor) -> Tensor:
    """Return values with a number larger than all others in place of ``inf``."""
    known = torch.isfinite(values)
    return torch.where(known, values, 2 * values.masked_fill(~known, 0).amax(1, keepdim=True) + 1)
