"""Pixels: inputs as colours, addresses of pictures inside pages, and figures as files."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from holdfast.data.photographs import MOST_PIXELS
from holdfast.errors import HoldfastError, first_line
from holdfast.files import atomic

Pixels = np.ndarray[Any, Any]


def colours(x: Tensor) -> Pixels:
    """Return an image ``[1 or 3, H, W]`` as colours ``[H, W, 3]`` from 0 to 1."""
    values = x.detach().float().cpu().clamp(0, 1)
    return values.expand(3, -1, -1).permute(1, 2, 0).numpy() if len(values) == 1 else values.permute(1, 2, 0).numpy()


def png(pixels: Pixels) -> str:
    """Return pixels ``[H, W, 3]`` as the address of a PNG picture inside a page."""
    out = io.BytesIO()
    Image.fromarray((pixels.clip(0, 1) * 255).round().astype(np.uint8)).save(out, "png", optimize=True)
    return address("png", out.getvalue())


def jpeg(pixels: Pixels) -> str:
    """Return pixels ``[H, W, 3]`` as the address of a JPEG picture inside a page."""
    out = io.BytesIO()
    Image.fromarray((pixels.clip(0, 1) * 255).round().astype(np.uint8)).save(out, "jpeg", quality=88, subsampling=0)
    return address("jpeg", out.getvalue())


def address(kind: str, content: bytes) -> str:
    """Return content as an address inside a page."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file of the kind that its name says, whole or not at all.

    Raises:
        HoldfastError: The file cannot be written, or its kind is not known.
    """
    with atomic(path) as part:
        try:
            figure.savefig(part, dpi=130)
        except ValueError as error:
            raise HoldfastError(f"cannot write the picture {path}: {first_line(error)}") from error


def grey_image(path: Path, size: tuple[int, int], resize: bool) -> Tensor:
    """Return an image file in grey, ``[H, W]`` from 0 to 1, of this width and height.

    Raises:
        HoldfastError: It cannot be read, or has another size and ``resize`` is False.
    """
    try:
        with Image.open(path) as file:
            if file.width * file.height > MOST_PIXELS:
                raise HoldfastError(
                    f"{path} claims {file.width} x {file.height} pixels, more than the {MOST_PIXELS:,} that are read."
                )
            picture = file.convert("L")
    except HoldfastError:
        raise
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        raise HoldfastError(f"cannot read the image {path}: {first_line(error)}") from error
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
