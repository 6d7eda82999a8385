"""An experiment as a TOML file: checked before anything runs, then made into a study."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError

from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.errors import HoldfastError
from holdfast.experiment.names import CRITERIA, ESTIMATORS, EXPLAINERS, METHODS, OBJECTIVES
from holdfast.experiment.schema import ExplainerTable, Piece, Settings, Span, named, read, with_choices
from holdfast.experiment.sources import Examples, classes_of, classifier, examples_of, wanted_of
from holdfast.experiment.study import (
    DiagnosticsCheck,
    Gallery,
    Measure,
    Method,
    References,
    SanityCheck,
    SensitivityCheck,
    Side,
    Study,
    SubstitutionCheck,
)
from holdfast.explainers.explainer import Explainer
from holdfast.features import Features
from holdfast.reference import FixedReference, RandomWords
from holdfast.robustness import Judge, Robustness
from holdfast.text import Sentences

__all__ = ["load", "named", "study"]

_ANY_KIND = ConfigDict(arbitrary_types_allowed=True, strict=True)
Makers = Mapping[str, Callable[..., Any]]


def load(what: str) -> Settings:
    """An experiment by name or from a TOML file, checked whole."""
    settings = read(what)
    try:
        _Maker(settings, None).check()
    except HoldfastError as error:
        raise HoldfastError(f"{what}: {error}") from error
    return settings


def study(
    settings: Settings,
    name: str,
    folder: Path,
    *,
    limit: int | None = None,
    choices: Mapping[str, str] = MappingProxyType({}),
    device: str = "cpu",
    train: bool = True,
    progress: Progress | None = None,
) -> Study:
    """The study that settings describe, on the first ``limit`` examples; a trained network is kept in ``folder``.

    ``choices`` are other ``data``, another ``network`` or other ``weights`` than the file says.

    Without ``train``, a network that is not trained yet stands for the one it will be: enough to plan with.
    """
    settings = with_choices(settings, choices)
    examples = examples_of(settings, limit, device)
    wanted = wanted_of(settings, examples, limit)
    maker = _Maker(settings, examples)
    methods, measures = maker.methods(), maker.measures()  # complaints come before a network is trained
    x = examples.x[wanted.start : wanted.stop].to(device)
    model, about = classifier(settings, examples, folder, device, train, progress)
    shape = tuple(x.shape[1:])
    read = None if examples.read is None else examples.read[wanted.start : wanted.stop]
    laid = {
        "pixels": lambda: Features.pixels(shape),
        "patches": lambda: Features.patches(shape, settings.features.size),
        "superpixels": lambda: Features.superpixels(x, settings.features.size),
        "words": lambda: _words_of(read),
    }[settings.features.kind]()
    cases = model.ask(x, features=laid)
    return Study(
        name=name,
        title=settings.title,
        cases=cases,
        methods=methods,
        measures=measures,
        main=settings.main,
        sizes=tuple(settings.sizes),
        block=settings.block,
        examples=examples.names[wanted.start : wanted.stop],
        classes=classes_of(settings, examples, model),
        read=read,
        marks=examples.marks,
        substitution=maker.substitution(),
        references=maker.references(),
        sanity=maker.sanity(),
        sensitivity=maker.sensitivity(),
        diagnostics=maker.diagnostics(),
        gallery=maker.gallery(),
        published=settings.published,
        about=about,
    )


class _Maker:
    """Makes the objects that pieces of the file describe."""

    def __init__(self, settings: Settings, examples: Examples | None):
        self.settings, self.examples = settings, examples

    def check(self) -> None:
        """Make all of them once, for their complaints."""
        names = [method.name for method in self.methods()]
        compared = self._compared(None)
        if self.settings.main not in compared:
            raise HoldfastError(f"main should be one of {', '.join(compared)}, got {self.settings.main!r}.")
        for name, table in self.settings.explainers.items():
            if table.of and table.of not in names:
                raise HoldfastError(f"explainers.{name}.of should be one of {', '.join(names)}, got {table.of!r}.")
        asked = self.references()
        others = [measure.name for _, measure in (asked.measures() if asked else ())]
        twice = [name for name, count in Counter([*self.settings.criteria, *others]).items() if count > 1]
        if twice:
            raise HoldfastError(f"{twice[0]!r} is named twice, in criteria or in analyses.references.values.")
        self.measures()
        checks = self.settings.analyses
        for key, check in (("sanity", checks.sanity), ("sensitivity", checks.sensitivity)):
            for name in (check and check.methods) or ():
                if name not in names:
                    raise HoldfastError(f"analyses.{key}.methods should be of {', '.join(names)}, got {name!r}.")
        self.diagnostics()
        self.substitution()
        self.gallery()

    def methods(self) -> tuple[Method, ...]:
        return tuple(self._method(name, table) for name, table in self.settings.explainers.items())

    def measures(self) -> tuple[Measure, ...]:
        found = []
        for name, table in self.settings.criteria.items():
            made: Criterion = self._made(table, CRITERIA, f"criteria.{name}")
            side: Side = "rest" if made.higher_is_better else "relevant"
            found.append(Measure(name, made, side, table.group, table.why))
        return tuple(found)

    def references(self) -> References | None:
        asked = self.settings.analyses.references
        if asked is None:
            return None
        values = tuple(self._words() if value == "words" else value for value in asked.values)
        return References(values, asked.score, asked.draws)

    def substitution(self) -> SubstitutionCheck | None:
        asked = self.settings.analyses.substitution
        if asked is None:
            return None
        if not self.settings.data.is_text:
            raise HoldfastError(f"analyses.substitution is about words: leave it out for {self.settings.data.name}.")
        judge = self.robustness(asked.judge, "analyses.substitution.judge", Judge.quick())
        reader = None if self.examples is None else self.examples.text_model
        if reader is None:
            return SubstitutionCheck(asked.top, judge, FixedReference(torch.zeros(1, 1)), ())
        return SubstitutionCheck(asked.top, judge, FixedReference(reader.known_vectors), reader.known_names)

    def sanity(self) -> SanityCheck | None:
        asked = self.settings.analyses.sanity
        return None if asked is None else SanityCheck(self._compared(asked.methods), asked.examples, asked.cascade)

    def sensitivity(self) -> SensitivityCheck | None:
        asked = self.settings.analyses.sensitivity
        if asked is None:
            return None
        return SensitivityCheck(self._compared(asked.methods), asked.examples, asked.radius, asked.top, asked.samples)

    def diagnostics(self) -> DiagnosticsCheck | None:
        asked = self.settings.analyses.diagnostics
        if asked is None:
            return None
        judge = self.robustness(asked.judge, "analyses.diagnostics.judge", Judge())
        return DiagnosticsCheck(asked.examples, judge, asked.seeds)

    def gallery(self) -> Gallery | None:
        asked = self.settings.gallery
        if asked is None:
            return None
        judge = self.robustness(asked.judge, "gallery.judge", Judge.quick())
        return Gallery(asked.examples, asked.top, asked.targets, judge)

    def _compared(self, methods: list[str] | None) -> tuple[str, ...]:
        """These methods, or all that the tables compare."""
        table = [name for name, piece in self.settings.explainers.items() if piece.group == "table"]
        return tuple(table if methods is None else methods)

    def robustness(self, piece: Piece | None, place: str, otherwise: Robustness) -> Robustness:
        made: Robustness = otherwise if piece is None else self._made(piece, METHODS, place)
        return made

    def _method(self, name: str, table: ExplainerTable) -> Method:
        place = f"explainers.{name}"
        made: Explainer = self._made(table, EXPLAINERS, place, {"objective"})
        judged = None if table.criteria is None else tuple(table.criteria)
        for criterion in judged or ():
            if criterion not in self.settings.criteria:
                known = ", ".join(self.settings.criteria)
                raise HoldfastError(f"{place}.criteria should be of {known}, got {criterion!r}.")
        if not any(field.name == "objective" for field in fields(made)):  # type: ignore[arg-type]  # all are dataclasses
            if table.search is not None:
                raise HoldfastError(f"{place}.search is not a setting: {table.use} searches for nothing.")
            return Method(name, {"both": made}, table.group, table.why, table.of, judged)
        searching: Any = made
        search = self.robustness(table.search, f"{place}.search", searching.objective.robustness)
        sides = {side: replace(searching, objective=make(search)) for side, make in OBJECTIVES.items()}
        return Method(name, sides, table.group, table.why, table.of, judged)

    def _made(self, piece: Piece, known: Makers, place: str, own: set[str] | None = None) -> Any:
        """What ``use`` names, with the other keys as its settings."""
        if piece.use not in known:
            raise HoldfastError(f"{place}.use should be one of {', '.join(known)}, got {piece.use!r}.")
        made = known[piece.use]()
        kinds = typing.get_type_hints(type(made), include_extras=True)
        allowed = [field.name for field in fields(made) if field.init and field.name not in (own or ())]
        given = {}
        for key, value in (piece.model_extra or {}).items():
            if key not in allowed:
                keys = ", ".join(allowed) or "none"
                raise HoldfastError(f"{place}.{key} is not a setting of {piece.use}: use {keys}.")
            given[key] = self._value(key, value, kinds[key], f"{place}.{key}")
        try:
            return replace(made, **given)
        except HoldfastError as error:
            raise HoldfastError(f"{place}: {error}") from error

    def _value(self, key: str, value: Any, kind: Any, place: str) -> Any:
        """One setting, of the kind its class says."""
        rooms: dict[str, Makers] = {"robustness": METHODS, "estimator": ESTIMATORS}
        if key in rooms:
            return self._made(_piece(value, place), rooms[key], place)
        if key in ("reference", "references") and value == "words":
            return self._words(place)
        if key == "references":
            return self._others(value, place)
        try:
            return TypeAdapter(kind, config=_ANY_KIND).validate_python(value)
        except ValidationError as error:
            told = dict.fromkeys(one["msg"].removeprefix("Input should be ") for one in error.errors())
            raise HoldfastError(f"{place} should be {' or '.join(told)}, got {value!r}.") from error

    def _words(self, place: str = "analyses.references.values") -> RandomWords:
        """Random words of the model's vocabulary."""
        if not self.settings.data.is_text:
            raise HoldfastError(f'{place} should not be "words" for {self.settings.data.name}: it has none.')
        if self.examples is None or self.examples.text_model is None:
            return RandomWords(torch.zeros(1, 2))
        return self.examples.text_model.random_words

    def _others(self, value: Any, place: str) -> FixedReference:
        """Inputs to compare with: other examples of the data."""
        try:
            asked = Span.model_validate(value)
        except ValidationError as error:
            raise HoldfastError(
                f"{place} should be {{ first = N, count = N }}: examples of the data, got {value!r}."
            ) from error
        if self.examples is None:
            return FixedReference(torch.zeros(1, 1))
        chosen = self.examples.x[asked.first : asked.first + asked.count]
        if len(chosen) < asked.count:
            raise HoldfastError(f"{place} asks for more than the {len(self.examples)} examples there are.")
        return FixedReference.inputs(chosen)


def _words_of(read: Sentences | None) -> Features:
    assert read is not None, "texts are read before their features are laid"
    return read.features


def _piece(value: Any, place: str) -> Piece:
    try:
        return Piece.model_validate(value)
    except ValidationError as error:
        raise HoldfastError(f'{place} should be a table such as {{ use = "…" }}, got {value!r}.') from error
