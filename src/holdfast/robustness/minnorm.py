"""Direct minimum-norm search: a race between nearby classes, then a polish of the winner."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.errors import HoldfastError
from holdfast.robustness.method import Found, Robustness
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Search, chase, polish


@dataclass(frozen=True)
class MinNorm(Robustness):
    """The smallest change of decision within ``steps`` gradients a row, restarts included.

    The first leg heads for whichever class is nearest, the next for up to three rivals that are nearest at the
    witness found (most of the looseness of an attack is the wrong class), the last polishes the best. Asked about
    several subsets of a case, it first solves their union and starts each subset from that. ``restarts`` repeats
    the race from random points and shares the gradients among them.
    """

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

    def warm(self, cases: Cases, subsets: Tensor) -> Tensor | None:
        if subsets.shape[1] == 1:
            return None
        return self(cases, subsets.any(1, keepdim=True)).witness

    def search(self, rows: Rows, start: Tensor | None) -> Found:
        search = Search(rows, self.p, self.seed)
        self.walk(search, start)
        return search.found()

    def walk(self, search: Search, start: Tensor | None) -> None:
        """Walk ``search`` with this method's settings, keeping what it has found so far."""
        for restart in range(self.restarts):
            begin = start if restart == 0 else search.random(1000 + restart)
            self._race(search, self.steps // self.restarts, begin, restart)

    def _race(self, search: Search, steps: int, start: Tensor | None, draw: int) -> None:
        untargeted = bool((search.rows.target == ANY).any())
        rivals = min(3, max(0, steps // 25 - 1)) if untargeted else 0
        heat = round(0.15 * steps) if rivals else 0
        last = round(0.3 * steps) if steps >= 10 else 0
        chase(search, steps - rivals * heat - last, None, start, draw=draw)
        if rivals and search.logits is not None:
            tried = search.tried()
            for _ in range(rivals):
                aim = search.rival(tried)
                tried = tried.scatter(1, aim.clamp_min(0)[:, None], True)
                open_ = aim != ANY
                if bool(open_.any()):
                    chase(search.only(open_), heat, aim[open_])
        if last:
            polish(search, last)
