"""Direct minimum-norm search: successive projection towards the nearest classes, then DDN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.errors import HoldfastError
from holdfast.models.model import Access
from holdfast.robustness.bisection import HALVINGS, tighten
from holdfast.robustness.ddn import ddn
from holdfast.robustness.kinds import Attack, Moves
from holdfast.robustness.projection import successive_projection
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Search
from holdfast.settings import Count

_RESTARTS = 1000  # offset of the numbers of random moves that restarts begin from


@dataclass(frozen=True)
class MinNorm(Attack):
    """The smallest change of decision that is found within ``steps`` gradients for each row.

    Successive projection first heads for the nearest class, then for the classes that are nearest at the witness: most
    of the looseness of an attack is a wrong class. DDN improves the best witness. For several subsets of a case, their
    union is solved first (one more row for each case) and every subset starts from its witness.

    >>> import torch, holdfast as hf
    >>> model = hf.TorchModel(torch.nn.Linear(3, 2).eval())
    >>> hf.MinNorm(steps=20)(model.ask(torch.zeros(1, 3)), torch.ones(1, 1, 3, dtype=torch.bool)).bound
    'upper'

    Args:
        p: The norm: 1, 2 or infinity.
        steps: Gradients for each row, all restarts together.
        restarts: How often the search is repeated; all but the first start from random points.
        seed: For random points.

    Raises:
        HoldfastError: A setting is out of range.
    """

    name: ClassVar[str] = "min-norm"
    requires: ClassVar[Access] = Access.GRADIENTS
    p: float = 2
    steps: Count = 100
    restarts: Count = 1
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 2 * self.restarts:
            raise HoldfastError(
                f"MinNorm needs two steps for each restart, got steps={self.steps}, restarts={self.restarts}."
            )

    @property
    def rows(self) -> int:
        return self.steps + 1 + self._halvings

    @property
    def _halvings(self) -> int:
        """How many halvings move the last witness to the boundary: for few steps all of them would cost too much."""
        return min(HALVINGS, self.steps // 14)

    def warm_start(self, cases: Cases, subsets: Tensor) -> Tensor | None:
        """Return the witness of the union of each case's subsets, ``[B, 1, *shape]``; None if there is one subset."""
        if subsets.shape[1] == 1:
            return None
        return self(cases, subsets.any(1, keepdim=True)).witness

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        search = Search(rows, self.norm, self.seed)
        self.improve(search, start)
        return search.moves()

    def improve(self, search: Search, start: Tensor | None) -> None:
        """Run this method on a search that may have witnesses already.

        Args:
            search: The search to improve.
            start: Moves ``[R, n]`` to begin from; None for x itself.
        """
        if self.restarts == 1:
            self._attack(search, self.steps, start, 0)
        else:
            self._restart(search, start)
        tighten(search, self._halvings)

    def _restart(self, search: Search, start: Tensor | None) -> None:
        first = torch.zeros_like(search.rows.x) if start is None else start

        def run(part: Search, row: Tensor, leg: Tensor) -> None:
            begin = torch.where((leg == 0)[:, None], first[row], part.random_move(_RESTARTS + leg))
            self._attack(part, self.steps // self.restarts, begin, leg)

        search.side_by_side(self.restarts, run)

    def _attack(self, search: Search, steps: int, start: Tensor | None, draw: int | Tensor) -> None:
        untargeted = bool((search.rows.target == ANY).any())
        classes = max(0, min(3, steps // 25 - 1, len(search.rows.model.classes) - 2)) if untargeted else 0
        each, last = max(5, round(0.15 * steps)), round(0.3 * steps) if steps >= 10 else 0
        # Straight boundaries need few gradients: such rows have some left for more classes.
        most = search.spent + min((steps - last) // 2, steps - last - each)
        successive_projection(search, steps - classes * each - last, None, start, draw=draw)
        tried, able = search.reached_classes(), search.rows.free.any(1) & (search.best_radius() > 0)
        if tried is not None and classes:
            tried = self._attack_classes(search, tried, search.next_classes(tried, classes), each)
        while tried is not None:
            aims = search.next_classes(tried, 1)
            aims = torch.where((able & (search.spent <= most))[:, None], aims, ANY)
            if not bool((aims != ANY).any()):
                break
            tried = self._attack_classes(search, tried, aims, each)
        if last:
            ddn(search, last)

    def _attack_classes(self, search: Search, tried: Tensor, aims: Tensor, steps: int) -> Tensor:
        """Head for each of the classes ``aims [R, C]`` from x; return ``tried [R, classes]`` with them."""

        def run(part: Search, row: Tensor, leg: Tensor) -> None:
            aim = aims[row, leg]
            useful = aim != ANY
            successive_projection(part.part(useful), steps, aim[useful])

        search.side_by_side(aims.shape[1], run)
        return tried.scatter(1, torch.where(aims == ANY, search.rows.label[:, None], aims), True)
