"""The interface of analyses in experiments: settings, computation, packing, table and plot in one file."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from holdfast.analyses.result import Result
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.models.model import Queries
from holdfast.ranking import Ranking
from holdfast.reference import FixedReference
from holdfast.registry import Registry
from holdfast.table import Table

Arrays = dict[str, np.ndarray]
Draw = Callable[[Any], None]
"""Draws on matplotlib axes."""


class Subject(Enum):
    """What an analysis is computed from, in each block of cases."""

    EXPLAINERS = "the explainer of each method"
    RANKINGS = "every ranking of every method"
    MAIN_RANKING = "the ranking of the main method"
    STORED = "what other work has stored"


class Computed(NamedTuple):
    """What one computation stores.

    Attributes:
        arrays: By name; for an analysis that is computed ``together``, one row for each case.
        notes: What a reader must know.
    """

    arrays: Arrays
    notes: Sequence[str] = ()


class ExtraMeasure(NamedTuple):
    """A criterion that an analysis adds to an experiment.

    Attributes:
        name: The heading of its column.
        criterion: What is measured.
        variant: Which variant of the criterion it is, such as the name of a reference.
    """

    name: str
    criterion: Criterion
    variant: str


class Vocabulary(NamedTuple):
    """The words of a text model, for analyses of texts.

    Attributes:
        vectors: ``[words, E]``.
        names: What the words are.
    """

    vectors: FixedReference
    names: tuple[str, ...]


class Cost(NamedTuple):
    """What a ranking cost: seconds and rows through the model."""

    seconds: float
    queries: Queries


class Stored(Protocol):
    """What an analysis can read of a finished or partial experiment."""

    @property
    def main(self) -> str:
        """The method that the others are compared with."""

    @property
    def sizes(self) -> tuple[float, ...] | tuple[int, ...]:
        """The sizes of the relevant set."""

    @property
    def published(self) -> str | None:
        """The data set whose published figures stand beside the measured ones."""

    @property
    def example_names(self) -> list[str]:
        """Names of the examples that tables are about."""

    @property
    def largest_block(self) -> int:
        """The most cases that were computed together."""

    @property
    def machines(self) -> list[str]:
        """Where the results were computed."""

    @property
    def marks(self) -> Mapping[str, Mapping[str, frozenset[int]]] | None:
        """Features that people marked, by example and annotator."""

    def methods(self, *groups: str) -> list[str]:
        """Names of the methods of some groups, or all."""

    def arrays(self, analysis: str, side: str = "rest") -> dict[str, list[Arrays]]:
        """By method: the stored arrays of an analysis, one for each block that all methods have.

        Of methods with two rankings, those of ``side``.
        """

    def settings_of(self, analysis: str) -> str:
        """The settings of an analysis, as text."""

    def notes_of(self, kind: str) -> list[str]:
        """What was noted while units of a kind were computed, without repetition."""

    def variant_areas(self, analysis: str, *groups: str) -> tuple[list[str], dict[str, Tensor]]:
        """Variants of the measures that an analysis added, and by method the areas ``[variants, measures, B]``.

        Measures of a variant for which higher is better come first.
        """

    def rankings(self, *groups: str) -> dict[str, Ranking]:
        """By method: the ranking of all examples that tables are about; that for Robustness-S̄r of two."""

    def costs(self) -> dict[str, Cost]:
        """By method: what its ranking cost; that for Robustness-S̄r of two."""


class Analysis(ABC):
    """An analysis of an experiment. Subclass as a frozen dataclass whose fields are its settings.

    A subclass that sets ``name`` can be named as ``[analyses.NAME]`` in experiment files, and appears in reports.
    Fields called ``methods`` (names; None: all of the tables) and ``examples`` (the first ones) limit what it is
    computed for.

    Attributes:
        name: What it is called in experiment files.
        title: The heading of its section in reports.
        subject: What it is computed from.
        together: Whether several rankings of the same cases can be computed in one call.
        automatic: Whether it needs no settings and is part of every report.
        uses_words: Whether it is about words, and so needs the vocabulary of the model.
    """

    registry: ClassVar[Registry[Analysis]] = Registry("analysis", "holdfast.analyses", ("title", "subject"))
    name: ClassVar[str]
    title: ClassVar[str]
    subject: ClassVar[Subject]
    together: ClassVar[bool] = False
    automatic: ClassVar[bool] = False
    uses_words: ClassVar[bool] = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Analysis.registry.add(cls)

    # ------------------------------------------------------------------ before anything is computed

    def check(self, methods: Sequence[str]) -> None:
        """Refuse settings that name methods which the experiment does not have, or fewer than one example."""
        examples = getattr(self, "examples", None)
        if examples is not None and examples < 1:
            raise HoldfastError(f"examples should be at least 1, got {examples}.")
        for method in getattr(self, "methods", None) or ():
            if method not in methods:
                raise HoldfastError(f"methods should be of {', '.join(methods)}, got {method!r}.")

    def with_vocabulary(self, vocabulary: Vocabulary | None) -> Analysis:
        """Return the analysis with the words of the model; None if inputs are no texts."""
        return self

    def measures(self) -> Sequence[ExtraMeasure]:
        """Return criteria to measure for every method, in place of a computation."""
        return ()

    # ------------------------------------------------------------------ computing

    def compute(self, cases: Cases, subject: Explainer | Ranking, progress: Progress | None) -> Computed:
        """Compute one block of cases.

        Args:
            cases: The cases.
            subject: An explainer or a ranking of the cases, as ``subject`` says.
            progress: Called with (done, total).

        Returns:
            What to store.
        """
        raise NotImplementedError(f"{type(self).__name__} computes nothing: it reads what is stored.")

    def rows(self, cases: Cases, explainer: Explainer) -> int | None:
        """Return about how many rows go through the model; None: unknown."""
        return None

    # ------------------------------------------------------------------ reading

    @classmethod
    def read(cls, stored: Stored) -> Result | None:
        """Return the result of all blocks; None if there is none."""
        return None

    @classmethod
    def tables(cls, result: Any, stored: Stored) -> list[Table]:
        """Return the tables of a result, as ``read`` returned it."""
        return []

    @classmethod
    def replacements(cls, arrays: Mapping[str, np.ndarray], vocabulary: Sequence[str]) -> list[dict[int, str]]:
        """Return, for each case of a stored unit, real words to put in place of features, for the gallery."""
        return []

    @classmethod
    def figures(cls, result: Any) -> dict[str, Draw]:
        """Return the figures of a result by title."""
        return {}
