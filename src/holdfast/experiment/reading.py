"""Explanations as the store has them, with the words of texts and the columns of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from holdfast.experiment.packing import unpack_explanations
from holdfast.experiment.record import StudyRecord
from holdfast.experiment.store import Unit
from holdfast.explanation import Explanation
from holdfast.features import Features
from holdfast.modalities.rows import described


def explanations_of(study: StudyRecord, inputs: Unit, unit: Unit, method: str, start: int) -> list[Explanation]:
    """Return the explanations of a unit, with their texts if inputs are texts, and their columns if they are rows.

    Args:
        study: The study that the units belong to.
        inputs: The unit with the inputs; for targeted explanations the same as ``unit``.
        unit: The unit with the explanations.
        method: The name of the method.
        start: The place of its first example in the study.
    """
    ids, columns = torch.from_numpy(inputs.arrays["ids"]).long(), study.table
    texts = study.texts[start : start + len(ids)]
    names: Sequence[tuple[str, ...] | None] = [None] * len(ids)
    if columns is not None:
        names = [columns.moving] * len(ids)
    elif texts:
        names = [tuple(word.text for word in text.words) for text in texts]
    features = [
        Features(one[None], study.feature_count, study.feature_kind, None if name is None else (name,))
        for one, name in zip(ids, names, strict=True)
    ]
    explanations = unpack_explanations(inputs, unit, method, features, study.classes)
    if columns is not None:
        return [one if one.witness is None else described(one, columns) for one in explanations]
    if not texts:
        return explanations
    pairs = zip(explanations, texts, strict=False)
    return [replace(one, text=text.text, spans=text.spans) for one, text in pairs]
