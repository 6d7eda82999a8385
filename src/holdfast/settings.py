"""Settings: the fields of a frozen dataclass, checked by type and range when an instance is made.

The type of a field says what is allowed; ranges and readers are notes in ``Annotated``. The base class of every kind of
extension derives from ``Settings``, so a plain ``steps: int = 10`` is checked without a line of code::

    steps: Count = 10                              # a whole number >= 1
    rate: Annotated[float, Range(over=0)] = 0.1    # a finite number > 0
    score: Literal["logit", "margin"] = "logit"
    objective: Criterion = ...                     # an instance, a class or a name
"""

from __future__ import annotations

import inspect
import math
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, wraps
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch

from holdfast.errors import HoldfastError
from holdfast.registry import Registry

_LARGEST = 2**31 - 1  # no count is larger; torch overflows silently or not at all beyond 64 bits


@dataclass(frozen=True)
class Range:
    """The range of a number. A number with a range is finite.

    Attributes:
        least: The smallest value.
        most: The largest value.
        over: Values are larger than this.
        under: Values are smaller than this.
    """

    least: float = -math.inf
    most: float = math.inf
    over: float = -math.inf
    under: float = math.inf

    def holds(self, value: float) -> bool:
        """Return whether a number is in the range."""
        return self.least <= value <= self.most and self.over < value < self.under

    def __str__(self) -> str:
        ends = {">=": self.least, ">": self.over, "<=": self.most, "<": self.under}
        return " and ".join(f"{sign} {end}" for sign, end in ends.items() if math.isfinite(end))


class Read(NamedTuple):
    """A function that checks and converts a setting: ``reader(value, name) -> value``, raising ``HoldfastError``."""

    reader: Callable[[Any, str], Any]


Count = Annotated[int, Range(1)]
"""A whole number >= 1."""
Natural = Annotated[int, Range(0)]
"""A whole number >= 0."""
Positive = Annotated[float, Range(over=0)]
"""A finite number > 0."""
NotNegative = Annotated[float, Range(0)]
"""A finite number >= 0."""
Between = Annotated[float, Range(over=0, under=1)]
"""A number > 0 and < 1."""


class Settings:
    """Base of dataclasses whose fields are checked before their own ``__post_init__``, if they have one, runs."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        own = cls.__post_init__
        if not hasattr(own, "checks_settings"):
            cls.__post_init__ = _after_check(own)  # type: ignore[method-assign]  # so that no subclass has to call it

    def __post_init__(self) -> None:
        """Do nothing more than the check."""


def _after_check(own: Callable[..., None]) -> Callable[..., None]:
    @wraps(own)
    def checked(self: Any, *given: Any) -> None:
        if type(self).__post_init__ is checked:  # not again when a subclass calls super().__post_init__()
            check_settings(self)
        own(self, *given)

    checked.checks_settings = True  # type: ignore[attr-defined]  # marks it
    return checked


def check_settings(made: Any) -> None:
    """Check all fields of an instance of a dataclass; numbers of NumPy, names and classes are converted in place.

    Args:
        made: The instance, frozen or not.

    Raises:
        HoldfastError: A field has a value of another type or outside its range.
    """
    cls: Any = type(made)
    for name, kind in _kinds(cls).items():
        given = getattr(made, name)
        value = read_setting(given, kind, f"{cls.__name__}.{name}")
        if value is not given:
            object.__setattr__(made, name, value)


def read_setting(given: Any, kind: Any, name: str) -> Any:
    """Check one value.

    Args:
        given: The value.
        kind: Its type, with notes if it is ``Annotated``.
        name: What it is called in messages.

    Returns:
        The value, or what it was converted to. A value of a type that is not known here is returned as it is.

    Raises:
        HoldfastError: The value is of another type or outside its range.
    """
    choices = _choices(kind)
    if given is None and any(one.base is type(None) for one in choices):
        return None
    plain = _plain(given)
    others = [one for one in choices if not one.is_special]
    fitting = [one for one in others if _is_of(plain, one.base, name)]
    fitting = [one for one in fitting if one.base is int] or fitting  # an int is a float, too
    for one in fitting:
        if one.holds(plain):
            return _converted(plain, given, one.base, name)
    refused: HoldfastError | None = None
    for one in choices:
        if one.is_special:
            try:
                return _instance(given, one.base, name) if one.read is None else one.read.reader(given, name)
            except HoldfastError as error:
                refused = refused or error
    if any(_may_be(given, one.base) for one in others):
        return given
    if refused is not None and not fitting:
        raise refused
    expected = dict.fromkeys(one.text(plain) for one in fitting or others)
    raise HoldfastError(f"{name} must be {' or '.join(expected)}, got {shown_value(given)}.")


# ---------------------------------------------------------------------- types


class _Choice(NamedTuple):
    """One of the types of a union, without its notes."""

    base: Any
    range: Range | None
    read: Read | None

    @property
    def is_special(self) -> bool:
        """Whether a reader or a registry says what fits."""
        return self.read is not None or isinstance(getattr(self.base, "registry", None), Registry)

    def holds(self, value: Any) -> bool:
        """Whether a value of this type is in the range; a float without one may be infinite or NaN."""
        if self.range is None or self.base not in (int, float):
            return True
        if self.base is int:
            return self.range.holds(value) and value <= _LARGEST
        huge = isinstance(value, int) and abs(value) >= 2**1000  # has no float
        return not huge and math.isfinite(value) and self.range.holds(value)

    def text(self, given: Any) -> str:
        """Return what is expected, as the end of "must be …"."""
        if self.base in (int, float):
            span = "" if self.range is None else str(self.range)
            bounded = self.range is not None and math.isfinite(min(self.range.most, self.range.under))
            noun = "a whole number" if self.base is int else "a number" if bounded or span == "" else "a finite number"
            if self.base is int and self.range is not None and isinstance(given, int) and given > _LARGEST:
                span = f"<= {_LARGEST}"
            return f"{noun} {span}".rstrip()
        if typing.get_origin(self.base) is Literal:
            return "one of " + ", ".join(map(str, typing.get_args(self.base)))
        if typing.get_origin(self.base) is tuple:
            if not _is_known(self.base):
                return "a tuple or a list"
            each = dict.fromkeys(one.text(None) for one in _choices(typing.get_args(self.base)[0]))
            return f"a tuple, each of it {' or '.join(each)}"
        return {bool: "True or False", str: "a text", type(None): "None", torch.dtype: "a torch dtype"}[self.base]


def _choices(kind: Any, span: Range | None = None, read: Read | None = None) -> list[_Choice]:
    """Return the types that a union allows; notes on the union hold for each of them."""
    if typing.get_origin(kind) is Annotated:
        kind, *notes = typing.get_args(kind)
        span = next((note for note in notes if isinstance(note, Range)), span)
        read = next((note for note in notes if isinstance(note, Read)), read)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [choice for one in typing.get_args(kind) for choice in _choices(one, span, read)]
    return [_Choice(kind, span, None if kind is type(None) else read)]


def _is_known(base: Any) -> bool:
    origin = typing.get_origin(base)
    each = typing.get_args(base)
    if origin is tuple:
        return len(each) == 2 and each[1] is Ellipsis and all(_is_known(one.base) for one in _choices(each[0]))
    return origin is Literal or base in (bool, int, float, str, type(None), torch.dtype)


def _may_be(value: Any, base: Any) -> bool:
    """Whether a value may have a type that is not checked here; of a tuple, at least the form is checked."""
    if typing.get_origin(base) is tuple and typing.get_args(base)[1:] == (Ellipsis,):
        return isinstance(value, (list, tuple)) and not _is_known(base)
    return not _is_known(base)


def _is_of(value: Any, base: Any, name: str) -> bool:
    """Whether a value has a type, whatever its range."""
    if typing.get_origin(base) is Literal:
        return any(type(value) is type(one) and value == one for one in typing.get_args(base))
    if typing.get_origin(base) is tuple and len(typing.get_args(base)) == 2:
        return isinstance(value, (list, tuple)) and _fits_each(value, typing.get_args(base)[0], name)
    if base in (int, float):
        return isinstance(value, int if base is int else (int, float)) and not isinstance(value, bool)
    return base in (bool, str, type(None), torch.dtype) and isinstance(value, base)


def _fits_each(values: Any, each: Any, name: str) -> bool:
    """Whether all values are of a type; a reader says itself what is wrong."""
    for number, value in enumerate(values):
        try:
            read_setting(value, each, f"{name}[{number}]")
        except HoldfastError:
            if any(one.read is not None for one in _choices(each)):
                raise
            return False
    return True


def _converted(plain: Any, given: Any, base: Any, name: str) -> Any:
    """Return a value as its type; a list becomes a tuple."""
    if typing.get_origin(base) is not tuple:
        return given if plain is given else plain
    each = typing.get_args(base)[0]
    values = tuple(read_setting(value, each, f"{name}[{number}]") for number, value in enumerate(plain))
    same = isinstance(given, tuple) and all(new is old for new, old in zip(values, given, strict=True))
    return given if same else values


def _plain(given: Any) -> Any:
    """Return a number or text of NumPy as that of Python."""
    return given.item() if isinstance(given, (np.bool_, np.integer, np.floating, np.str_)) else given


def _instance(given: Any, base: Any, name: str) -> Any:
    """Return an extension from an instance, a class or a name."""
    try:
        made = base.registry.instance(given, base)
    except HoldfastError as error:
        raise HoldfastError(f"{name}: {error}") from error
    if not isinstance(made, base):
        raise HoldfastError(f"{name} must be a {base.__name__}, got {shown_value(given)}.")
    return made


def shown_value(given: Any) -> str:
    """Return a value for a message: short, and on one line."""
    try:
        text = " ".join(repr(given).split())
    except Exception:  # a class whose repr fails
        text = ""
    return text if text and len(text) <= 80 else f"a value of type {type(given).__name__}"


@cache
def _kinds(cls: type) -> dict[str, Any]:
    """Return the types of the fields of a dataclass, without those that cannot be found out."""
    return (
        {one.name: kind for one in fields(cls) if (kind := _kind(cls, one.name)) is not None}
        if is_dataclass(cls)
        else {}
    )


def _kind(cls: type, name: str) -> Any:
    """Return the type of one field, where the class that declares it says so; None if its names cannot be found."""
    owner = next(one for one in cls.__mro__ if name in inspect.get_annotations(one))
    holder = types.SimpleNamespace(__annotations__={name: inspect.get_annotations(owner)[name]})
    names = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
    try:
        return typing.get_type_hints(holder, names, dict(vars(owner)), include_extras=True)[name]
    except Exception:  # a name that is only imported for type checkers, or local to a function
        return None
