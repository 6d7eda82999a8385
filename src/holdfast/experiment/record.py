"""A study as the store keeps it, so that results can be read without the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from holdfast.columns import Columns
from holdfast.columns.stored import columns_of, columns_text
from holdfast.criteria.criterion import Criterion
from holdfast.errors import HoldfastError
from holdfast.experiment.study import Measure, Method, Study
from holdfast.explainers.explainer import Explainer
from holdfast.models.model import Model
from holdfast.robustness import Robustness
from holdfast.text import Word
from holdfast.version import RESULTS, __version__


@dataclass(frozen=True)
class Role:
    """What a unit is for.

    Attributes:
        block: The number of its block; -1 for targeted explanations, which have a block of their own.
        method: The method that it is about.
        side: Which of the method's rankings.
        measure: The criterion of a curve, or the analysis.
        target: For targeted explanations: which of the next likely classes; -1 otherwise.
    """

    block: int = -1
    method: str = ""
    side: str = ""
    measure: str = ""
    target: int = -1


@dataclass(frozen=True)
class UnitRecord:
    """The key and kind of a unit, and what it is for."""

    key: str
    kind: str
    role: Role


@dataclass(frozen=True)
class MethodRecord:
    """A method: see ``Method``.

    Attributes:
        explainers: The settings of its explainers by side.
        kinds: The names under which their classes are registered; empty in files of earlier versions.
    """

    name: str
    group: str
    why: str
    of: str
    explainers: dict[str, str]
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasureRecord:
    """A criterion: see ``Measure``.

    Attributes:
        family: The heading under which tables put it.
        criterion: Its settings.
        judge: The settings of the robustness method that measures the model; empty if it has none.
        higher: Whether higher is better.
        bound: Which side of the true value measured values lie on.
        kind: The name under which its class is registered; empty in files of earlier versions.
    """

    name: str
    family: str
    criterion: str
    judge: str
    side: str
    higher: bool
    bound: str
    group: str
    why: str
    variant: str
    analysis: str
    kind: str = ""


@dataclass(frozen=True)
class TextRecord:
    """A text, and where its words begin and end."""

    text: str
    spans: tuple[tuple[int, int], ...]

    @property
    def words(self) -> list[Word]:
        """The words."""
        return [Word(self.text[start:end], start, end) for start, end in self.spans]


@dataclass(frozen=True)
class StudyRecord:
    """A study: see ``Study``.

    Attributes:
        version: The version of holdfast that planned it.
        results: The version of results.
        model: The content of the model, as a short text.
        module: The class of the network.
        features: How many features there are, and their kind.
        classes: Names of the classes.
        blocks: The first example of each block, and the one after its last.
        settings: Settings of analyses and of the gallery, by name.
        top: How many features the gallery calls relevant.
        units: Every unit that belongs to it.
        columns: The columns of the table as JSON; empty if inputs are no rows of a table.
        norm: The norm of the gallery's radii; empty without a gallery, and in files of earlier versions.
    """

    name: str
    title: str
    version: str
    results: int
    model: str
    module: str
    feature_count: int
    feature_kind: str
    modality: str
    examples: tuple[str, ...]
    classes: tuple[str, ...]
    blocks: tuple[tuple[int, int], ...]
    main: str
    sizes: tuple[int, ...] | tuple[float, ...]
    published: str | None
    methods: tuple[MethodRecord, ...]
    measures: tuple[MeasureRecord, ...]
    settings: dict[str, str]
    top: int | float | None
    texts: tuple[TextRecord, ...]
    vocabulary: tuple[str, ...]
    marks: dict[str, dict[str, tuple[int, ...]]]
    about: dict[str, str]
    units: tuple[UnitRecord, ...] = field(repr=False)
    columns: str = field(default="", repr=False)
    norm: str = ""

    @property
    def table(self) -> Columns | None:
        """The columns of the table; None if inputs are no rows of a table."""
        return Columns(tuple(columns_of(self.columns))) if self.columns else None

    @property
    def unit_names(self) -> dict[str, str]:
        """What each unit is for, in words, by key."""
        names = {}
        for unit in self.units:
            block = f"block {unit.role.block}" if unit.role.block >= 0 else ""
            names[unit.key] = ", ".join(filter(None, (unit.kind, unit.role.method, unit.role.measure, block)))
        return names

    def plain(self) -> dict[str, Any]:
        """Return the record as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def parse(cls, content: Mapping[str, Any], path: object) -> StudyRecord:
        """Read a record back.

        Args:
            content: Plain values, as ``plain`` returned them.
            path: The file that they come from, for messages.

        Raises:
            HoldfastError: They are not a study of this version of results.
        """
        try:
            return _RECORD.validate_python(content)
        except ValidationError as error:
            wrong = ".".join(str(part) for part in error.errors()[0]["loc"]) or "its start"
            raise HoldfastError(
                f"{path} holds a study that this version of holdfast cannot read (at {wrong}): run the experiment "
                "again."
            ) from error


_RECORD = TypeAdapter(StudyRecord)


def record_of(
    study: Study, model: str, blocks: Sequence[tuple[int, int]], units: Sequence[tuple[str, str, Role]]
) -> StudyRecord:
    """Return the record of a study.

    Args:
        study: The study.
        model: The content of its model, as a short text.
        blocks: The first example of each block, and the one after its last.
        units: Key, kind and role of every unit.
    """
    cases = study.cases
    settings = {analysis.name: repr(analysis) for analysis in study.analyses}
    return StudyRecord(
        name=study.name,
        title=study.title,
        version=__version__,
        results=RESULTS,
        model=model,
        module=type(getattr(cases.model, "module", cases.model)).__name__,
        feature_count=cases.features.count,
        feature_kind=cases.features.kind,
        modality=study.modality,
        examples=tuple(study.examples or map(str, range(len(cases)))),
        classes=cases.model.classes,
        blocks=tuple(blocks),
        main=study.main,
        sizes=study.sizes,
        published=study.published,
        methods=tuple(map(_method, study.methods)),
        measures=tuple(_measure(m, cases.model) for m in study.every_measure),
        settings=settings | ({"gallery": repr(study.gallery)} if study.gallery else {}),
        top=study.gallery.top if study.gallery else None,
        texts=_texts(study),
        vocabulary=study.vocabulary,
        marks=_marks(study),
        about=dict(study.about),
        columns="" if study.columns is None else columns_text(study.columns.columns),
        units=tuple(UnitRecord(key, kind, role) for key, kind, role in units),
        norm=type(study.gallery.judge.norm).__name__ if study.gallery else "",
    )


def _judge(criterion: Criterion, model: Model) -> Robustness | None:
    """Return the method by which a criterion measures this model: the exact one, where there is one."""
    robustness = getattr(criterion, "robustness", None)
    return robustness.adapted(model) if isinstance(robustness, Robustness) else None


def _method(method: Method) -> MethodRecord:
    made = method.explainers.items()
    kinds = tuple(dict.fromkeys(kind for _, explainer in made if (kind := _kind(explainer))))
    return MethodRecord(method.name, method.group, method.why, method.of, {side: repr(e) for side, e in made}, kinds)


def _measure(measure: Measure, model: Model) -> MeasureRecord:
    judge = _judge(measure.criterion, model)
    return MeasureRecord(
        name=measure.name,
        family=measure.criterion.family,
        criterion=repr(measure.criterion),
        judge="" if judge is None else repr(judge),
        side=measure.side,
        higher=measure.criterion.higher_is_better,
        bound=measure.criterion.bound if judge is None else judge.bound,
        group=measure.group,
        why=measure.why,
        variant=measure.variant,
        analysis=measure.analysis,
        kind=_kind(measure.criterion),
    )


def _kind(made: Explainer | Criterion) -> str:
    """Return the name under which the class is registered; empty if it has none."""
    return str(getattr(made, "name", ""))


def _texts(study: Study) -> tuple[TextRecord, ...]:
    if study.sentences is None:
        return ()
    both = zip(study.sentences.texts, study.sentences.words, strict=True)
    return tuple(TextRecord(text, tuple((word.start, word.end) for word in words)) for text, words in both)


def _marks(study: Study) -> dict[str, dict[str, tuple[int, ...]]]:
    if study.marks is None:
        return {}
    marks = study.marks.marks
    return {name: {who: tuple(sorted(marked)) for who, marked in marks[name].items()} for name in study.examples}
