"""What an experiment computes: methods, criteria and analyses on some cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from holdfast.analyses.agreement import Marks
from holdfast.analyses.analysis import Analysis
from holdfast.cases import Cases
from holdfast.columns import Columns
from holdfast.criteria.criterion import Criterion
from holdfast.curve import SIZES
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.robustness import Judge, Robustness
from holdfast.settings import Count, Natural, Settings
from holdfast.sizes import Size
from holdfast.text import Sentences

Side = Literal["rest", "relevant"]
"""What a ranking optimises, and which rankings a criterion is meant for.

Robustness-S̄r and Insertion belong to "rest", Robustness-Sr and Deletion to "relevant", as in the paper.
"""
SIDES: tuple[Side, ...] = ("rest", "relevant")
BOTH = "both"
"""The side of a method that has one ranking."""


@dataclass(frozen=True)
class Method(Settings):
    """A row of the tables.

    Attributes:
        name: What the row is called.
        explainers: One explainer (``"both"``), or one for each side.
        group: ``"table"``: a method that tables compare. ``"ablation"``: a variant of the main method. ``"probe"``: a
            variant ``of`` a method that answers the question ``why`` it does well.
        why: The question that a probe answers.
        of: The method that a probe is a variant of.
        judged: Names of the criteria that measure it; None: all of them.
    """

    name: str
    explainers: Mapping[str, Explainer]
    group: Literal["table", "ablation", "probe"] = "table"
    why: str = ""
    of: str = ""
    judged: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        by_side = self.explainers if isinstance(self.explainers, Mapping) else {BOTH: self.explainers}
        registry = Explainer.registry
        made = {side: registry.instance(one, Explainer) for side, one in by_side.items()}  # type: ignore[type-abstract]  # checked
        object.__setattr__(self, "explainers", made)
        if set(self.explainers) not in ({BOTH}, set(SIDES)):
            raise HoldfastError(f'{self.name} needs one explainer ("both") or one for each of {", ".join(SIDES)}.')

    @property
    def first(self) -> tuple[str, Explainer]:
        """Its only ranking, or that for Robustness-S̄r: what is shown where there is room for one."""
        side = BOTH if BOTH in self.explainers else "rest"
        return side, self.explainers[side]


@dataclass(frozen=True)
class Measure(Settings):
    """A column of the tables.

    Attributes:
        name: What the column is called.
        criterion: What is measured.
        group: ``"table"``: tables compare methods by it. ``"probe"``: it explains the verdict of another criterion.
            ``"extra"``: an analysis needs it.
        why: The question that a probe answers.
        variant: Which variant of a criterion it is, for an analysis.
        analysis: The analysis that needs it.
    """

    name: str
    criterion: Criterion
    group: Literal["table", "probe", "extra"] = "table"
    why: str = ""
    variant: str = ""
    analysis: str = ""

    @property
    def side(self) -> Side:
        """The side whose rankings it is meant for."""
        return "rest" if self.criterion.higher_is_better else "relevant"


@dataclass(frozen=True)
class Gallery(Settings):
    """Explanations of single examples.

    Attributes:
        examples: How many examples are shown, from the first on.
        top: How many features are relevant: a share or a number.
        targets: For how many of the next likely classes "why not this class?" is answered, too.
        judge: Measures the radii.
    """

    examples: Count = 10
    top: Size = 0.2
    targets: Natural = 2
    judge: Robustness = field(default_factory=Judge.quick)


@dataclass(frozen=True, eq=False)
class Study:
    """Methods, criteria and analyses on some cases.

    Attributes:
        name: What the experiment is called.
        cases: The examples.
        methods: The rows of the tables.
        measures: The columns of the tables.
        main: The method that the others are compared with.
        title: The heading of the report.
        sizes: The sizes of the relevant set.
        block: How many cases are computed together.
        examples: Names of the examples.
        analyses: What else is computed.
        gallery: Which examples are shown.
        modality: The kind of the inputs, which says how they are drawn.
        sentences: The texts behind the cases.
        marks: What people marked in the examples.
        columns: The columns of the table behind the cases.
        vocabulary: Names of the words that replace others.
        published: The data set whose published figures stand beside the measured ones.
        about: What else a reader should know, by name.
        model: A name for a model that has no weights to recognise it by.
    """

    name: str
    cases: Cases
    methods: tuple[Method, ...]
    measures: tuple[Measure, ...]
    main: str
    title: str = ""
    sizes: tuple[float, ...] | tuple[int, ...] = SIZES
    block: int = 10
    examples: tuple[str, ...] = ()
    analyses: tuple[Analysis, ...] = ()
    gallery: Gallery | None = None
    modality: str = "image"
    sentences: Sentences | None = None
    marks: Marks | None = None
    columns: Columns | None = None
    vocabulary: tuple[str, ...] = ()
    published: str | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None

    def __post_init__(self) -> None:
        check_parts(self.methods, self.measures, self.analyses, self.main)
        if self.block < 1 or not self.measures:
            raise HoldfastError("a study needs at least one criterion, and blocks of at least one case.")
        if self.examples and len(self.examples) != len(self.cases):
            raise HoldfastError(f"{len(self.examples)} examples are named, there are {len(self.cases)}.")

    @property
    def every_measure(self) -> tuple[Measure, ...]:
        """The criteria of the tables, and those that analyses need."""
        return (*self.measures, *extra_measures(self.analyses))

    def measures_of(self, method: Method) -> list[Measure]:
        """Return the criteria that measure a method."""
        if method.judged is None:
            return list(self.every_measure)
        return [measure for measure in self.measures if measure.name in method.judged]

    def method(self, name: str) -> Method:
        """Return the method of this name."""
        return next(method for method in self.methods if method.name == name)


def extra_measures(analyses: Sequence[Analysis]) -> list[Measure]:
    """Return the criteria that analyses need."""
    return [
        Measure(name, criterion, "extra", variant=variant, analysis=analysis.name)
        for analysis in analyses
        for name, criterion, variant in analysis.measures()
    ]


def check_parts(
    methods: Sequence[Method], measures: Sequence[Measure], analyses: Sequence[Analysis], main: str
) -> None:
    """Refuse names that are taken twice or not known.

    Args:
        methods: The rows of the tables.
        measures: The columns of the tables.
        analyses: What else is computed.
        main: The method that the others are compared with.

    Raises:
        HoldfastError: A name is wrong.
    """
    names = [method.name for method in methods]
    _check_names("method", names)
    _check_names("criterion", [measure.name for measure in (*measures, *extra_measures(analyses))])
    _check_names("analysis", [analysis.name for analysis in analyses], some=False)
    compared = [method.name for method in methods if method.group == "table"]
    if main not in compared:
        raise HoldfastError(f"main should be one of {', '.join(compared)}, got {main!r}.")
    for analysis in analyses:
        try:
            analysis.check(names)
        except HoldfastError as error:
            raise HoldfastError(f"analyses.{analysis.name}.{error}") from error


def _check_names(what: str, names: list[str], some: bool = True) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice or (some and not names):
        raise HoldfastError(f"the {what} {twice[0]!r} is named twice." if twice else f"name at least one {what}.")
