"""One question answered for a person: the features called relevant, and how fast the prediction holds to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.cli.show import progress_bar, shown_radius
from holdfast.explainers.explainer import Explainer
from holdfast.models.model import Queries
from holdfast.ranking import Ranking
from holdfast.robustness import Judge, Radii

SUBSETS = ("only these move", "these are held")


@dataclass(frozen=True, eq=False)
class Answer:
    """About one case: the order of its features, those called relevant ``[1, 1, d]``, and the two smallest changes.

    ``called`` names a class, ``spent`` is what the order cost.
    """

    called: Callable[[int], str]
    cases: Cases
    ranking: Ranking
    relevant: Tensor
    radii: Radii
    spent: Queries

    @property
    def chosen(self) -> list[int]:
        """The relevant features, most relevant first."""
        return [feature for feature in self.ranking.order[0].tolist() if bool(self.relevant[0, 0, feature])]

    @property
    def notes(self) -> list[str]:
        """What must be known to read the order and the radii right."""
        return [*self.ranking.notes, *_ties(self.ranking, len(self.chosen)), *self.radii.notes]

    @property
    def question(self) -> str:
        """Why this class, or why this class and not that."""
        return question(self.cases, self.called)

    @property
    def prediction(self) -> str:
        """The class that is explained, and its probability."""
        return f"{self.called(int(self.cases.label[0]))} ({self.probability:.0%})"

    @property
    def probability(self) -> float:
        """How likely the class that is explained is."""
        return self._share(self.cases.x, int(self.cases.label[0]))

    def radius(self, k: int) -> str:
        """The radius of the ``k``-th of ``SUBSETS``."""
        return shown_radius(self.radii, 0, k)

    def turned(self, k: int) -> str:
        """What the smallest change of the ``k``-th of ``SUBSETS`` turns the prediction into."""
        if bool(self.radii.censored[0, k]):
            return "no change found"
        number = int(self.radii.new_class[0, k])
        return f"turns into {self.called(number)} ({self._share(self.radii.witness[:, k], number):.0%})"

    def _share(self, x: Tensor, number: int) -> float:
        model = self.cases.model
        return float(model.probabilities(model(x, exact=True))[0, number])


def answered(
    cases: Cases, called: Callable[[int], str], explainer: Explainer, judge: Judge, size: float | int, quiet: bool
) -> Answer:
    """Rank the features of one case, call the first of them relevant, and judge that."""
    with progress_bar(f"ranking {cases.features.kind}: {question(cases, called)}", quiet) as progress:
        started = cases.model.queries
        ranking = explainer(cases, progress)
        spent = cases.model.queries - started
    relevant = ranking.top([size])
    with progress_bar("measuring", quiet) as progress:
        radii = judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    return Answer(called, cases, ranking, relevant, radii, spent)


def question(cases: Cases, called: Callable[[int], str]) -> str:
    """What is asked about one case."""
    label, target = int(cases.label[0]), int(cases.target[0])
    return f"why {called(label)}" + (f" and not {called(target)}?" if target >= 0 else "?")


def _ties(ranking: Ranking, shown: int) -> list[str]:
    """A note where equal scores lie on both sides of the cut."""
    along = ranking.scores[0].gather(0, ranking.order[0])[: int(ranking.count[0])]
    if shown >= len(along) or float(along[shown - 1]) != float(along[shown]):
        return []
    equal = int((along[:shown] == along[shown]).sum())
    return [
        f"{equal} of the {shown} features shown have the same score as some that are not: a draw of the seed chose "
        "among them."
    ]
