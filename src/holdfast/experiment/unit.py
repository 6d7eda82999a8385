"""A unit of work: its key, its bytes in a store, and the checksum that tells whether these are still what was written.

Arrays are stored as plain bytes with their type and shape; nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError

_TYPES = {"bool", "int16", "int32", "int64", "float32", "float64"}

UnitRow = Sequence[Any]
"""The columns of ``units``: key, kind, made_of, seconds, forward, gradient, machine, notes, batch."""
ArrayRow = tuple[str, str, str, bytes]
"""The columns of ``arrays`` after the key: name, type, shape, compressed bytes."""


class DamagedError(Exception):
    """Stored bytes are not those that were written."""


@dataclass(frozen=True, eq=False)
class Unit:
    """A unit of work and its result.

    Attributes:
        kind: The kind of work, such as ``"ranking"``.
        made_of: The settings and inputs that determine the result, as JSON values. They make the key.
        arrays: The result, by name.
        seconds: How long it took.
        forward: Rows put through the model.
        gradient: Rows that were also differentiated.
        machine: Where it was computed.
        notes: What a reader must know.
    """

    kind: str
    made_of: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]
    seconds: float = 0.0
    forward: int = 0
    gradient: int = 0
    machine: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        """A hash of ``kind`` and ``made_of``: the same for the same work on every machine."""
        return key_of(self.kind, self.made_of)


def key_of(kind: str, made_of: Mapping[str, Any]) -> str:
    """Return the key of a unit.

    Args:
        kind: The kind of work.
        made_of: The settings and inputs that determine the result, as JSON values. Their order does not matter.

    Returns:
        32 hexadecimal digits.
    """
    return hashlib.sha256(f"{kind}\n{plain_json(made_of)}".encode()).hexdigest()[:32]


def plain_json(value: Any) -> str:
    """Return JSON that is the same for equal content."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def checksum(columns: Iterable[object]) -> str:
    """Return a hash of the values of columns, and of their types and lengths.

    Args:
        columns: What SQLite returns: texts, numbers, bytes or None.

    Returns:
        32 hexadecimal digits.
    """
    digest = hashlib.blake2b(digest_size=16)
    for value in columns:
        data = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(f"{type(value).__name__} {len(data)} ".encode())
        digest.update(data)
    return digest.hexdigest()


def unit_checksum(row: Sequence[object], arrays: Iterable[Sequence[object]]) -> str:
    """Return the checksum of a unit.

    Args:
        row: Its ``UnitRow``.
        arrays: Its ``ArrayRow``s, ordered by name.
    """
    return checksum(value for part in (row, *arrays) for value in part)


def batch_of(keys: Iterable[str]) -> str:
    """Return the name of the batch of units that were computed together, the same in every order."""
    return checksum(sorted(keys))


def pack(unit: Unit, batch: str) -> tuple[UnitRow, list[ArrayRow]]:
    """Convert a unit to rows of a store.

    Args:
        unit: The unit.
        batch: The name of its batch.

    Raises:
        HoldfastError: An array has a type that cannot be stored.
    """
    cost = (float(unit.seconds), int(unit.forward), int(unit.gradient))
    row = (unit.key, unit.kind, plain_json(unit.made_of), *cost, unit.machine, plain_json(list(unit.notes)), batch)
    return row, [_packed(name, array) for name, array in sorted(unit.arrays.items())]


def unpack(row: UnitRow, arrays: Sequence[ArrayRow]) -> Unit:
    """Convert rows of a store back to a unit.

    Raises:
        DamagedError: They are not rows that ``pack`` made.
    """
    key, kind, made_of, seconds, forward, gradient, machine, notes, _ = row
    try:
        found = {name: _unpacked(dtype, shape, data) for name, dtype, shape, data in arrays}
        unit = Unit(kind, json.loads(made_of), found, seconds, forward, gradient, machine, tuple(json.loads(notes)))
        sound = unit.key == key
    except (zlib.error, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError from error
    if not sound:
        raise DamagedError
    return unit


def unpacked_size(arrays: Iterable[ArrayRow]) -> int:
    """Return how many bytes arrays take in memory, from their types and shapes alone.

    Raises:
        DamagedError: A type or shape is not one that ``pack`` made.
    """
    return sum(_bytes(dtype, shape) for _, dtype, shape, _ in arrays)


def _packed(name: str, array: np.ndarray) -> ArrayRow:
    if array.dtype.name not in _TYPES:
        raise HoldfastError(
            f"array {name!r} is of {array.dtype.name}, which results do not hold: use {', '.join(sorted(_TYPES))}."
        )
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return name, array.dtype.name, json.dumps(array.shape), zlib.compress(little.tobytes(), 6)


def _unpacked(dtype: str, shape: str, data: bytes) -> np.ndarray:
    size = _bytes(dtype, shape)
    stream = zlib.decompressobj()
    content = stream.decompress(data, size + 1)  # never more than the shape says
    if len(content) != size or not stream.eof:
        raise DamagedError
    kind = np.dtype(dtype).newbyteorder("<")
    return np.frombuffer(content, kind).reshape(json.loads(shape)).astype(np.dtype(dtype))


def _bytes(dtype: str, shape: str) -> int:
    try:
        lengths = json.loads(shape)
        sound = dtype in _TYPES and all(type(length) is int and length >= 0 for length in lengths)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedError from error
    if not sound:
        raise DamagedError
    return int(np.dtype(dtype).itemsize * math.prod(lengths))
