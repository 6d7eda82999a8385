"""One input of any kind: read from Python objects, and matched with its model and its modality."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from holdfast.cases import AskableModel
from holdfast.columns import Columns
from holdfast.columns.frames import library_of
from holdfast.data.photographs import opened_image, rgb
from holdfast.errors import HoldfastError
from holdfast.modalities.modality import Modality, Subject
from holdfast.prose import visible
from holdfast.settings import shown_value
from holdfast.tensors import read_tensor
from holdfast.text import TextModel

SMALL = 64 * 64
"""Images with more pixels are drawn and divided as photographs."""

_FRAMES = ("pandas", "polars", "pyarrow")
_TITLE = 60  # letters


class Given(NamedTuple):
    """One input as it was given.

    Attributes:
        value: The text, or a tensor without or with a first axis of length 1.
        title: The input, for headings.
        bounds: The box that it certainly lives in; None if that is not known.
        note: What was assumed; empty if nothing was.
    """

    value: Tensor | str
    title: str
    bounds: tuple[float, float] | None = None
    note: str = ""


def read_given(x: Any, columns: Columns | None, texts: bool) -> Given:
    """Read one input.

    Args:
        x: A tensor, an array, a picture, the path of an image file, a text, or a row of a table.
        columns: The columns of the table, if the input is a row.
        texts: Whether the model reads texts.

    Returns:
        The input.

    Raises:
        HoldfastError: It is none of these, or several inputs.
    """
    if texts:
        if not isinstance(x, str):
            raise HoldfastError(f"the model reads texts: expected one text, got {type(x).__name__}.")
        return Given(x, _short(x))
    if columns is not None:
        return Given(_row(x, columns), "the row")
    if isinstance(x, (str, os.PathLike)):
        return _file(x)
    if isinstance(x, Image.Image):
        return Given(_pixels(np.asarray(rgb(x))), "the picture", (0.0, 1.0))
    if library_of(x) in _FRAMES or isinstance(x, Mapping):
        raise HoldfastError("a row of a table needs its table: pass columns=frame, from which ranges and scales come.")
    value = read_tensor(x, "x", "one input: a tensor, an array, a picture, a text or a row of a table")
    if value.dtype == torch.uint8 and value.ndim in (2, 3):
        return Given(_pixels(value.cpu().numpy()), "the picture", (0.0, 1.0))
    value = value if value.is_floating_point() else value.float()
    shape = value.shape[1:] if value.ndim == 4 else value.shape
    image = len(shape) == 3 and shape[0] in (1, 3) and value.numel() > 0
    if image and bool((value >= 0).all() and (value <= 1).all()):
        note = "bounds from 0 to 1 are assumed, because all values of the image lie there; bounds= states others."
        return Given(value, "the image", (0.0, 1.0), note)
    return Given(value, "the input")


def subject_of(model: AskableModel | TextModel, given: Given, columns: Columns | None) -> Subject:
    """Return the input with its model and the modality that divides and draws it.

    Args:
        model: The model.
        given: The input.
        columns: The columns of the table, if the input is a row.

    Raises:
        HoldfastError: The model does not take the input.
    """
    modalities = Modality.registry.classes()
    if isinstance(model, TextModel):
        assert isinstance(given.value, str)
        sentences = model.read(given.value)
        made = modalities["text"]()
        return Subject(
            made, model.classifier, sentences.x, given.value, given.title, sentences=sentences, text_model=model
        )
    assert isinstance(given.value, Tensor)
    x = given.value.to(model.device, model.dtype)
    x = x if columns is not None else _with_first_axis(model, x)
    return Subject(modalities[_kind(x, columns)](), model, x, given.title, given.title, columns=columns)


def _kind(x: Tensor, columns: Columns | None) -> str:
    """Return the name of the modality of inputs ``[1, *shape]``."""
    if columns is not None or x.ndim != 4 or x.shape[1] not in (1, 3):
        return "table"
    return "photograph" if x.shape[1] == 3 and x[0, 0].numel() > SMALL else "image"


def _with_first_axis(model: AskableModel, x: Tensor) -> Tensor:
    """Return one input as the batch that the model takes, ``[1, *shape]``."""
    if x.ndim == 4 and len(x) > 1:
        raise HoldfastError(f"x holds {len(x)} inputs, shape {tuple(x.shape)}: explain one of them, such as x[0].")
    has_axis = x.ndim in (2, 4) and len(x) == 1
    forms = [x, x[None]] if has_axis else [x[None], x]
    errors = []
    for form in forms if len(x.shape) and len(x) == 1 else forms[:1]:
        try:
            model(form, exact=True)
        except HoldfastError as error:
            errors.append(error)
        else:
            return form
    raise HoldfastError(
        f"the model cannot be asked about one input of shape {tuple(x.shape)}: {errors[0]}"
    ) from errors[0]


def _row(x: Any, columns: Columns) -> Tensor:
    """Return a row of a table as a point ``[1, n]``."""
    if library_of(x) == "pandas" and hasattr(x, "to_dict") and not hasattr(x, "columns"):
        x = x.to_dict()  # a Series: one row
    if isinstance(x, (Tensor, np.ndarray, list, tuple)) and np.ndim(x) == 1:
        if len(x) != len(columns):
            raise HoldfastError(f"a row of this table has {len(columns)} values, got {len(x)}.")
        values = x.tolist() if isinstance(x, (Tensor, np.ndarray)) else x
        x = dict(zip(columns.names, values, strict=True))
    point = columns.encode([x] if isinstance(x, Mapping) else x)
    if len(point) != 1:
        raise HoldfastError(f"expected one row of the table, got {len(point)}: explain one of them.")
    return point


def _file(x: str | os.PathLike[str]) -> Given:
    """Read an image file."""
    path = Path(x)
    if len(str(x)) > 1_000 or not path.exists():
        raise HoldfastError(
            f"a text is for a model of texts, and there is no image file {shown_value(visible(str(x))[:_TITLE])}."
        )
    with opened_image(path) as file:
        grey = file.mode in ("1", "L", "I;16")
        picture = file.convert("L") if grey else rgb(file)
    return Given(_pixels(np.asarray(picture)), path.name, (0.0, 1.0))


def _pixels(values: Any) -> Tensor:
    """Return bytes ``[H, W]`` or ``[H, W, 1 or 3]`` (or channels first) as an image ``[C, H, W]`` from 0 to 1."""
    pixels = torch.from_numpy(np.array(values, dtype=np.uint8))
    if pixels.ndim == 2:
        pixels = pixels[None]
    elif pixels.shape[-1] in (1, 3):
        pixels = pixels.permute(2, 0, 1)
    return pixels.float() / 255


def _short(text: str) -> str:
    words = visible(" ".join(text.split()))
    return words if len(words) <= _TITLE else f"{words[: _TITLE - 1]}…"
