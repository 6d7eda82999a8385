"""Universal Binary JSON: what XGBoost writes, small documents by hand, and damaged ones."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import numpy as np
import pytest
import xgboost
from hypothesis import example, given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.tree_ensembles.ubjson import parse
from tree_models import fitted


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | np.ndarray):
        return (
            [_plain(one) for one in np.asarray(value).tolist()]
            if isinstance(value, np.ndarray)
            else [*map(_plain, value)]
        )
    return value


def _alike(one: Any, other: Any) -> bool:
    """Whether two documents hold the same; numbers of single precision are written in few digits in text."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return bool(np.float32(one) == np.float32(other))
    return bool(one == other)


@pytest.mark.parametrize("classes", [2, 3])
def test_what_xgboost_writes_is_what_it_writes_as_text(classes: int) -> None:
    booster = fitted("xgboost", classes=classes).get_booster()
    booster.set_attr(note="good: \u00fc")
    booster.feature_names = ["a", "b", "\u00e4ge"]
    binary, text = parse(bytes(booster.save_raw("ubj"))), json.loads(booster.save_raw("json"))
    assert _alike(_plain(binary), text)
    arrays = binary["learner"]["gradient_booster"]["model"]["trees"][0]
    assert arrays["split_conditions"].dtype == np.float32


HAND: list[tuple[bytes, Any]] = [
    (b"Z", None),
    (b"NNT", True),
    (b"F", False),
    (b"i\xff", -1),
    (b"U\xff", 255),
    (b"I\x01\x00", 256),
    (b"l" + struct.pack(">i", -(2**31)), -(2**31)),
    (b"L" + struct.pack(">q", 2**40), 2**40),
    (b"d" + struct.pack(">f", 0.5), 0.5),
    (b"D" + struct.pack(">d", 0.1), 0.1),
    (b"Cx", "x"),
    (b"SU\x02\xc3\xa4", "\u00e4"),
    (b"[]", []),
    (b"[TNF]", [True, False]),
    (b"[#i\x02TF", [True, False]),
    (b"[$U#i\x03\x01\x02\x03", [1, 2, 3]),
    (b"[$I#i\x02\x01\x00\x00\x01", [256, 1]),
    (b"{i\x01ai\x05}", {"a": 5}),
    (b"{$U#i\x01i\x01a\x07", {"a": 7}),
    (b"[$S#i\x01i\x01a", ["a"]),
]


@pytest.mark.parametrize(("document", "value"), HAND)
def test_small_documents(document: bytes, value: Any) -> None:
    assert _plain(parse(document)) == value


DAMAGED = [
    b"",
    b"N" * 200_000,
    b"[" * 200_000,
    b"[$[#i\x01" * 1_000,
    b"{i\x01a" * 1_000,
    b"[$Z#L" + struct.pack(">q", 2**60),
    b"[$T#l" + struct.pack(">i", 2**31 - 1),
    b"[$d#L" + struct.pack(">q", 2**62),
    b"[$D#L" + struct.pack(">q", 2**61),
    b"[#L" + struct.pack(">q", 2**60) + b"T" * 10,
    b"{#L" + struct.pack(">q", 2**60),
    b"[#i\xff",
    b"SL" + struct.pack(">q", 2**62),
    b"Si\xff",
    b"SU\x01\xff",
    b"[$U]",
    b"[$d#D\x00",
    b"H",
    b"i",
    b"T T",
    b"{T",
    b'{"a": 1}',
]


@pytest.mark.parametrize("document", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_documents_are_refused_in_one_sentence(document: bytes) -> None:
    with pytest.raises(
        hf.HoldfastError, match=r"^this is not Universal Binary JSON, or it is damaged: save it again\.$"
    ):
        parse(document)


MODEL = bytes(
    xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix([[0.0], [1.0]] * 9, [0, 1] * 9), 1).save_raw("ubj")
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=40), st.tuples(st.integers(0, len(MODEL) - 1), st.integers(0, 255))))
@example((0, 0))
def test_any_bytes_give_a_value_or_one_sentence(change: bytes | tuple[int, int]) -> None:
    document = change
    if isinstance(change, tuple):
        place, byte = change
        document = MODEL[:place] + bytes([byte]) + MODEL[place + 1 :]
    assert isinstance(document, bytes)
    with contextlib.suppress(hf.HoldfastError):
        parse(document)


def test_every_shorter_beginning_of_a_model_is_refused() -> None:
    for end in range(0, len(MODEL), 7):
        with pytest.raises(hf.HoldfastError, match=r"^this is not Universal Binary JSON"):
            parse(MODEL[:end])
