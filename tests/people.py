"""A small table with columns of every kind."""

from __future__ import annotations

from typing import Any

import pytest

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


def frame_of(kind: str) -> Any:
    if kind.startswith("pandas"):
        pandas = pytest.importorskip("pandas")
        if kind == "pandas":
            return pandas.DataFrame(PEOPLE)
        education = pandas.Categorical(PEOPLE["education"], ORDER, ordered=True)
        age, job = pandas.Series(PEOPLE["age"], dtype="Int64"), pandas.Series(PEOPLE["job"], dtype="category")
        return pandas.DataFrame(PEOPLE | {"education": education}).assign(age=age, job=job)
    if kind.startswith("polars"):
        polars = pytest.importorskip("polars")
        jobs = polars.Enum(["clerk", "nurse", "pilot"]) if "enum" in kind else polars.String
        return polars.DataFrame(PEOPLE).with_columns(polars.col("job").cast(jobs))
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(PEOPLE | ({"job": arrow.array(PEOPLE["job"]).dictionary_encode()} if "dict" in kind else {}))
    return Stream(table) if kind == "stream" else table


class Stream:
    def __init__(self, table: Any):
        self.__arrow_c_stream__ = table.__arrow_c_stream__
