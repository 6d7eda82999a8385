"""Odd calls of columns of tables and domains, for the trial of the API."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import holdfast as hf
from people import PEOPLE, ROWS, STATED, frame_of, people
from trial.api_values import odd_tensor, odd_value

_FRAMES = ["pandas", "pandas with categories", "polars", "polars with an enum", "arrow", "arrow with a dictionary"]
_STATED = ["kinds", "units", "fixed", "rising", "falling", "ranges", "scale", "categories", "names"]
_RULES: list[Any] = [
    "std",
    "mad",
    "range",
    0,
    -1,
    2.5,
    1e-300,
    (0, 100_000),
    (1, 0),
    [0],
    "ordered",
    "numeric",
    "integer",
]


def _table(draw: random.Random) -> Any:
    """Return a table, most with an odd value, column or name."""
    held: dict[Any, Any] = {name: list(values) for name, values in PEOPLE.items()}
    name = draw.choice(list(held))
    match draw.randrange(9):
        case 0:
            return frame_of(draw.choice(_FRAMES))
        case 1:
            return draw.choice([odd_value(draw), odd_tensor(draw, (2, 6))])
        case 2:
            held[name][draw.randrange(4)] = odd_value(draw)
        case 3:
            held[name] = odd_value(draw)
        case 4:
            held[draw.choice(["id", 1, "", None, "Income"])] = held.pop(name)
        case 5:
            return [row | ({name: odd_value(draw)} if draw.random() < 0.5 else {}) for row in ROWS]
        case 6:
            days = np.array(["2026-01-01"] * 4, "M8[D]")
            kind: Any = draw.choice([object, "U9", "S9"])
            jobs = np.array(PEOPLE["job"], kind)
            held[name] = draw.choice([days, jobs, odd_tensor(draw, (4,))])
        case 7:
            return {name: value for name, value in ROWS[0].items() if draw.random() < 0.9}
    return held


def _stated(draw: random.Random) -> dict[str, Any]:
    odd: dict[str, Any] = {}
    for title in draw.sample(_STATED, draw.choice([0, 1, 2])):
        by_name = {draw.choice([*PEOPLE, "id", 3]): draw.choice([*_RULES, odd_value(draw)])}
        odd[title] = draw.choice([by_name, odd_value(draw), list(PEOPLE)[: draw.randrange(6)]])
    return {**(STATED if draw.random() < 0.7 else {}), **odd}


def _read(draw: random.Random) -> Any:
    table = _table(draw)
    columns = hf.Columns.read(table, **_stated(draw))
    x = columns.encode(table)
    low, high = columns.bounds()
    assert ((low <= x) & (x <= high)).all()
    assert columns.domain().contains(x, x).all()
    assert torch.equal(columns.encode(columns.decode(x, table)), x)
    return x


def _encode(draw: random.Random) -> Any:
    return people().encode(_table(draw))


def _decode(draw: random.Random) -> Any:
    x = draw.choice([odd_tensor(draw, (2, 8)), odd_value(draw), people().encode(ROWS)])
    return people().to_frame(x, draw.choice([None, _table(draw)]), draw.choice([None, _table(draw)]))


def _changes(draw: random.Random) -> Any:
    columns = people(rising=[])
    points = columns.encode(ROWS)
    x, witness = (draw.choice([points[draw.randrange(4)], odd_tensor(draw, (8,)), odd_value(draw)]) for _ in range(2))
    answers: list[Any] = [None, lambda one: one[:, 0] > 0, lambda one: one, lambda one: odd_tensor(draw)]
    return columns.sentence(columns.changes(x, witness, draw.choice(answers)), proven=draw.random() < 0.5)


def _column(draw: random.Random) -> Any:
    names = ["name", "kind", "unit", "categories", "low", "high", "scale", "fixed", "rising", "falling"]
    good: dict[str, Any] = {"name": "a", "kind": draw.choice(["numeric", "integer", "ordered", "categorical"])}
    odd = {name: draw.choice([odd_value(draw), ["x", "y"], *_RULES]) for name in draw.sample(names, 2)}
    columns = hf.Columns((hf.Column(**good | odd),))
    return columns.encode(columns.decode(torch.stack(columns.bounds())))


def _domain(draw: random.Random) -> Any:
    step: Any = draw.choice([torch.zeros(6), torch.full((6,), 0.5), odd_tensor(draw, (6,)), odd_value(draw)])
    groups: Any = draw.choice([(), ([0, 1], [2, 3]), ([0, 1], [1]), (odd_value(draw),)])
    odd = {name: odd_value(draw) for name in ("hot", "rising", "falling") if draw.random() < 0.2}
    points: Any = draw.choice([torch.rand(2, 6), odd_tensor(draw, (2, 6))])
    return hf.Domain(step, groups, **odd).nearest(points, torch.zeros(2, 6)).shape


TABLES: dict[str, Callable[[random.Random], Any]] = {
    "read columns": _read,
    "encode rows": _encode,
    "decode points": _decode,
    "changes": _changes,
    "column": _column,
    "domain": _domain,
}
