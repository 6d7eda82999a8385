"""What every explainer is: a way to find an order of the features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, final

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.chunks import Progress, chunked
from holdfast.errors import HoldfastError
from holdfast.ranking import Ranking


class Explainer(ABC):
    """``explainer(cases) -> Ranking``. Subclass as a frozen dataclass with its settings; ``repr`` is its provenance."""

    source: ClassVar[str] = ""
    """Where it was first described."""
    needs: ClassVar[tuple[str, ...]] = ()
    """What it asks for beyond the model's scores: gradients, modules (it hooks into layers), a reference value."""

    @abstractmethod
    def __call__(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        """Order the features of every case, most relevant first."""

    def rows(self, features: int) -> int | None:
        """About how many rows a case of so many features puts through the model; None if not known."""
        return None


class Attribution(Explainer):
    """An explainer whose order is that of one number a feature, the share of the explained score it is given.

    The explained score is the logit of the label, less that of the target where one is asked about. Coordinates of a
    feature (colour channels, say) add up, signs included. With ``absolute`` the size of that sum counts, otherwise
    features that speak for the label come first and those that speak against it last. Equal features are put in an
    order drawn from ``seed``.
    """

    absolute: bool
    seed: int

    @abstractmethod
    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        """The attribution of every feature, ``[B, d]``, sign included."""

    @final
    def __call__(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        cases.model.require_eval()
        scores = self.attribute(cases, progress)
        return Ranking.by_score(cases, scores.abs() if self.absolute else scores, repr(self), self.seed)


def case_by_case(cases: Cases, work: Callable[[slice], Tensor], rows: int, progress: Progress | None) -> Tensor:
    """``work`` on a few cases at a time, as many as fit when each puts ``rows`` rows through the model at once."""
    parts = []
    for piece, part in chunked(work, len(cases), max(1, cases.model.chunk(cases.x) // rows)):
        parts.append(part)
        if progress is not None:
            progress(piece.stop, len(cases))
    return torch.cat(parts)


def never_turned(cases: int) -> HoldfastError:
    """What to say when no search ever changed the decision."""
    return HoldfastError(
        f"no change of the decision was found for any of the {cases} cases, whatever may move: the model never changes "
        "its mind inside the box, or its gradients vanish. There is nothing to explain."
    )


def empty_orders(dead: Tensor, alike: Tensor) -> tuple[str, ...]:
    """Notes on cases ``[B]`` whose order says nothing: the decision never changed, or all features counted the same."""
    told = {
        "no change of the decision was ever found": dead,
        "no feature was worth more than another (is the decision another one already?)": alike & ~dead,
    }
    cases = {what: ", ".join(map(str, which.nonzero()[:, 0].tolist())) for what, which in told.items()}
    return tuple(f"{what} for case {which}: the order there means nothing." for what, which in cases.items() if which)
