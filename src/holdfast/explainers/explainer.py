"""The interface of explainers: from cases to an order of their features.

An explainer of your own is one class; ``holdfast.testing.check_explainer`` tests it::

    @dataclass(frozen=True)
    class Brightness(Attribution):
        absolute: bool = False
        seed: int = 0
        name: ClassVar[str] = "brightness"
        source: ClassVar[str] = "mine"
        requires: ClassVar[Access] = Access.DECISIONS

        def attribute(self, cases, progress=None):
            return cases.features.pool(cases.x)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from holdfast.cases import Cases, check_cases
from holdfast.chunks import Progress, chunked
from holdfast.errors import HoldfastError
from holdfast.models.model import Access, Model, check_access, why_adapted
from holdfast.ranking import Ranking
from holdfast.registry import Registry
from holdfast.settings import Settings


class Explainer(Settings, ABC):
    """``explainer(cases) -> Ranking``.

    Subclass as a frozen dataclass whose fields are the settings; ``repr`` is the key under which results are stored.
    A subclass that sets ``name`` appears in ``holdfast list``, on the command line and in experiment files.

    Attributes:
        name: What it is called on the command line and in files.
        presets: Names of class methods that return instances with other settings.
        source: Where it was first described.
        requires: What it requires of a model with its default settings; ``needs`` is what an instance requires.
        uses: What it uses beyond the model, such as ``"a reference value"``.
    """

    registry: ClassVar[Registry[Explainer]] = Registry("explainer", "holdfast.explainers", ("source",))
    name: ClassVar[str]
    presets: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str]
    requires: ClassVar[Access] = Access.GRADIENTS
    uses: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Explainer.registry.add(cls)

    @final
    def __call__(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        """Order the features of every case, most relevant first.

        Args:
            cases: What to explain, made by ``model.ask(x)``.
            progress: Called with (done, total) while it runs.

        Returns:
            The order of the features of each case.

        Raises:
            HoldfastError: The cases or the model do not fit this explainer.
        """
        check_cases(cases)
        explainer = self.adapted(cases.model)
        check_access(explainer, cases.model, Explainer.registry)
        ranking = explainer.rank(cases, progress)
        if explainer is self:
            return ranking
        note = f"{why_adapted(self, cases.model)}: {explainer} was used."
        return replace(ranking, method=repr(self), notes=(note, *ranking.notes))

    def adapted(self, model: Model) -> Explainer:
        """Return the explainer for this model: this one, or one with other settings where it gives less access."""
        return self

    def refusal(self, model: Model) -> str:
        """Return why it cannot explain a model that gives enough access, as a sentence; empty: it can."""
        return ""

    @abstractmethod
    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        """Order the features; implemented by subclasses and called with cases that were checked.

        Args:
            cases: What to explain.
            progress: To be called with (done, total), if not None.

        Returns:
            The ranking, with ``repr(self)`` as its method.
        """

    @property
    def needs(self) -> Access:
        """What this instance requires of a model, given its settings."""
        return self.requires

    def rows(self, features: int) -> int | None:
        """Return about how many rows go through the model for one case with this many features; None: unknown."""
        return None


class Attribution(Explainer):
    """An explainer that gives every feature a number: its share of the explained score.

    The explained score is the logit of the label, minus the logit of the target if there is one. Attributions of the
    coordinates of a feature, such as colour channels, are added with their signs. Features with equal values are put
    in an order drawn from ``seed``.

    Attributes:
        absolute: Order by the size of the attribution. Otherwise features that increase the score come first and
            those that decrease it come last.
        seed: Seed of everything random.
    """

    absolute: bool
    seed: int

    @abstractmethod
    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        """Return the attribution of every feature, with its sign.

        Args:
            cases: What to explain.
            progress: To be called with (done, total), if not None.

        Returns:
            ``[B, d]``.
        """

    @final
    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        scores = self.attribute(cases, progress)
        return Ranking.by_score(cases, scores.abs() if self.absolute else scores, repr(self), self.seed)


def read_explainer(given: Any) -> Explainer:
    """Return an explainer from an instance, a class that needs no settings, or a name.

    Raises:
        HoldfastError: ``given`` is none of these.
    """
    return Explainer.registry.instance(given, Explainer)  # type: ignore[type-abstract]  # only checked against


def case_by_case(cases: Cases, work: Callable[[slice], Tensor], rows: int, progress: Progress | None) -> Tensor:
    """Run ``work`` on a few cases at a time and concatenate the results.

    Args:
        cases: All cases.
        work: From a slice of the cases to a tensor with one row for each.
        rows: How many rows each case puts through the model at once.
        progress: Called with (done, total) cases.

    Returns:
        One row for each case.
    """
    parts = []
    for piece, part in chunked(work, len(cases), max(1, cases.model.chunk(cases.x) // rows)):
        parts.append(part)
        if progress is not None:
            progress(piece.stop, len(cases))
    return torch.cat(parts)


def never_changed(cases: int, proven: bool = False) -> HoldfastError:
    """Return the error for cases whose decision no search could change.

    Args:
        cases: How many cases there are.
        proven: Whether it is proven for each of them that no allowed change of any features does it.
    """
    whose = "this case" if cases == 1 else f"any of the {cases} cases"
    if proven:
        return HoldfastError(
            f"it is proven that no change inside the bounds changes the decision of {whose}: no feature is more "
            "relevant than another."
        )
    return HoldfastError(
        f"no change of the decision was found for {whose}, whichever features may move: the model "
        "decides the same everywhere inside the bounds, or its gradients vanish."
    )


def uninformative_orders(never: Tensor, equal: Tensor, proven: Tensor | None = None) -> tuple[str, ...]:
    """Return notes on cases whose order says nothing.

    Args:
        never: Bool ``[B]``: the decision never changed.
        equal: Bool ``[B]``: all features had the same value.
        proven: Bool ``[B]``: it is proven that no allowed change changes the decision. None: nothing is proven.
    """
    surely = torch.zeros_like(never) if proven is None else never & proven
    reasons = {
        "it is proven that no change inside the bounds changes the decision": surely,
        "no change of the decision was ever found": never & ~surely,
        "all features have the same value (is the decision another one already?)": equal & ~never,
    }
    cases = {reason: ", ".join(map(str, which.nonzero()[:, 0].tolist())) for reason, which in reasons.items()}
    return tuple(f"{reason} for case {which}: its order means nothing." for reason, which in cases.items() if which)
