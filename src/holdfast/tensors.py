"""Tensors from callers: anything that can be read as numbers, as a dense and real tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import HoldfastError, first_line

_SIGNED = {torch.uint16: torch.int64, torch.uint32: torch.int64, torch.uint64: torch.int64}  # torch compares no others


def read_tensor(given: Any, name: str, expected: str = "a tensor or an array") -> Tensor:
    """Return what a caller gave as a dense, real tensor that has values.

    Sparse and quantized tensors become dense ones of plain numbers. The device and the precision stay.

    Args:
        given: A tensor, an array, a number or nested sequences of numbers.
        name: What it is called in messages.
        expected: What it must be, as in "scores must be a tensor or an array [B, d]".

    Returns:
        The tensor, detached from any graph.

    Raises:
        HoldfastError: It is none of these, or complex, or without values.
    """
    try:
        read: Tensor = torch.as_tensor(_native(given)).detach()
        kind = _without_values(read)
        if kind is None:
            read = _dense(read)
    except Exception as error:  # NumPy, torch and the caller's own classes fail in many ways
        raise HoldfastError(f"{name} must be {expected}: {first_line(error)}") from error
    if kind is not None:
        raise HoldfastError(f"{name} must be {expected}, got a {kind} tensor.")
    return read


def _native(given: Any) -> Any:
    """Return arrays in a form that torch accepts: writable, with forward strides and the byte order of the machine."""
    if isinstance(given, Tensor):
        return given
    array = np.asarray(given) if hasattr(given, "__array__") else given
    if not isinstance(array, np.ndarray) or not array.ndim:
        return given
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    readable = array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return array if readable else array.copy()  # pandas gives arrays that must not be written to


def _without_values(read: Tensor) -> str | None:
    """Return what a tensor is instead of one of real numbers; None if it is one."""
    if read.is_meta:
        return "meta"
    if read.is_nested:
        return "nested"
    return "complex" if read.is_complex() else None


def _dense(read: Tensor) -> Tensor:
    read = read.dequantize() if read.is_quantized else read
    read = read if read.layout is torch.strided else read.to_dense()
    small = read.is_floating_point() and read.element_size() == 1  # torch cannot compare numbers of eight bits
    return read.float() if small else read.to(_SIGNED.get(read.dtype, read.dtype))
