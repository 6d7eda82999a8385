"""Examples that an experiment file names: a span of them, or some of those that are not explained."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.data.dataset import DataSet, Examples
from holdfast.errors import HoldfastError
from holdfast.reference import FixedReference


class _Span(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    first: Annotated[int, Field(ge=0)]
    count: Annotated[int, Field(ge=1)]


class _Others(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    others: Annotated[int, Field(ge=1)]


def some_examples(given: Any, data: DataSet, examples: Examples, place: str) -> FixedReference:
    """Return the examples that a table of an experiment file names.

    Args:
        given: ``{ first = N, count = N }``, or ``{ others = N }``: at most so many that are not explained.
        data: The data set, which knows what is explained.
        examples: Its examples.
        place: The setting, for messages.

    Raises:
        HoldfastError: The table is malformed, or there are no such examples.
    """
    span = _read(given, place)
    if isinstance(span, _Span):
        return examples.some(span.first, span.count, place)
    others = data.others(len(examples))[: span.others]
    if not len(others):
        raise HoldfastError(f"{place} asks for examples that are not explained, and all are: lower data.count.")
    return FixedReference.inputs(examples.x[others])


def _read(given: Any, place: str) -> _Span | _Others:
    kind: type[_Span | _Others] = _Others if isinstance(given, dict) and "others" in given else _Span
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise HoldfastError(
            f"{place} should be {{ first = N, count = N }}, examples of the data, or {{ others = N }}, at most so many "
            f"that are not explained, got {given!r}."
        ) from error
