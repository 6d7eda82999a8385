"""From an experiment file to a study: every object is made, and so checked, once."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cached_property, partial, reduce
from operator import or_
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor

from holdfast.analyses.analysis import Analysis
from holdfast.cases import AskableModel, Cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion
from holdfast.criteria.robustness import RobustnessRelevant, RobustnessRest
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.network import Network, Place, shown_names
from holdfast.errors import HoldfastError, first_line, unknown_name
from holdfast.experiment.engine import Engine
from holdfast.experiment.optional import fitting
from holdfast.experiment.spans import some_examples
from holdfast.experiment.study import BOTH, Gallery, Measure, Method, Study, check_parts
from holdfast.experiment.toml import A_TABLE, ExplainerTable, Piece, Settings, with_choices
from holdfast.explainers.explainer import Explainer
from holdfast.features import Features
from holdfast.modalities.modality import Modality
from holdfast.models.trees import TreeModel
from holdfast.reference import FixedReference, RandomRows, RandomWords
from holdfast.registry import Registry
from holdfast.robustness import Robustness

_ANY_TYPE = ConfigDict(arbitrary_types_allowed=True, strict=True)
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_OBJECTIVES = {"rest": RobustnessRest, "relevant": RobustnessRelevant}


def build(
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
    """Make the study that an experiment file describes.

    Args:
        settings: The file, as ``load`` read it.
        name: What the experiment is called.
        folder: Where weights that are trained are kept.
        limit: Only the first N examples.
        choices: Other ``data``, another ``network`` or other ``weights`` than the file names.
        device: Where the model computes.
        train: Whether a network may be trained. Without, an untrained one is used, which is enough to plan with.
        progress: Called with (done, total) epochs of training.

    Raises:
        HoldfastError: A setting is wrong, or data or weights cannot be read.
    """
    return _Builder(with_choices(settings, choices), limit, device).study(name, Place(folder, device, train, progress))


def _asked(model: AskableModel, x: Tensor, features: Features) -> Cases:
    """Ask about inputs. Trees of two classes are asked "why not the other?": the same question, in whole log-odds."""
    if isinstance(model, TreeModel) and len(model.classes) == 2:
        return model.ask(x, target=1 - model(x, exact=True).argmax(1), features=features)
    return model.ask(x, features=features)


class _Builder:
    """Makes the objects of one study. Data is loaded when the first of them needs it."""

    def __init__(self, settings: Settings, limit: int | None, device: str):
        self.settings, self.limit, self.device = settings, limit, device

    def study(self, name: str, place: Place) -> Study:
        settings = self.settings
        self._check_engine()
        methods, measures, gallery = self._methods(), self._measures(), self._gallery()
        analyses = tuple(self._analysis(kind, table) for kind, table in settings.analyses.items())
        check_parts(methods, measures, analyses, settings.main)
        examples, wanted = self.examples, self.data.wanted(len(self.examples), self.limit)
        self._check_tops(gallery, analyses)
        x = examples.x[wanted].to(self.device)
        sentences = None if examples.sentences is None else examples.sentences[wanted]
        features = self.modality.features(settings.features, x, sentences, examples.columns)
        model, about = self.network.model(self.data, examples, place)  # last: it may be trained
        vocabulary = examples.vocabulary
        methods, left_out = fitting(methods, self._optional, model)
        return Study(
            name=name,
            title=settings.title,
            cases=_asked(model, x, features),
            methods=methods,
            measures=measures,
            main=settings.main,
            sizes=tuple(settings.sizes),
            block=settings.block,
            examples=examples.names[wanted],
            analyses=analyses,
            gallery=gallery,
            modality=self.modality.name,
            sentences=sentences,
            marks=examples.marks,
            columns=examples.columns,
            vocabulary=vocabulary.names if vocabulary and any(one.uses_words for one in analyses) else (),
            published=settings.published,
            about={**about, **left_out},
        )

    # ------------------------------------------------------------------ data and network

    @cached_property
    def data(self) -> DataSet:
        made: DataSet = self._made(self.settings.data, DataSet.registry, "data")
        return made

    @cached_property
    def network(self) -> Network:
        piece = self.settings.model or Piece(use=self.data.default_network)
        use = piece.use or self.data.default_network
        if use.partition(":")[0] not in self.data.networks:
            raise HoldfastError(
                f"model.use should be {shown_names(self.data.networks)} for {self.data.name}, got {use!r}."
            )
        name, _, variant = use.partition(":")
        made: Network = self._made(
            Piece.model_validate({**piece.settings, "use": name, "variant": variant}), Network.registry, "model"
        )
        return made

    @cached_property
    def modality(self) -> Modality:
        return Modality.registry.make(self.data.modality)

    @cached_property
    def examples(self) -> Examples:
        return self.data.load(self.network, self.limit, self.device)

    def _check_engine(self) -> None:
        try:
            Engine.registry.maker(self.settings.engine)
        except HoldfastError as error:
            raise HoldfastError(f"engine: {error}") from error

    def _check_tops(self, gallery: Gallery | None, analyses: tuple[Analysis, ...]) -> None:
        """Refuse numbers of words that a text does not have, or of columns that a table does not have."""
        if self.examples.sentences is not None:
            fewest = min(map(len, self.examples.sentences.words))
            least = f"the {fewest} words of the shortest text, so that a word is left to move: raise data.min_words"
        elif self.examples.columns is not None:
            fewest = len(self.examples.columns.moving)
            least = f"the {fewest} columns that can change, so that one is left to move"
        else:
            return
        tops: dict[str, float | int] = {"the largest of sizes": self.settings.sizes[-1]}
        tops |= {f"analyses.{one.name}.top": top for one in analyses if (top := getattr(one, "top", None)) is not None}
        tops |= {"gallery.top": gallery.top} if gallery else {}
        for name, top in tops.items():
            if isinstance(top, int) and top >= fewest:
                raise HoldfastError(f"{name}, {top}, should be under {least}.")

    # ------------------------------------------------------------------ parts of the study

    @property
    def _optional(self) -> set[str]:
        """Names of the methods that are left out where they do not fit the model."""
        names = {name for name, table in self.settings.explainers.items() if table.optional}
        if self.settings.main in names:
            raise HoldfastError(f"explainers.{self.settings.main} is the main method: it cannot be optional.")
        return names

    def _methods(self) -> tuple[Method, ...]:
        return tuple(self._method(name, table) for name, table in self.settings.explainers.items())

    def _method(self, name: str, table: ExplainerTable) -> Method:
        place = f"explainers.{name}"
        judged = None if table.criteria is None else tuple(table.criteria)
        for criterion in judged or ():
            if criterion not in self.settings.criteria:
                known = ", ".join(self.settings.criteria)
                raise HoldfastError(f"{place}.criteria should be of {known}, got {criterion!r}.")
        if table.of and table.of not in self.settings.explainers:
            known = ", ".join(self.settings.explainers)
            raise HoldfastError(f"{place}.of should be one of {known}, got {table.of!r}.")
        made: Any = self._made(table, Explainer.registry, place, self._sizes_first(table))
        explainers: dict[str, Explainer] = {BOTH: made}
        search = getattr(getattr(made, "objective", None), "robustness", None)
        if search is not None:
            if table.search is not None:
                search = self._made(table.search, Robustness.registry, f"{place}.search")
            explainers = {side: replace(made, objective=make(search)) for side, make in _OBJECTIVES.items()}
        elif table.search is not None:
            raise HoldfastError(f"{place}.search is not a setting: {table.use} searches for nothing.")
        return Method(name, explainers, table.group, table.why, table.of, judged)

    def _sizes_first(self, table: ExplainerTable) -> dict[str, Any]:
        """Return the budget of explainers that have one: the largest size that is measured."""
        return {"budget": self.settings.sizes[-1]} if "budget" not in table.settings else {}

    def _measures(self) -> tuple[Measure, ...]:
        return tuple(
            Measure(name, self._made(table, Criterion.registry, f"criteria.{name}"), table.group, table.why)
            for name, table in self.settings.criteria.items()
        )

    def _gallery(self) -> Gallery | None:
        table = self.settings.gallery
        return None if table is None else self._with(Gallery, Gallery, table, "gallery", "the gallery")

    def _analysis(self, name: str, table: dict[str, Any]) -> Analysis:
        place = f"analyses.{name}"
        known = {n: cls for n, cls in Analysis.registry.classes().items() if not cls.automatic}
        if name not in known:
            raise HoldfastError(f"analyses: {unknown_name('analysis', name, list(known))}")
        made: Any = self._with(known[name], known[name], table, place, name)
        if any(field.name == "sizes" for field in fields(made)) and made.sizes is None:
            made = replace(made, sizes=tuple(self.settings.sizes))
        bound: Analysis = made.with_vocabulary(self.examples.vocabulary) if made.uses_words else made
        return bound

    # ------------------------------------------------------------------ one object

    def _made(
        self, piece: Piece, registry: Registry[Any], place: str, defaults: Mapping[str, Any] = MappingProxyType({})
    ) -> Any:
        """Make what ``use`` names, with the other keys as its settings."""
        try:
            maker: Any = registry.maker(piece.use)
        except HoldfastError as error:
            raise HoldfastError(f"{place}.use: {error}") from error
        make, kind = maker, maker
        if not isinstance(maker, type):  # a preset: other settings than the defaults of its class
            preset = maker()
            make, kind = partial(replace, preset), type(preset)
        known = {field.name for field in fields(kind)}
        settings = {key: value for key, value in defaults.items() if key in known}
        return self._with(make, kind, settings | piece.settings, place, piece.use)

    def _with(self, make: Callable[..., Any], kind: Any, settings: Mapping[str, Any], place: str, name: str) -> Any:
        """Make an object of a class with these settings, each checked by the type of its field."""
        types = typing.get_type_hints(kind, include_extras=True)
        hidden = {field.name for field in fields(kind) if field.metadata.get("from_data")} | {"objective"}
        allowed = [field.name for field in fields(kind) if field.init and field.name not in hidden]
        values = {}
        for key, value in settings.items():
            if key not in allowed:
                keys = ", ".join(allowed) or "none"
                raise HoldfastError(f"{place}.{key} is not a setting of {name}: use {keys}.")
            values[key] = self._value(value, types[key], f"{place}.{key}")
        try:
            return make(**values)
        except HoldfastError as error:
            raise HoldfastError(f"{place}: {error}") from error
        except TypeError as error:  # a field without a default
            raise HoldfastError(f"{place} cannot be made with these settings: {first_line(error)}") from error

    def _value(self, value: Any, kind: Any, place: str) -> Any:
        """Return one setting as the type of its field."""
        registry = getattr(kind, "registry", None)
        if isinstance(registry, Registry):
            return self._made(_piece(value, place), registry, place)
        if FixedReference in _parts(kind):
            return self._reference(value, kind, place)
        takes_tuple = any(typing.get_origin(one) is tuple for one in _parts(kind))
        return _checked(tuple(value) if takes_tuple and isinstance(value, list) else value, kind, place)

    def _reference(self, value: Any, kind: Any, place: str) -> Any:
        """Return a reference value, or several; ``"words"`` and spans of examples come from the data."""
        if typing.get_origin(kind) is tuple:
            if not isinstance(value, list):
                raise HoldfastError(f"{place} should be a list, got {value!r}.")
            each = typing.get_args(kind)[0]
            return tuple(self._reference(one, each, f"{place}.{number}") for number, one in enumerate(value))
        if value == "words":
            return self._words(place)
        plain = [one for one in (float, *_parts(kind)) if one in _parts(kind) and _is_plain(one)]
        if value == "typical":
            return self._typical(place)
        if isinstance(value, dict) or not plain:
            some = some_examples(value, self.data, self.examples, place)
            return RandomRows(some.values) if plain else some  # one of them at a time where one is expected
        types: Any = reduce(or_, (_Finite if one is float else one for one in plain))
        return _checked(float(value) if type(value) is int else value, types, place)

    def _words(self, place: str) -> RandomWords:
        words = self.examples.random_words
        if words is None:
            raise HoldfastError(f'{place} should not be "words" for {self.data.name}: it has none.')
        return words

    def _typical(self, place: str) -> FixedReference:
        row = self.examples.typical
        if row is None:
            raise HoldfastError(f'{place} should not be "typical" for {self.data.name}: it is no table.')
        return row


def _parts(kind: Any) -> set[Any]:
    """Return a type and all types inside it."""
    return {kind}.union(*(_parts(one) for one in typing.get_args(kind)))


def _is_plain(kind: Any) -> bool:
    """Whether a file can hold a value of this type of reference."""
    return kind is float or typing.get_origin(kind) is Literal


def _checked(value: Any, kind: Any, place: str) -> Any:
    try:
        return TypeAdapter(kind, config=_ANY_TYPE).validate_python(value)
    except ValidationError as error:
        words = (one["msg"].removeprefix("Input should be ") for one in error.errors())
        allowed = dict.fromkeys(text.replace("a valid tuple", "a list") for text in words)
        raise HoldfastError(f"{place} should be {' or '.join(allowed)}, got {value!r}.") from error


def _piece(value: Any, place: str) -> Piece:
    try:
        return Piece.model_validate(value)
    except ValidationError as error:
        raise HoldfastError(f"{place} should be {A_TABLE}, got {value!r}.") from error
