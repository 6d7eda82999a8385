"""The idx file format of MNIST: a big-endian header, then raw bytes."""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.files import MEGABYTE, reading, too_large, write_bytes

MOST_BYTES = 128 * MEGABYTE  # of the content, decompressed; the largest file of MNIST has 45 MB
_UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> Tensor:
    """Read the uint8 tensor of an idx file.

    Args:
        path: The file, gzip-compressed or not.

    Returns:
        The tensor, with the shape that the header states.

    Raises:
        HoldfastError: The file cannot be read, or is no idx file of unsigned bytes.
    """
    return parse_idx(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """Read a file and decompress it if it is compressed by gzip.

    Raises:
        HoldfastError: The file cannot be read, or its content has more than ``MOST_BYTES``.
    """
    with reading(path, most=MOST_BYTES), path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        content = gzip.GzipFile(fileobj=file).read(MOST_BYTES + 1) if packed else file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise too_large(str(path), MOST_BYTES)
        return content


def parse_idx(raw: bytes, name: str) -> Tensor:
    """Return the uint8 tensor in the bytes of an idx file.

    Args:
        raw: The content of the file, not compressed.
        name: What the file is called in messages.

    Returns:
        The tensor, with the shape that the header states.

    Raises:
        HoldfastError: The bytes are no idx file of unsigned bytes.
    """
    if len(raw) < 4 or raw[:2] != b"\x00\x00":
        raise HoldfastError(f"{name} is not an idx file: it does not start with two zero bytes.")
    kind, dimensions = raw[2], raw[3]
    if kind != _UNSIGNED_BYTE:
        raise HoldfastError(f"{name} should hold unsigned bytes (idx type 0x08), got idx type {kind:#04x}.")
    header = 4 + 4 * dimensions
    if len(raw) < header:
        raise HoldfastError(f"{name} is cut short: its header needs {header} bytes, the file has {len(raw)}.")
    shape = struct.unpack(f">{dimensions}I", raw[4:header])
    if len(raw) - header != math.prod(shape):
        raise HoldfastError(
            f"{name} has the wrong length: shape {shape} needs {math.prod(shape)} bytes, not {len(raw) - header}."
        )
    with reading(name):  # numpy has fewer dimensions than the format allows
        return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=header).reshape(shape).copy())


def write_idx(path: Path, values: Tensor) -> None:
    """Write a gzip-compressed idx file; the same values give the same bytes.

    Args:
        path: The file to write. Its folder is created if needed.
        values: A tensor of any shape with values from 0 to 255.

    Raises:
        HoldfastError: The file cannot be written.
    """
    array = values.to(torch.uint8).cpu().numpy()
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, _UNSIGNED_BYTE, array.ndim, *array.shape)
    write_bytes(path, gzip.compress(header + array.tobytes(), compresslevel=9, mtime=0))
