"""An experiment as a TOML file: checked key by key before anything runs, then made into a study."""

from __future__ import annotations

import hashlib
import json
import sys
import typing
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from holdfast.chunks import Progress
from holdfast.criteria import Criterion
from holdfast.curve import SIZES
from holdfast.data import Digits, fashion_mnist, mnist, mnist_cnn
from holdfast.data.digits import FASHION, load_weights
from holdfast.data.networks import mnist_cnn as mnist_network
from holdfast.data.train import EPOCHS, train_cnn
from holdfast.errors import HoldfastError
from holdfast.experiment.names import CRITERIA, ESTIMATORS, EXPLAINERS, METHODS, OBJECTIVES
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
)
from holdfast.explainers import Explainer
from holdfast.features import Features
from holdfast.model import Classifier
from holdfast.reference import Given
from holdfast.robustness import Judge, MinNorm, Robustness

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAMED = files("holdfast.experiment") / "named"
_ANY_KIND = ConfigDict(arbitrary_types_allowed=True, strict=True)
Makers = Mapping[str, Callable[..., Any]]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


def _rising(sizes: list[float]) -> list[float]:
    if sizes != sorted(set(sizes)):
        raise ValueError("shares of the features that rise")
    return sizes


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Piece(BaseModel):
    """``use`` names an explainer, a criterion, … ; every other key is one of its settings."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    use: str


class Data(_Table):
    """Which examples: ``count`` of them from the ``first`` on; ``root`` is a folder with the full set."""

    name: Literal["mnist", "fashion-mnist"]
    root: str | None = None
    first: Annotated[int, Field(ge=0)] = 0
    count: Count = 100


class Span(_Table):
    """Some of the examples."""

    first: Annotated[int, Field(ge=0)]
    count: Count


class Network(_Table):
    """``weights``: "embedded", "train" (on the data's training split, kept beside the results), or a file."""

    network: Literal["mnist-cnn"] = "mnist-cnn"
    weights: str = "embedded"
    epochs: Count = EPOCHS
    seed: int = 0


class Laid(_Table):
    """What moves together."""

    kind: Literal["pixels", "patches", "superpixels"] = "pixels"
    size: Count = 1


class ExplainerTable(Piece):
    """An explainer; those with an objective are made once for each side, searching with ``search``.

    It is judged by ``criteria``: by all of them, and under all references, if not said. A probe is a variant ``of`` a
    method and answers ``why``.
    """

    group: Literal["table", "ablation", "probe"] = "table"
    why: str = ""
    of: str = ""
    criteria: list[str] | None = None
    search: Piece | None = None


class CriterionTable(Piece):
    """A criterion; ``group = "probe"`` are those that explain another's verdict."""

    group: Literal["table", "probe"] = "table"
    why: str = ""


class ReferencesTable(_Table):
    """Insertion and Deletion under several references."""

    values: list[Finite | Literal["uniform", "blur", "mean"]] = ["uniform", 0.0, 0.25, 0.5, 0.75, 1.0]
    score: Literal["logit", "probability", "margin"] = "logit"
    draws: Count = 10


class SanityTable(_Table):
    """Which methods (all of the tables if not said), on how many examples."""

    methods: list[str] | None = None
    examples: Count = 100
    cascade: bool = False


class SensitivityTable(_Table):
    """Which methods (all of the tables if not said), on how many examples, how near."""

    methods: list[str] | None = None
    examples: Count = 100
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    top: Share = 0.2
    samples: Count = 10


class DiagnosticsTable(_Table):
    """How far radii can be trusted."""

    examples: Count = 20
    judge: Piece | None = None
    seeds: Annotated[int, Field(ge=2)] = 5


class Analyses(_Table):
    """Those that are named are made."""

    references: ReferencesTable | None = None
    sanity: SanityTable | None = None
    sensitivity: SensitivityTable | None = None
    diagnostics: DiagnosticsTable | None = None


class GalleryTable(_Table):
    """Pictures of the first examples."""

    examples: Count = 10
    top: Share = 0.2
    targets: Annotated[int, Field(ge=0)] = 2
    judge: Piece | None = None


class Settings(_Table):
    """The whole file."""

    title: str = ""
    main: str
    data: Data
    model: Network = Network()
    features: Laid = Laid()
    sizes: Annotated[list[Share], Field(min_length=2), AfterValidator(_rising)] = list(SIZES)
    block: Count = 10
    published: Literal["mnist"] | None = None
    explainers: Annotated[dict[str, ExplainerTable], Field(min_length=1)]
    criteria: Annotated[dict[str, CriterionTable], Field(min_length=1)]
    analyses: Analyses = Analyses()
    gallery: GalleryTable | None = None
    engine: Literal["local", "ray"] = "local"


# ---------------------------------------------------------------------- reading


def named() -> list[str]:
    """The experiments that come with the package."""
    return sorted(path.name.removesuffix(".toml") for path in _NAMED.iterdir() if path.name.endswith(".toml"))


def load(what: str) -> Settings:
    """An experiment by name or from a TOML file, checked whole."""
    if what.endswith(".toml"):
        try:
            text = Path(what).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise HoldfastError(f"cannot read the experiment {what}: {error}.") from error
    else:
        if what not in named():
            raise HoldfastError(f"there is no experiment {what!r}: use one of {', '.join(named())}, or a file.toml.")
        text = (_NAMED / f"{what}.toml").read_text(encoding="utf-8")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HoldfastError(f"{what} is not TOML: {error}.") from error
    try:
        settings = Settings.model_validate(table)
    except ValidationError as error:
        told = dict.fromkeys(_said(one) for one in error.errors())
        raise HoldfastError(f"{what}: {'; '.join(list(told)[:5])}.") from error
    try:
        _Maker(settings, None).check()
    except HoldfastError as error:
        raise HoldfastError(f"{what}: {error}") from error
    return settings


def _said(error: Any) -> str:
    """What pydantic found wrong, with the key's whole name and what may stand there."""
    tags = ("function-", "literal[", "constrained-", "float", "int", "str", "bool")  # which of a union was tried
    place = [str(part) for part in error["loc"] if not str(part).startswith(tags)]
    if error["type"] == "extra_forbidden":
        known = _keys_at(place[:-1])
        return f"{'.'.join(place)} is not a setting: use one of {', '.join(known)}"
    text = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{'.'.join(place)} is missing"
    return f"{'.'.join(place)} should be {text}, got {error['input']!r}"


def _keys_at(place: list[str]) -> list[str]:
    """The keys that may stand in a table of the file."""
    table: type[BaseModel] = Settings
    for part in place:
        inner = table.model_fields[part].annotation if part in table.model_fields else None
        kinds = [one for one in (inner, *typing.get_args(inner)) if isinstance(one, type)]
        table = next((kind for kind in kinds if issubclass(kind, BaseModel)), table)
    return list(table.model_fields)


# ---------------------------------------------------------------------- making


def study(
    settings: Settings,
    name: str,
    folder: Path,
    *,
    limit: int | None = None,
    data: str | None = None,
    device: str = "cpu",
    train: bool = True,
    progress: Progress | None = None,
) -> Study:
    """The study that settings describe, on the first ``limit`` examples; a trained network is kept in ``folder``.

    Without ``train``, a network that is not trained yet stands for the one it will be: enough to plan with.
    """
    if data is not None:
        settings = settings.model_copy(update={"data": settings.data.model_copy(update={"root": data})})
    examples = _examples(settings.data)
    wanted = range(settings.data.first, settings.data.first + min(settings.data.count, limit or settings.data.count))
    if wanted.stop > len(examples):
        raise HoldfastError(
            f"data.first = {settings.data.first} and data.count = {settings.data.count} ask for more than the "
            f"{len(examples)} examples there are."
        )
    maker = _Maker(settings, examples)
    methods, measures = maker.methods(), maker.measures()  # complaints come before a network is trained
    model, about = _model(settings, folder, device, train, progress)
    x = examples.x[wanted.start : wanted.stop].to(device)
    shape = tuple(x.shape[1:])
    laid = {
        "pixels": lambda: Features.pixels(shape),
        "patches": lambda: Features.patches(shape, settings.features.size),
        "superpixels": lambda: Features.superpixels(x, settings.features.size),
    }[settings.features.kind]()
    return Study(
        name=name,
        title=settings.title,
        cases=model.ask(x, features=laid),
        methods=methods,
        measures=measures,
        main=settings.main,
        sizes=tuple(settings.sizes),
        block=settings.block,
        examples=tuple(f"{settings.data.name} #{number}" for number in wanted),
        classes=FASHION if settings.data.name == "fashion-mnist" else tuple("0123456789"),
        references=maker.references(),
        sanity=maker.sanity(),
        sensitivity=maker.sensitivity(),
        diagnostics=maker.diagnostics(),
        gallery=maker.gallery(),
        published=settings.published,
        about=about,
    )


def _examples(data: Data) -> Digits:
    if data.name == "fashion-mnist":
        if data.root is None:
            raise HoldfastError("Fashion-MNIST is not embedded: name the folder of its idx files with --data FOLDER.")
        return fashion_mnist(data.root)
    return mnist(data.root)


def _model(
    settings: Settings, folder: Path, device: str, train: bool, progress: Progress | None
) -> tuple[Classifier, dict[str, str]]:
    """The network, and what is known about it."""
    asked = settings.model
    if asked.weights == "embedded":
        if settings.data.name != "mnist":
            raise HoldfastError('model.weights should be "train" or a file: the embedded network knows digits only.')
        return mnist_cnn().on(device), {}
    path = Path(asked.weights)
    if asked.weights == "train":
        content = json.dumps([settings.data.name, asked.model_dump()], sort_keys=True)
        path = folder / f"weights-{hashlib.sha256(content.encode()).hexdigest()[:8]}.safetensors"
        if not path.exists() and train:
            _train(settings, path, device, progress)
    network, about = mnist_network(), {}
    if path.exists() or asked.weights != "train":
        about = load_weights(network, path)
    return Classifier(network.eval().requires_grad_(False), bounds=(0, 1)).on(device), about


def _train(settings: Settings, path: Path, device: str, progress: Progress | None) -> None:
    if settings.data.root is None:
        raise HoldfastError("training needs the training split: name the folder of its idx files with --data FOLDER.")
    load: Callable[..., Digits] = fashion_mnist if settings.data.name == "fashion-mnist" else mnist
    training, test = (load(settings.data.root, split=split) for split in ("train", "test"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")  # whole or not at all
        train_cnn(
            training,
            test,
            part,
            epochs=settings.model.epochs,
            seed=settings.model.seed,
            device=device,
            progress=None if progress is None else lambda done, total, _: progress(done, total),
        )
        part.replace(path)
    except OSError as error:
        raise HoldfastError(f"cannot keep the trained network in {path}: {error.strerror or error}.") from error


class _Maker:
    """Makes the objects that pieces of the file describe."""

    def __init__(self, settings: Settings, examples: Digits | None):
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
        return None if asked is None else References(tuple(asked.values), asked.score, asked.draws)

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
        search = self.robustness(table.search, f"{place}.search", MinNorm(steps=20))
        sides = {side: replace(made, objective=make(search)) for side, make in OBJECTIVES.items()}  # type: ignore[type-var]  # as above
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
        if key == "references":
            return self._others(value, place)
        try:
            return TypeAdapter(kind, config=_ANY_KIND).validate_python(value)
        except ValidationError as error:
            told = dict.fromkeys(one["msg"].removeprefix("Input should be ") for one in error.errors())
            raise HoldfastError(f"{place} should be {' or '.join(told)}, got {value!r}.") from error

    def _others(self, value: Any, place: str) -> Given:
        """Inputs to compare with: other examples of the data."""
        try:
            asked = Span.model_validate(value)
        except ValidationError as error:
            raise HoldfastError(
                f"{place} should be {{ first = N, count = N }}: examples of the data, got {value!r}."
            ) from error
        if self.examples is None:
            return Given(torch.zeros(1, 1))
        chosen = self.examples.x[asked.first : asked.first + asked.count]
        if len(chosen) < asked.count:
            raise HoldfastError(f"{place} asks for more than the {len(self.examples)} examples there are.")
        return Given.inputs(chosen)


def _piece(value: Any, place: str) -> Piece:
    try:
        return Piece.model_validate(value)
    except ValidationError as error:
        raise HoldfastError(f'{place} should be a table such as {{ use = "…" }}, got {value!r}.') from error
