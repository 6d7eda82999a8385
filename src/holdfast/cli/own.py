"""The input of a command with the user's own model."""

from __future__ import annotations

from typing import Any

from holdfast.data import mnist
from holdfast.errors import HoldfastError
from holdfast.inputs import read_subject
from holdfast.modalities.modality import Modality, Subject
from holdfast.modalities.source import Source
from holdfast.model_files import is_own, load_model


def subject_or_modality(source: Source) -> tuple[Subject | None, Modality]:
    """Return the modality of a source, and its subject if it is about the user's own model.

    What kind of images an own network reads is known only when it is loaded; the table modality loads its own models.

    Args:
        source: The input and the network that a command names.

    Raises:
        HoldfastError: The source names several inputs or none, or the model cannot be loaded.
    """
    if not is_own(source.model) or source.rows is not None:
        if source.weights is not None and source.rows is None:
            raise HoldfastError("--weights are for the network of --model package.module:function: leave them out.")
        return None, Modality.of(source)
    subject = _read(source)
    return subject, subject.modality


def _read(source: Source) -> Subject:
    assert source.model is not None
    if len(source.named) != 1 or source.photo is not None:
        raise HoldfastError("with an own --model name one of: an image file, --digit, --text, a row of a table.")
    if source.resize:
        raise HoldfastError("--resize is for the digit network: scale the image to what your network reads.")
    model = load_model(source.model, source.weights, source.device)
    given: Any = source.text if source.text is not None else source.file
    if source.digit is not None:
        digits = mnist()
        if not 0 <= source.digit < len(digits):
            raise HoldfastError(f"--digit must be between 0 and {len(digits) - 1}, got {source.digit}.")
        given = digits.x[source.digit]
    return read_subject(model, given, None, source.classes)
