"""The interface of analyses in experiments: settings, computation, stored arrays, tables and figures."""

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
from holdfast.settings import Settings
from holdfast.table import Table

Arrays = dict[str, np.ndarray]
Draw = Callable[[Any], None]
"""Draws on matplotlib axes."""


class Subject(Enum):
    """The input of an analysis, in each block of cases."""

    EXPLAINERS = "the explainer of each method"
    RANKINGS = "every ranking of every method"
    MAIN_RANKING = "the ranking of the main method"
    STORED = "what other work has stored"


class Computed(NamedTuple):
    """The result of one computation, to be stored.

    Attributes:
        arrays: Arrays by name; for an analysis that is computed ``together``, with one row for each case.
        notes: Remarks for the reader of the results.
    """

    arrays: Arrays
    notes: Sequence[str] = ()


class ExtraMeasure(NamedTuple):
    """A criterion that an analysis adds to an experiment.

    Attributes:
        name: The heading of its column.
        criterion: The criterion.
        variant: Which variant of the criterion it is, such as the name of a reference.
    """

    name: str
    criterion: Criterion
    variant: str


class Vocabulary(NamedTuple):
    """The words of a text model, for analyses of texts.

    Attributes:
        vectors: The word vectors ``[words, E]``.
        names: The words.
    """

    vectors: FixedReference
    names: tuple[str, ...]


class Cost(NamedTuple):
    """The cost of a ranking: seconds, and rows through the model."""

    seconds: float
    queries: Queries


class Stored(Protocol):
    """The results of a finished or partial experiment that an analysis can read."""

    @property
    def main(self) -> str:
        """The method that the others are compared with."""

    @property
    def sizes(self) -> tuple[float, ...] | tuple[int, ...]:
        """The sizes of the relevant set."""

    @property
    def published(self) -> str | None:
        """The data set of the published values that tables show beside the measured ones."""

    @property
    def example_names(self) -> list[str]:
        """Names of the examples that tables use."""

    @property
    def largest_block(self) -> int:
        """The most cases that were computed together."""

    @property
    def machines(self) -> list[str]:
        """The machines that computed the results."""

    @property
    def marks(self) -> Mapping[str, Mapping[str, frozenset[int]]] | None:
        """Features that people marked, by example and annotator."""

    def methods(self, *groups: str) -> list[str]:
        """Return the names of the computed methods of these groups; without groups, of all."""

    def arrays(self, analysis: str, side: str = "rest") -> dict[str, list[Arrays]]:
        """Return the stored arrays of an analysis.

        Args:
            analysis: The name of the analysis.
            side: Which ranking to use of methods that have two: "rest" or "relevant".

        Returns:
            By method: the arrays by name, one item for each block that all methods have.
        """

    def settings_of(self, analysis: str) -> str:
        """Return the settings of an analysis, as text."""

    def notes_of(self, kind: str) -> list[str]:
        """Return the notes of the units of an analysis, without repetition."""

    def variant_areas(self, analysis: str, *groups: str) -> tuple[list[str], dict[str, Tensor]]:
        """Return the areas of the measures that an analysis added.

        Args:
            analysis: The name of the analysis.
            groups: Groups of methods; without any, all methods.

        Returns:
            Names of the variants, and by method the areas ``[variants, measures, B]``. Measures for which higher is
            better come first.
        """

    def rankings(self, *groups: str) -> dict[str, Ranking]:
        """Return, by method, the ranking of all examples that tables use; of two, the one for Robustness-S̄r."""

    def costs(self) -> dict[str, Cost]:
        """Return, by method, the cost of its ranking; of two, of the one for Robustness-S̄r."""


class Analysis(Settings, ABC):
    """An analysis of an experiment. Subclass as a frozen dataclass whose fields are its settings.

    A subclass that sets ``name`` can be used as ``[analyses.NAME]`` in experiment files, and appears in reports.
    A field ``methods`` (names; None: all of the tables) limits the methods that it is computed for. A field
    ``examples`` limits the number of cases, from the first on.

    Attributes:
        name: Its name in experiment files.
        title: The heading of its section in reports.
        subject: The input of its computation.
        together: Whether several rankings of the same cases can be computed in one call.
        automatic: Whether it needs no settings and is part of every report.
        uses_words: Whether it needs the vocabulary of the model.
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
        """Check the settings against the experiment.

        Args:
            methods: Names of the methods of the experiment.

        Raises:
            HoldfastError: The settings name another method, or fewer than one example.
        """
        examples = getattr(self, "examples", None)
        if examples is not None and examples < 1:
            raise HoldfastError(f"examples should be at least 1, got {examples}.")
        for method in getattr(self, "methods", None) or ():
            if method not in methods:
                raise HoldfastError(f"methods should be of {', '.join(methods)}, got {method!r}.")

    def with_vocabulary(self, vocabulary: Vocabulary | None) -> Analysis:
        """Return the analysis with the words of the model.

        Args:
            vocabulary: The words; None if inputs are not texts.

        Raises:
            HoldfastError: The analysis needs words, and there are none.
        """
        return self

    def measures(self) -> Sequence[ExtraMeasure]:
        """Return criteria to measure for every method, for an analysis that has no computation of its own."""
        return ()

    # ------------------------------------------------------------------ computing

    def compute(self, cases: Cases, subject: Explainer | Ranking, progress: Progress | None) -> Computed:
        """Compute one block of cases.

        Args:
            cases: B cases.
            subject: The explainer of a method, or a ranking of the cases, depending on ``Analysis.subject``.
            progress: Called with (done, total).

        Returns:
            The arrays and notes to store.
        """
        raise NotImplementedError(f"{type(self).__name__} computes nothing: it reads what is stored.")

    def rows(self, cases: Cases, explainer: Explainer) -> int | None:
        """Estimate how many rows go through the model.

        Args:
            cases: The cases of one block.
            explainer: The explainer of the method.

        Returns:
            The number of rows; None: unknown.
        """
        return None

    # ------------------------------------------------------------------ reading

    @classmethod
    def read(cls, stored: Stored) -> Result | None:
        """Join the stored arrays of all blocks.

        Args:
            stored: The results of the experiment.

        Returns:
            The result; None if nothing is stored.
        """
        return None

    @classmethod
    def tables(cls, result: Any, stored: Stored) -> list[Table]:
        """Return the tables of a result.

        Args:
            result: The result that ``read`` returned.
            stored: The results of the experiment, for published values and the name of the main method.
        """
        return []

    @classmethod
    def replacements(cls, arrays: Mapping[str, np.ndarray], vocabulary: Sequence[str]) -> list[dict[int, str]]:
        """Return real words that can replace features, for the gallery.

        Args:
            arrays: The stored arrays of one block.
            vocabulary: The words of the model.

        Returns:
            For each case of the block, words by feature.
        """
        return []

    @classmethod
    def figures(cls, result: Any) -> dict[str, Draw]:
        """Return functions that draw the figures of a result, by title.

        Args:
            result: The result that ``read`` returned.
        """
        return {}
