"""Experiment files: the structure of the TOML file, and messages for errors in it."""

from __future__ import annotations

import re
import tomllib
import typing
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from holdfast.curve import SIZES
from holdfast.errors import HoldfastError, unknown_name
from holdfast.files import MEGABYTE, reading, shown
from holdfast.published import DATA_SETS

_MOST_PARTS = 64  # of a key; tomllib takes a time that grows with their square
_STRING_OR_COMMENT = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)|'{3}.*?(?:'{3,5}|\Z)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|\#[^\n]*''', re.DOTALL
)
A_TABLE = 'a name or a table such as { use = "…" }'
_NAMED = files("holdfast.experiment") / "named"
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


def _rising(sizes: list[float] | list[int]) -> list[float] | list[int]:
    if list(sizes) != sorted(set(sizes)):
        raise ValueError("rising shares of the features, or rising numbers of them")
    return sizes


def _published(name: str) -> str:
    if name not in DATA_SETS:
        raise ValueError(f"one of {', '.join(DATA_SETS)}")
    return name


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Piece(BaseModel):
    """``use`` names an extension (an explainer, a criterion, a data set, …); every other key is one of its settings."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    use: str

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        """Accept a name alone for an extension without settings."""
        return {"use": value} if isinstance(value, str) else value

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the extension."""
        return dict(self.model_extra or {})


class ExplainerTable(Piece):
    """An explainer; see ``Method``. ``search`` is the robustness method of explainers that optimise an objective.

    One that is ``optional`` is left out where it does not fit the model.
    """

    group: Literal["table", "ablation", "probe"] = "table"
    why: str = ""
    of: str = ""
    criteria: list[str] | None = None
    search: Piece | None = None
    optional: bool = False


class CriterionTable(Piece):
    """A criterion; see ``Measure``."""

    group: Literal["table", "probe"] = "table"
    why: str = ""


class Settings(_Table):
    """The whole file.

    Attributes:
        title: The heading of the report.
        main: The method that the others are compared with.
        data: The data set.
        model: The network; default: the first one for the data set.
        features: The features, such as ``patches:16``; default: those of the modality.
        sizes: The sizes of the relevant set: rising shares (float) or numbers (int).
        block: The number of cases that are computed together.
        published: The data set of the published values that tables show beside the measured ones.
        explainers: The methods.
        criteria: The criteria.
        analyses: Settings of the analyses to compute.
        gallery: Settings of the gallery.
        engine: The name of the engine that computes jobs.
    """

    title: str = ""
    main: str
    data: Piece
    model: Piece | None = None
    features: str | None = None
    sizes: Annotated[list[Share] | list[Count], Field(min_length=2), AfterValidator(_rising)] = list(SIZES)
    block: Count = 10
    published: Annotated[str, AfterValidator(_published)] | None = None
    explainers: Annotated[dict[str, ExplainerTable], Field(min_length=1)]
    criteria: Annotated[dict[str, CriterionTable], Field(min_length=1)]
    analyses: dict[str, dict[str, Any]] = {}
    gallery: dict[str, Any] | None = None
    engine: str = "local"


def named() -> list[str]:
    """Return the names of the experiments that come with the package."""
    return sorted(path.name.removesuffix(".toml") for path in _NAMED.iterdir() if path.name.endswith(".toml"))


def load(experiment: str) -> Settings:
    """Read an experiment.

    Args:
        experiment: The name of an experiment that comes with the package, or the path of a TOML file.

    Returns:
        The settings of the file, with defaults.

    Raises:
        HoldfastError: The file cannot be read, or one of its keys is unknown or has a wrong value.
    """
    if experiment.endswith(".toml"):
        with reading(experiment, "the experiment", MEGABYTE):
            text = Path(experiment).read_text(encoding="utf-8")
    elif experiment in named():
        text = (_NAMED / f"{experiment}.toml").read_text(encoding="utf-8")
    else:
        raise unknown_name("experiment", experiment, [*named(), "FILE.toml"])
    with reading(experiment, "the experiment"):
        _check_keys(text)
        content = tomllib.loads(text)
        _check_numbers(content)
        try:
            return Settings.model_validate(content)
        except ValidationError as error:
            messages = dict.fromkeys(_message(one) for one in error.errors()[:50])
            raise HoldfastError(f"{shown(experiment)}: {'; '.join(list(messages)[:5])}.") from error


def with_choices(settings: Settings, choices: Mapping[str, str]) -> Settings:
    """Replace settings by choices from the command line.

    Args:
        settings: The settings of the experiment file.
        choices: Values of ``data`` (a folder), ``network`` and ``weights`` (a file), each if it was chosen.

    Returns:
        A copy of the settings. Another network drops the settings of the previous one.
    """
    data, model = settings.data, settings.model
    if "data" in choices:
        data = Piece(use=data.use, **{**data.settings, "root": choices["data"]})
    if {"network", "weights"} & set(choices):
        use = choices.get("network", model.use if model else "")
        others = {} if model is None or "network" in choices else model.settings
        model = Piece(use=use, **({**others, "weights": choices["weights"]} if "weights" in choices else others))
    return settings.model_copy(update={"data": data, "model": model})


def _check_keys(text: str) -> None:
    """Refuse keys of very many parts, before they are parsed."""
    bare = _STRING_OR_COMMENT.sub("", text)
    if any(piece.count(".") >= _MOST_PARTS for piece in re.split(r"[\n=,\[\]{}]", bare)):
        raise ValueError(f"a key has more than {_MOST_PARTS} parts")


def _check_numbers(content: Any) -> None:
    """Refuse whole numbers of more than 64 bits, as TOML asks for."""
    if isinstance(content, (dict, list)):
        for one in content.values() if isinstance(content, dict) else content:
            _check_numbers(one)
    elif isinstance(content, int) and not -(2**63) <= content < 2**63:
        raise ValueError("a whole number has more than 64 bits")


def _message(error: Any) -> str:
    """Return an error of pydantic as text, with the full name of the key and the allowed values."""
    tags = ("function-", "literal[", "list[", "constrained-", "float", "int", "str", "bool")  # alternatives of a union
    place = [str(part) for part in error["loc"] if not str(part).startswith(tags)]
    if error["type"] == "extra_forbidden":
        return f"{'.'.join(place)} is not a setting: use one of {', '.join(_keys_at(place[:-1]))}"
    if error["type"] == "too_short":
        return f"{'.'.join(place)} should have at least {error['ctx']['min_length']} values, got {error['input']!r}"
    if error["type"] == "missing":
        return f"{'.'.join(place)} is missing"
    if error["type"] == "model_type":
        return f"{'.'.join(place)} should be {A_TABLE}, got {error['input']!r}"
    text = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{'.'.join(place)} should be {text}, got {error['input']!r}"


def _keys_at(place: list[str]) -> list[str]:
    """Return the keys that are allowed in a table of the file."""
    table: type[BaseModel] = Settings
    for part in place:
        inner = table.model_fields[part].annotation if part in table.model_fields else None
        kinds = [one for one in (inner, *typing.get_args(inner)) if isinstance(one, type)]
        table = next((kind for kind in kinds if issubclass(kind, BaseModel)), table)
    return list(table.model_fields)
