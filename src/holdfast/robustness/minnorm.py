"""Direct minimum-norm search: a race between nearby classes, then a ddn of the winner."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.errors import HoldfastError
from holdfast.models.model import Access
from holdfast.robustness.kinds import Attack, Moves
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Search, ddn, successive_projection


@dataclass(frozen=True)
class MinNorm(Attack):
    """The smallest change of decision within ``steps`` gradients a row, restarts included.

    The first leg heads for whichever class is nearest, the next for rivals that are nearest at the witness found (most
    of the looseness of an attack is the wrong class), the last polishes the best. Asked about several subsets of a
    case, it first solves their union (one more row a case) and starts each subset from that. ``restarts`` repeats the
    race from random points and shares the gradients among them.
    """

    name: ClassVar[str] = "min-norm"
    requires: ClassVar[Access] = Access.GRADIENTS
    p: float = 2
    steps: int = 100
    restarts: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.restarts < 1 or self.steps < 2 * self.restarts:
            raise HoldfastError(
                f"MinNorm needs restarts >= 1 and two steps for each, got steps={self.steps}, restarts={self.restarts}."
            )

    @property
    def rows(self) -> int:
        return self.steps + 1

    def warm_start(self, cases: Cases, subsets: Tensor) -> Tensor | None:
        if subsets.shape[1] == 1:
            return None
        return self(cases, subsets.any(1, keepdim=True)).witness

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        search = Search(rows, self.norm, self.seed)
        self.walk(search, start)
        return search.moves()

    def walk(self, search: Search, start: Tensor | None) -> None:
        """Walk ``search`` with this method's settings, keeping what it has found so far."""
        for restart in range(self.restarts):
            begin = start if restart == 0 else search.random(1000 + restart)
            self._race(search, self.steps // self.restarts, begin, restart)

    def _race(self, search: Search, steps: int, start: Tensor | None, draw: int) -> None:
        untargeted = bool((search.rows.target == ANY).any())
        rivals = max(0, min(3, steps // 25 - 1, len(search.rows.model.classes) - 2)) if untargeted else 0
        heat, last = max(5, round(0.15 * steps)), round(0.3 * steps) if steps >= 10 else 0
        # Where boundaries are straight, legs end early: such rows have gradients left for more rivals.
        most = search.spent + min((steps - last) // 2, steps - last - heat)
        successive_projection(search, steps - rivals * heat - last, None, start, draw=draw)
        tried = search.tried()
        for leg in itertools.count():
            if tried is None:
                break
            aim = search.rival(tried)
            if leg >= rivals:
                aim = torch.where(search.spent <= most, aim, ANY)
            racing = aim != ANY
            if not bool(racing.any()):
                break
            tried |= torch.zeros_like(tried).scatter(1, aim.clamp_min(0)[:, None], racing[:, None])
            successive_projection(search.only(racing), heat, aim[racing])
        if last:
            ddn(search, last)
