"""Reads Universal Binary JSON, the compact format of XGBoost's models."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.errors import HoldfastError

_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_CONSTANTS = {"Z": None, "T": True, "F": False}
_DEEPEST = 64


def parse(data: bytes) -> Any:
    """Return the value of a document; arrays of numbers become NumPy arrays.

    Args:
        data: The document.

    Raises:
        HoldfastError: The document is damaged.
    """
    try:
        reader = _Reader(data)
        value = reader.value(0)
        if reader.place != len(data):
            raise ValueError("the document goes on after its end")
        return value
    except (LookupError, ValueError, OverflowError) as error:
        raise HoldfastError("this is not Universal Binary JSON, or it is damaged: save it again.") from error


class _Reader:
    def __init__(self, data: bytes):
        self.data, self.place = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.place + count > len(self.data):
            raise ValueError("the document ends too early")
        self.place += count
        return self.data[self.place - count : self.place]

    def mark(self) -> str:
        while (mark := self.take(1)) == b"N":  # nothing
            pass
        return mark.decode("latin-1")

    def next_is(self, mark: str) -> bool:
        if self.data[self.place : self.place + 1] != mark.encode():
            return False
        self.place += 1
        return True

    def numbers(self, mark: str, count: int) -> Any:
        kind = np.dtype(_NUMBERS[mark])
        return np.frombuffer(self.take(count * kind.itemsize), kind).astype(kind.newbyteorder("="))

    def count(self) -> int:
        mark = self.mark()
        if mark not in "iUIlL":
            raise ValueError("a length must be a whole number")
        return int(self.numbers(mark, 1)[0])

    def text(self) -> str:
        return self.take(self.count()).decode()

    def value(self, depth: int, mark: str | None = None) -> Any:
        mark = self.mark() if mark is None else mark
        if depth > _DEEPEST:
            raise ValueError("the document is nested too deeply")
        if mark in _CONSTANTS:
            return _CONSTANTS[mark]
        if mark in _NUMBERS:
            return self.numbers(mark, 1)[0].item()
        if mark == "S":
            return self.text()
        if mark == "C":
            return self.take(1).decode("latin-1")
        if mark == "[":
            return self.array(depth)
        if mark == "{":
            return self.object(depth)
        raise ValueError(f"unknown type {mark!r}")

    def header(self) -> tuple[str | None, int | None]:
        """Return the type of all values and their number, where the document states them."""
        kind = self.mark() if self.next_is("$") else None
        count = self.count() if self.next_is("#") else None
        if kind is not None and count is None:
            raise ValueError("a type without a count")
        # All other values take bytes of the document, so a claimed count cannot take memory.
        if kind in _CONSTANTS or (count is not None and not 0 <= count <= len(self.data)):
            raise ValueError("a count that the document cannot hold")
        return kind, count

    def array(self, depth: int) -> Any:
        kind, count = self.header()
        if kind in _NUMBERS and count is not None:
            return self.numbers(kind, count)
        values: list[Any] = []
        while len(values) != count and not (count is None and self.next_is("]")):
            values.append(self.value(depth + 1, kind))
        return values

    def object(self, depth: int) -> dict[str, Any]:
        kind, count = self.header()
        values: dict[str, Any] = {}
        read = 0
        while read != count and not (count is None and self.next_is("}")):
            name = self.text()
            values[name] = self.value(depth + 1, kind)
            read += 1
        return values
