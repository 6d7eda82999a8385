"""One input of any kind: read from Python objects, and matched with its model and its modality."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from holdfast.as_model import as_model, reads_texts
from holdfast.cases import AskableModel
from holdfast.columns import Columns
from holdfast.columns.frames import library_of
from holdfast.data.photographs import opened_image, rgb
from holdfast.errors import HoldfastError, first_line
from holdfast.modalities.modality import Modality, Subject
from holdfast.models.frame import Bound
from holdfast.models.model import Model
from holdfast.prose import visible
from holdfast.settings import shown_value
from holdfast.tensors import read_tensor
from holdfast.text import TextModel

SMALL = 64 * 64
"""Images with more pixels are drawn and divided as photographs."""

_FRAMES = ("pandas", "polars", "pyarrow")
_TITLE = 60  # letters
_ASSUMED = "bounds from 0 to 1 are assumed, because all values of the image lie there; bounds= states others."
_UNBOUNDED = "inputs are not bounded, because not all values of the image lie between 0 and 1; bounds= states the box."
_PLAIN = "the network gets the picture with values from 0 to 1, without a normalisation; hf.TorchModel has one."
_UNITS = "lengths are in the units of the input, in which every number counts the same; columns= gives them scales."


class _Given(NamedTuple):
    """One input as it was given: its values, its name, and whether it is a picture."""

    value: Tensor
    title: str
    picture: bool = False


def read_subject(
    model: Any, x: Any, bounds: tuple[Bound, Bound] | None = None, classes: Sequence[str] = (), columns: Any = None
) -> Subject:
    """Match one input with its model and the modality that divides and draws it.

    Args:
        model: A model of any library.
        x: A tensor, an array, a picture, the path of an image file, a text, or a row of a table.
        bounds: The box that inputs live in; None: what is assumed is noted.
        classes: Names of the classes.
        columns: The table that the row is from, or its ``Columns``; None: the input is no row.

    Raises:
        HoldfastError: The model or the input cannot be read, or the model does not take the input.
    """
    taken = isinstance(model, (Model, TextModel))
    if reads_texts(model):
        return _text(as_model(model, bounds, classes=classes), x)
    if columns is not None:
        return _row_subject(model, x, bounds, classes, columns)
    known = as_model(model, bounds, classes=classes)
    assert isinstance(known, AskableModel)
    given = _read(x, _is_unit(known))
    point = _with_first_axis(known, given.value.to(known.device, known.dtype), given.picture)
    notes = [_PLAIN] if given.picture and isinstance(model, nn.Module) else []
    image = point.ndim == 4 and point.shape[1] in (1, 3)
    if image and bounds is None and not taken:
        inside = bool((point >= 0).all() and (point <= 1).all())
        notes.append(_ASSUMED if inside else _UNBOUNDED)
        known = as_model(model, (0, 1), classes=classes) if inside else known
        assert isinstance(known, AskableModel)
    if not image:
        notes.append(_UNITS)
    kind = "table" if not image else "photograph" if point.shape[1] == 3 and point[0, 0].numel() > SMALL else "image"
    title = given.title if given.picture or not image else "the image"
    return Subject(Modality.registry.make(kind), known, point, title, title, notes=tuple(notes))


def _text(model: AskableModel | TextModel, x: Any) -> Subject:
    assert isinstance(model, TextModel)
    if not isinstance(x, str):
        raise HoldfastError(f"the model reads texts: expected one text, got {type(x).__name__}.")
    sentences, words = model.read(x), visible(" ".join(x.split()))
    title = words if len(words) <= _TITLE else f"{words[: _TITLE - 1]}…"
    modality = Modality.registry.make("text")
    return Subject(modality, model.classifier, sentences.x, x, title, sentences=sentences, text_model=model)


# ---------------------------------------------------------------------- rows of tables


def _row_subject(model: Any, x: Any, bounds: Any, classes: Sequence[str], columns: Any) -> Subject:
    table = columns if isinstance(columns, Columns) else Columns.read(columns)
    if isinstance(model, Model):
        _check_columns(model, table)
        known = as_model(model, bounds, classes=classes)
    else:
        known = as_model(model, bounds, classes=classes, columns=table)
    assert isinstance(known, AskableModel)
    point = _row(x, table).to(known.device, known.dtype)
    return Subject(Modality.registry.make("table"), known, point, "the row", "the row", columns=table)


def _check_columns(model: Model, columns: Columns) -> None:
    """Refuse a model that was made with other columns: its points would be other numbers."""
    same = model.features is not None and model.features.names == columns.features().names
    for ours, theirs in zip((model.low, model.high), columns.bounds(), strict=True):
        ours = torch.zeros(0) if ours is None else ours.flatten().double().cpu()
        same = same and ours.shape == theirs.shape and torch.allclose(ours, theirs.double(), equal_nan=True)
    if not same:
        raise HoldfastError(
            "the model was made without these columns, or with other ranges or scales: pass the classifier itself, or "
            "the Columns that the model was made with."
        )


def _row(x: Any, columns: Columns) -> Tensor:
    """Return a row of a table as a point ``[1, n]``."""
    if library_of(x) == "pandas" and hasattr(x, "to_dict") and not hasattr(x, "columns"):
        x = x.to_dict()  # a Series: one row
    if isinstance(x, (Tensor, np.ndarray, list, tuple)) and np.ndim(x) == 1 and not isinstance(x[0], Mapping):
        if len(x) != len(columns):
            raise HoldfastError(f"a row of this table has {len(columns)} values, got {len(x)}.")
        values = x.tolist() if isinstance(x, (Tensor, np.ndarray)) else x
        x = dict(zip(columns.names, values, strict=True))
    point = columns.encode([x] if isinstance(x, Mapping) else x)
    if len(point) != 1:
        raise HoldfastError(f"expected one row of the table, got {len(point)}: explain one of them.")
    return point


# ---------------------------------------------------------------------- numbers and pictures


def _read(x: Any, unit: bool) -> _Given:
    """Read numbers or a picture; bytes and pictures become values from 0 to 1 if the model's box is of that size."""
    if isinstance(x, (str, os.PathLike)):
        path = Path(x)
        if len(str(x)) > 1_000 or not path.exists():
            raise HoldfastError(
                f"a text is for a model of texts, and there is no image file {shown_value(visible(str(x))[:_TITLE])}."
            )
        with opened_image(path) as file:
            return _Given(_pixels(_picture(file), unit), path.name, True)
    if isinstance(x, Image.Image):
        return _Given(_pixels(_picture(x), unit), "the picture", True)
    if library_of(x) in _FRAMES or isinstance(x, Mapping):
        raise HoldfastError("a row of a table needs its table: pass columns=frame, from which ranges and scales come.")
    value = read_tensor(x, "x", "one input: a tensor, an array, a picture, a text or a row of a table")
    if value.dtype == torch.uint8 and value.ndim == 4 and len(value) == 1:
        value = value[0]
    if value.dtype == torch.uint8 and (value.ndim == 3 or (value.ndim == 2 and min(value.shape) > 1)):
        return _Given(_pixels(value.cpu().numpy(), unit), "the picture", True)
    return _Given(value if value.is_floating_point() else value.float(), "the input")


def _is_unit(model: AskableModel) -> bool:
    """Whether values from 0 to 1 are what the model's box is for; False for a box such as 0 to 255."""
    return model.high is None or float(model.high.max()) <= 1


def _picture(picture: Image.Image) -> Any:
    """Return a picture as bytes: grey ones ``[H, W]``, others ``[H, W, 3]``."""
    if picture.mode.startswith("I"):  # 16 bits
        return np.asarray(picture.point(lambda value: value / 256).convert("L"))
    return np.asarray(picture.convert("L") if picture.mode in ("1", "L") else rgb(picture))


def _pixels(values: Any, unit: bool) -> Tensor:
    """Return bytes ``[H, W]`` or ``[H, W, 1 or 3]`` (or channels first) as an image ``[C, H, W]``."""
    pixels = torch.from_numpy(np.array(values, dtype=np.uint8))
    if pixels.ndim == 2:
        pixels = pixels[None]
    elif pixels.shape[-1] in (1, 3):
        pixels = pixels.permute(2, 0, 1)
    return pixels.float() / 255 if unit else pixels.float()


def _with_first_axis(model: AskableModel, x: Tensor, picture: bool) -> Tensor:
    """Return one input as the batch that the model takes, ``[1, *shape]``."""
    if x.ndim == 4 and len(x) > 1:
        raise HoldfastError(f"x holds {len(x)} inputs, shape {tuple(x.shape)}: explain one of them, such as x[0].")
    alone = x.ndim > 0 and len(x) == 1
    forms = [x, x[None]] if alone and x.ndim in (2, 4) else [x[None], x] if alone else [x[None]]
    if picture and len(x) == 1:
        forms.append(x.expand(3, -1, -1)[None])  # a grey picture for a network that reads colours
    elif picture and bool((x == x[:1]).all()):
        forms.append(x[:1][None])
    errors = []
    for form in forms:
        try:
            model(form, exact=True)
        except (HoldfastError, RuntimeError) as error:
            errors.append(error)
        else:
            return form
    several = f" If it holds {len(x)} inputs, explain one of them." if x.ndim == 2 and len(x) > 1 else ""
    raise HoldfastError(
        f"the model cannot be asked about one input of shape {tuple(x.shape)}: {first_line(errors[0])}{several}"
    ) from errors[0]
