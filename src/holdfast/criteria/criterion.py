"""The interface of criteria: a number for each subset of features that an explanation calls relevant."""

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
from holdfast.registry import Registry


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


class Criterion(ABC):
    """``criterion(cases, relevant) -> values``. Subclass as a frozen dataclass whose fields are the settings.

    A subclass that sets ``name`` appears in ``holdfast list``, in experiment files and in all tables of reports.

    Attributes:
        name: What it is called on the command line and in files.
        presets: Names of class methods that return instances with other settings.
        family: The heading under which tables of reports put it, beside other criteria of the same family.
        higher_is_better: Whether a larger value speaks for the explanation.
        requires: What it requires of a model with its default settings; ``needs`` is what an instance requires.
    """

    registry: ClassVar[Registry[Criterion]] = Registry("criterion", "holdfast.criteria", ("higher_is_better",))
    name: ClassVar[str]
    presets: ClassVar[tuple[str, ...]] = ()
    family: ClassVar[str] = "Other criteria"
    higher_is_better: ClassVar[bool]
    requires: ClassVar[Access] = Access.GRADIENTS

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Criterion.registry.add(cls)

    @final
    def __call__(self, cases: Cases, relevant: Any, *, progress: Progress | None = None) -> Tensor:
        """Measure subsets of the features.

        Args:
            cases: The cases that the subsets belong to.
            relevant: Bool ``[B, K, d]``: K subsets for each case, True where a feature is called relevant.
            progress: Called with (done, total) while it runs.

        Returns:
            Values ``[B, K]``; ``inf`` where no value was found (censored).

        Raises:
            HoldfastError: The cases, the model or the subsets do not fit.
        """
        check_cases(cases)
        check_access(self, cases.model, lambda: _fitting(cases.model.access))
        return self.measure(cases, cases.subsets(relevant), progress)

    @abstractmethod
    def measure(self, cases: Cases, relevant: Tensor, progress: Progress | None) -> Tensor:
        """Return values ``[B, K]`` of ``relevant`` bool ``[B, K, d]``; called with arguments that were checked."""

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
        """Return the largest possible value of each subset, ``[B, K]``: the bound on a censored one; ``inf``: unknown."""
        return torch.full(relevant.shape[:2], math.inf, dtype=cases.x.dtype, device=cases.x.device)

    def marginals(
        self, cases: Cases, relevant: Tensor, *, steps: int, classes: int, soft: float, state: Any
    ) -> Marginals:
        """Return the effect of every feature on every subset, if one search tells them all."""
        raise HoldfastError(f"{type(self).__name__} has no marginal effects: use the estimator Regression().")


def _fitting(access: Access) -> list[str]:
    """Return the names of the criteria that a model with this access is enough for."""
    return [name for name, cls in Criterion.registry.classes().items() if cls.requires <= access]
