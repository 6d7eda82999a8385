"""A small table with columns of every kind."""

from __future__ import annotations

from typing import Any

import holdfast as hf

PEOPLE: dict[str, list[Any]] = {
    "income": [38000.0, 52000.5, 61000.0, 41000.0],
    "age": [33, 55, 47, 60],
    "job": ["clerk", "nurse", "clerk", "pilot"],
    "education": ["low", "mid", "high", "mid"],
    "smokes": [True, False, False, True],
}
ORDER = ["low", "mid", "high"]
STATED: dict[str, Any] = {
    "kinds": {"education": "ordered"},
    "categories": {"education": ORDER},
    "units": {"income": "€"},
    "rising": ["age"],
    "scale": {"income": 10_000, "age": "range"},
}
ROWS = [dict(zip(PEOPLE, row, strict=True)) for row in zip(*PEOPLE.values(), strict=True)]


def people(**stated: Any) -> hf.Columns:
    return hf.Columns.read(PEOPLE, **{**STATED, **stated})
