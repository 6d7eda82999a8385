"""The idx file format of MNIST and its relatives: big-endian header, then raw bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import HoldfastError

_UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> Tensor:
    """The uint8 tensor in an idx file, gzip-compressed or not."""
    return parse_idx(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """A file's content, with gzip undone where the file is compressed."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise HoldfastError(f"cannot read {path}: {error}.") from error


def parse_idx(raw: bytes, name: str) -> Tensor:
    """The uint8 tensor that the bytes of an idx file spell."""
    if len(raw) < 4 or raw[:2] != b"\x00\x00":
        raise HoldfastError(f"{name} is not an idx file: it does not start with two zero bytes.")
    kind, dimensions = raw[2], raw[3]
    if kind != _UNSIGNED_BYTE:
        raise HoldfastError(f"{name} holds idx type {kind:#04x}; only unsigned bytes (0x08) are read.")
    header = 4 + 4 * dimensions
    if len(raw) < header:
        raise HoldfastError(f"{name} is cut short: its header needs {header} bytes, the file has {len(raw)}.")
    shape = struct.unpack(f">{dimensions}I", raw[4:header])
    if len(raw) - header != math.prod(shape):
        raise HoldfastError(
            f"{name} has the wrong length: shape {shape} needs {math.prod(shape)} bytes, not {len(raw) - header}."
        )
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=header).reshape(shape).copy())


def write_idx(path: Path, values: Tensor) -> None:
    """Write a uint8 tensor as a gzip-compressed idx file, the same bytes every time."""
    array = values.to(torch.uint8).cpu().numpy()
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, _UNSIGNED_BYTE, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes(), compresslevel=9, mtime=0))
