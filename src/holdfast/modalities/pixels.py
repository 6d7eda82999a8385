"""Pixels: inputs as colours, and pictures as data URLs."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from holdfast.data.photographs import opened_image
from holdfast.errors import HoldfastError

Pixels = np.ndarray[Any, Any]


def colours(x: Tensor) -> Pixels:
    """Return an image ``[1 or 3, H, W]`` as pixels ``[H, W, 3]`` from 0 to 1."""
    values = x.detach().float().cpu().clamp(0, 1)
    return values.expand(3, -1, -1).permute(1, 2, 0).numpy() if len(values) == 1 else values.permute(1, 2, 0).numpy()


def in_view(x: Tensor, like: Tensor | None = None) -> Tensor:
    """Return an image with values from 0 to 1; one with others, such as a normalised one, is scaled by its range.

    Args:
        x: The image.
        like: The image whose range is used. None: its own.
    """
    whole = x if like is None else like
    low, high = float(whole.min()), float(whole.max())
    return x if low >= 0 and high <= 1 else (x - low) / max(high - low, 1e-12)


def png(pixels: Pixels) -> str:
    """Return pixels ``[H, W, 3]`` as a PNG picture in a data URL."""
    out = io.BytesIO()
    Image.fromarray((pixels.clip(0, 1) * 255).round().astype(np.uint8)).save(out, "png", optimize=True)
    return address("png", out.getvalue())


def jpeg(pixels: Pixels) -> str:
    """Return pixels ``[H, W, 3]`` as a JPEG picture in a data URL."""
    out = io.BytesIO()
    Image.fromarray((pixels.clip(0, 1) * 255).round().astype(np.uint8)).save(out, "jpeg", quality=88, subsampling=0)
    return address("jpeg", out.getvalue())


def address(kind: str, content: bytes) -> str:
    """Return a picture as a data URL.

    Args:
        kind: The image format of the MIME type, such as ``png``.
        content: The file of the picture.
    """
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def grey_image(path: Path, size: tuple[int, int], resize: bool) -> Tensor:
    """Read an image file in grey.

    Args:
        path: The image file.
        size: The width and height that are required.
        resize: Whether to scale an image of another size.

    Returns:
        Values from 0 to 1, ``[H, W]``.

    Raises:
        HoldfastError: The file cannot be read, or the image has another size and ``resize`` is False.
    """
    with opened_image(path) as file:
        picture = file.convert("L")
    width, height = size
    if picture.size != size:
        if not resize:
            other = ", or --model imagenet for a photograph" if size == (28, 28) else ""
            raise HoldfastError(
                f"{path} is {picture.size[0]} x {picture.size[1]}, the network reads {width} x {height}: add "
                f"--resize{other}."
            )
        picture = picture.resize(size, Image.Resampling.BILINEAR)
    return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).reshape(height, width).float() / 255
