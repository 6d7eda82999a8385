"""One feature of an explanation, for readers."""

from __future__ import annotations

from typing import NamedTuple


class RankedFeature(NamedTuple):
    """One feature of an explanation.

    Attributes:
        rank: Its place in the order of relevance, 1 for the first.
        number: Its number among the features.
        name: Its name, or the word or column that it is.
        relevant: Whether it is one of the relevant ones.
        value: Its value for readers, if it is a column.
        becomes: What the smallest change makes of it, as a real word or a value; empty if that is not known.
    """

    rank: int
    number: int
    name: str
    relevant: bool
    value: str = ""
    becomes: str = ""
