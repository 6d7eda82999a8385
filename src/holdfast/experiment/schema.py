"""The shape of an experiment's TOML file: every key, what may stand there, and words for what may not."""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from holdfast.curve import SIZES
from holdfast.data.train import EPOCHS
from holdfast.errors import HoldfastError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAMED = files("holdfast.experiment") / "named"
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


def _rising(sizes: list[float] | list[int]) -> list[float] | list[int]:
    if list(sizes) != sorted(set(sizes)):
        raise ValueError("shares of the features that rise, or numbers of them that do")
    return sizes


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Piece(BaseModel):
    """``use`` names an explainer, a criterion, … ; every other key is one of its settings."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    use: str


class Data(_Table):
    """Which examples: ``count`` of them from the ``first`` on; ``root`` is a folder or file with the full set.

    Photographs are up to so many; without a ``root`` those that come with packages. Texts without one are sentences
    that come with the package; "newsgroups" and "yahoo-answers" in its place are downloaded. They are cut to their
    first ``most`` words, and those of fewer than ``least`` words are left out.
    """

    name: Literal["mnist", "fashion-mnist", "photographs", "texts", "eraser-movies"]
    root: str | None = None
    first: Annotated[int, Field(ge=0)] = 0
    count: Count = 100
    least: Count = 8
    most: Count = 40

    @property
    def is_text(self) -> bool:
        """Whether the examples are texts."""
        return self.name in ("texts", "eraser-movies")


class Span(_Table):
    """Some of the examples."""

    first: Annotated[int, Field(ge=0)]
    count: Count


def _known_network(name: str) -> str:
    known = ("mnist-cnn", "efficientnet-lite0", "text-bilstm")
    if name not in known and not re.fullmatch(r"(torchvision|timm|huggingface):\S+", name):
        raise ValueError(f"{', '.join(known)}, torchvision:NAME, timm:NAME or huggingface:NAME")
    return name


class Network(_Table):
    """``weights``: "embedded", "train" (on the data's training split, kept beside the results), or a file.

    For a network of torchvision or timm "embedded" are the library's own, which it may have to fetch.
    """

    network: Annotated[str, AfterValidator(_known_network)] = "mnist-cnn"
    weights: str = "embedded"
    epochs: Count = EPOCHS
    seed: int = 0


class Laid(_Table):
    """What moves together."""

    kind: Literal["pixels", "patches", "superpixels", "words"] = "pixels"
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

    values: list[Finite | Literal["uniform", "blur", "mean", "words"]] = ["uniform", 0.0, 0.25, 0.5, 0.75, 1.0]
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


class SubstitutionTable(_Table):
    """Whether real words in the place of the top ones change the prediction too."""

    top: Count = 5
    judge: Piece | None = None


class Analyses(_Table):
    """Those that are named are made."""

    references: ReferencesTable | None = None
    sanity: SanityTable | None = None
    sensitivity: SensitivityTable | None = None
    diagnostics: DiagnosticsTable | None = None
    substitution: SubstitutionTable | None = None


class GalleryTable(_Table):
    """Pictures of the first examples."""

    examples: Count = 10
    top: Share | Count = 0.2
    targets: Annotated[int, Field(ge=0)] = 2
    judge: Piece | None = None


class Settings(_Table):
    """The whole file."""

    title: str = ""
    main: str
    data: Data
    model: Network = Network()
    features: Laid = Laid()
    sizes: Annotated[list[Share] | list[Count], Field(min_length=2), AfterValidator(_rising)] = list(SIZES)
    block: Count = 10
    published: Literal["mnist", "imagenet", "yahoo"] | None = None
    explainers: Annotated[dict[str, ExplainerTable], Field(min_length=1)]
    criteria: Annotated[dict[str, CriterionTable], Field(min_length=1)]
    analyses: Analyses = Analyses()
    gallery: GalleryTable | None = None
    engine: Literal["local", "ray"] = "local"


# ---------------------------------------------------------------------- reading


def named() -> list[str]:
    """The experiments that come with the package."""
    return sorted(path.name.removesuffix(".toml") for path in _NAMED.iterdir() if path.name.endswith(".toml"))


def read(what: str) -> Settings:
    """An experiment by name or from a TOML file, every key checked by itself."""
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
    return settings


def with_choices(settings: Settings, choices: Mapping[str, str]) -> Settings:
    """The settings with another folder of ``data``, another ``network`` or other ``weights``, checked as in a file."""
    tables = settings.model_dump(exclude_unset=True)
    places = {"data": ("data", "root"), "network": ("model", "network"), "weights": ("model", "weights")}
    for name, value in choices.items():
        table, key = places[name]
        tables.setdefault(table, {})[key] = value
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        raise HoldfastError(f"{_said(error.errors()[0])}.") from error


def _said(error: Any) -> str:
    """What pydantic found wrong, with the key's whole name and what may stand there."""
    tags = (
        "function-",
        "literal[",
        "list[",
        "constrained-",
        "float",
        "int",
        "str",
        "bool",
    )  # which of a union was tried
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
