"""Radii that a radius is compared with: of a random subset of the same size, and of all features."""

from __future__ import annotations

import math
from typing import NamedTuple


class Baselines(NamedTuple):
    """Radii to compare with those of the relevant features.

    >>> Baselines((1.9, 1.1), 0.87).held_text(5)
    'it is 1.1 while 5 random ones are held, and it is 0.87 while none is held'

    Attributes:
        random: The radii of a random subset of the same size: if only these features move, and if these are held.
        everything: The radius if all features move.
        proven: Whether it is proven that no smaller change exists, for these three.
    """

    random: tuple[float, float]
    everything: float
    proven: tuple[bool, bool, bool] = (False, False, False)

    def held_text(self, size: int, named: str = "it is") -> str:
        """Say how long the smallest change is while random features, or none, are held.

        Args:
            size: How many random features are held.
            named: What a length is introduced by.
        """
        random = _length(self.random[1], self.proven[1], named)
        everything = _length(self.everything, self.proven[2], named)
        ones = f"{size} random ones are" if size > 1 else "a random one is"
        return f"{random} while {ones} held, and {everything} while none is held"


def _length(radius: float, proven: bool, named: str) -> str:
    if math.isinf(radius):
        return "it is proven that there is none" if proven else "none is found"
    return f"{named} {radius:.3g}"
