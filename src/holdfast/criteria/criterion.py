"""The interface of criteria: a number for each subset of features that an explanation calls relevant.

A criterion of your own is one class; ``holdfast.testing.check_criterion`` tests it::

    @dataclass(frozen=True)
    class Flips(Criterion):  # does the decision change if the relevant features are set to zero?
        name: ClassVar[str] = "flips"
        higher_is_better: ClassVar[bool] = True
        requires: ClassVar[Access] = Access.DECISIONS

        def measure(self, cases, relevant, progress):
            case = torch.arange(len(cases)).repeat_interleave(relevant.shape[1])
            rows = torch.where(cases.features.expand(relevant.flatten(0, 1), case), 0, cases.x[case])
            changed = cases.model(rows).argmax(1) != cases.label[case]
            return changed.view(relevant.shape[:2]).to(cases.x)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from holdfast.cases import Cases, check_cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError
from holdfast.models.model import Access, check_access
from holdfast.prose import capital
from holdfast.registry import Registry
from holdfast.settings import Settings

_BLOCK = 256  # subsets of each case that are measured in one call


@dataclass(frozen=True, eq=False)
class Marginals:
    """The estimated effect of every feature on a criterion.

    Attributes:
        values: The criterion, ``[B, K]``, estimated.
        effects: Its change when a feature joins the subset, ``[B, K, d]``. For a feature that is in the subset: the
            change since it joined.
        changed: Bool ``[B]``: whether the search saw the decision change at all.
        state: Makes the next call on similar subsets cheaper; opaque to the caller.
    """

    values: Tensor
    effects: Tensor
    changed: Tensor
    state: Any = None


@dataclass(frozen=True, eq=False)
class Leading:
    """Values of a subset with one candidate more, exact as far as the order of the best candidates needs it.

    Attributes:
        values: ``[B, d]``. The best candidates come first in their order; the value of another may be a bound that
            keeps it behind them.
        changed: Bool ``[B]``: whether a change of the decision is known.
        state: Makes the next call on a larger subset cheaper; opaque to the caller.
    """

    values: Tensor
    changed: Tensor
    state: Any = None


class Criterion(Settings, ABC):
    """``criterion(cases, relevant) -> values``. Subclass as a frozen dataclass whose fields are the settings.

    A subclass that sets ``name`` appears in ``holdfast list``, in experiment files and in all tables of reports.

    Attributes:
        name: What it is called on the command line and in files.
        presets: Names of class methods that return instances with other settings.
        title: What tables and figures for readers call it. Default: its name with a capital letter.
        family: The heading under which tables of reports put it, beside other criteria of the same family.
        higher_is_better: Whether a larger value means a better explanation.
        requires: What it requires of a model with its default settings; ``needs`` is what an instance requires.
    """

    registry: ClassVar[Registry[Criterion]] = Registry("criterion", "holdfast.criteria", ("higher_is_better",))
    name: ClassVar[str]
    presets: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str]
    family: ClassVar[str] = "Other criteria"
    higher_is_better: ClassVar[bool]
    requires: ClassVar[Access] = Access.GRADIENTS

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Criterion.registry.add(cls)
        if vars(cls).get("name") and "title" not in vars(cls):
            cls.title = capital(cls.name)

    @final
    def __call__(self, cases: Cases, relevant: Any, *, progress: Progress | None = None) -> Tensor:
        """Measure subsets of the features.

        Args:
            cases: The cases that the subsets belong to.
            relevant: Bool ``[B, K, d]``, a tensor or an array: K subsets for each case, True where a feature is called
                relevant. ``[B, d]`` is one subset for each.
            progress: Called with (done, total) while it runs.

        Returns:
            Values ``[B, K]``; ``inf`` where no value was found (censored).

        Raises:
            HoldfastError: The cases, the model or the subsets do not fit.
        """
        check_cases(cases)
        check_access(self, cases.model, Criterion.registry)
        return self.measure(cases, cases.subsets(relevant), progress)

    @abstractmethod
    def measure(self, cases: Cases, relevant: Tensor, progress: Progress | None) -> Tensor:
        """Measure subsets; implemented by subclasses and called with arguments that were checked.

        Args:
            cases: The cases.
            relevant: Bool ``[B, K, d]`` on the model's device.
            progress: To be called with (done, total), if not None.

        Returns:
            Values ``[B, K]``; ``inf`` where no value was found.
        """

    @property
    def needs(self) -> Access:
        """What this instance requires of a model, given its settings."""
        return self.requires

    @property
    def rows(self) -> int | None:
        """About how many rows go through the model for one subset; None: unknown."""
        return None

    @property
    def bound(self) -> str:
        """Which side of the true value a measured value lies on: ``"exact"``, ``"upper"`` or ``"lower"``."""
        return "exact"

    def ceiling(self, cases: Cases, relevant: Tensor) -> Tensor:
        """Return the largest possible value of each subset, which bounds a censored value.

        Args:
            cases: The cases.
            relevant: Bool ``[B, K, d]``.

        Returns:
            ``[B, K]``; ``inf`` where it is unknown.
        """
        return torch.full(relevant.shape[:2], math.inf, dtype=cases.x.dtype, device=cases.x.device)

    def unchangeable(self, cases: Cases) -> Tensor:
        """Return for which cases it is proven that no allowed change of any features changes the decision, ``[B]``."""
        return torch.zeros(len(cases), dtype=torch.bool, device=cases.x.device)

    def joining(self, cases: Cases, relevant: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Measure subsets, and each of them together with one more feature.

        Args:
            cases: The cases.
            relevant: Bool ``[B, K, d]``.
            candidates: Bool ``[B, K, d]``: the features that are tried beside each subset, none of them in it.

        Returns:
            The values of the subsets, ``[B, K]``, and of each subset with one candidate more, ``[B, K, d]``; the value
            of the subset itself where a feature is no candidate.
        """
        values = self(cases, relevant)
        return values, self._with_each(cases, relevant, candidates, values)

    def leading(self, cases: Cases, relevant: Tensor, candidates: Tensor, wanted: Tensor, state: Any) -> Leading:
        """Find the candidates that are best beside a subset.

        Args:
            cases: The cases.
            relevant: Bool ``[B, d]``.
            candidates: Bool ``[B, d]``, none of them in the subset.
            wanted: How many of the best candidates must be known in their order, ``[B]``.
            state: ``Leading.state`` of the previous call on a part of the subset; None at first.

        Returns:
            The values.
        """
        own, joined = self.joining(cases, relevant[:, None], candidates[:, None])
        return Leading(joined[:, 0], torch.isfinite(own).any(1))

    @final
    def _with_each(self, cases: Cases, relevant: Tensor, candidates: Tensor, values: Tensor) -> Tensor:
        """Return ``values [B, K]`` of the subsets, and measured values where a candidate joins, ``[B, K, d]``."""
        b, _, d = relevant.shape
        order = (~candidates.flatten(1)).long().argsort(dim=1, stable=True)  # the pairs (subset, candidate) come first
        place = order[:, : int(candidates.flatten(1).sum(1).max())]
        joined = values[..., None].repeat(1, 1, d)
        case = torch.arange(b, device=place.device)[:, None]
        for pairs in place.split(_BLOCK, 1) if place.numel() else ():
            subset, feature = pairs // d, pairs % d
            larger = relevant[case, subset]
            larger.scatter_(2, feature[..., None], True)
            measured = self(cases, larger)
            known = candidates.flatten(1).gather(1, pairs)
            joined.flatten(1).scatter_(1, pairs, torch.where(known, measured, joined.flatten(1).gather(1, pairs)))
        return joined

    def marginals(
        self, cases: Cases, relevant: Tensor, *, steps: int, classes: int, soft: float, state: Any
    ) -> Marginals:
        """Estimate the effect of every feature on every subset, for criteria where one search gives all of them.

        Args:
            cases: The cases.
            relevant: Bool ``[B, K, d]``.
            steps: Gradients towards each class.
            classes: How many of the nearest classes are searched.
            soft: Blend the effects of classes whose radii differ by about this share.
            state: ``Marginals.state`` of the previous call on similar subsets; None at first.

        Returns:
            The estimated values and effects.

        Raises:
            HoldfastError: This criterion has no such estimate.
        """
        raise HoldfastError(f"{type(self).__name__} has no marginal effects: use the estimator Regression().")


def read_criterion(given: Any) -> Criterion:
    """Return a criterion from an instance, a class that needs no settings, or a name.

    Raises:
        HoldfastError: ``given`` is none of these.
    """
    return Criterion.registry.instance(given, Criterion)  # type: ignore[type-abstract]  # only checked against
