"""The ensemble that evaluates explanations: several searches, starts and classes, and the best witness."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from holdfast.cases import ANY, Cases
from holdfast.models.model import Access, Model
from holdfast.robustness.bisection import tighten
from holdfast.robustness.ddn import ddn
from holdfast.robustness.decision_based import DecisionBased
from holdfast.robustness.kinds import Attack, Exact, Moves
from holdfast.robustness.many_starts import many_starts, refine
from holdfast.robustness.method import Robustness
from holdfast.robustness.minnorm import MinNorm
from holdfast.robustness.norms import L1, L2
from holdfast.robustness.projection import successive_projection
from holdfast.robustness.rows import Rows
from holdfast.robustness.search import Search
from holdfast.robustness.steps import clip
from holdfast.settings import Natural, Range

_LONGER = 10  # factor on the steps of rows that have no witness
_NEAR = 2  # a projection that ends within this factor of the best radius is continued by DDN
_STRIDE = 0.3  # the first step of DDN as a share of the radius: in L1 the norm's own jumps to other witnesses
_FINE = 0.1  # the factor on the last steps: before, searches stop where such steps go to and fro across kinks
_AROUND = 0.5  # the distance of points around the best witness as a share of its length
_CROSS = 400_000  # the number of the first draw of such points
_FEW_DRAWS = 600_000  # the number of the first draw for rows with few free coordinates
_SPACING = 1000  # numbers for each of the other draws


@dataclass(frozen=True)
class Judge(Attack):
    """The radius that reports print: tighter than, and different from, any attack that an explainer optimises.

    It is the best of ``MinNorm``, of searches towards each of the nearest classes, of searches from random points on
    the sphere of the best radius so far, of searches from witnesses of another norm, and of a long DDN. An attack
    towards one class only would favour the explainer that uses the same attack. Rows without a witness get ten times
    as many steps. Rows with 32 free coordinates or fewer are searched from many more points, which takes ten to
    fifteen times as many gradients; ``rows`` leaves them out.

    A model without gradients is measured by the exact method that is made for it, such as ``ExactTrees``, or by
    ``DecisionBased``. So is one whose inputs are whole numbers or categories. A note of the radii says which.

    A judge begins with what smaller presets do. So ``default`` is not looser than ``quick``, nor ``thorough`` than
    ``default``, except where rounding moves a witness outwards. One subset alone takes less time than its searches one
    after another, because they share batches.

    Args:
        p: The norm: 1, 2 or infinity.
        steps: Gradients of one search.
        classes: How many of the nearest classes are attacked.
        starts: How many random points are tried.
        seed: For random points.

    Raises:
        HoldfastError: A setting is out of range.
    """

    name: ClassVar[str] = "judge"
    presets: ClassVar[tuple[str, ...]] = ("quick", "thorough")
    requires: ClassVar[Access] = Access.DECISIONS
    p: float = 2
    steps: Annotated[int, Range(10)] = 60
    classes: Natural = 9
    starts: Natural = 24
    seed: int = 0

    @classmethod
    def quick(cls, p: float = 2) -> Judge:
        """Return a judge with up to about 500 gradients for each subset, for CPUs."""
        return cls(p, steps=25, classes=5, starts=3)

    @classmethod
    def default(cls, p: float = 2) -> Judge:
        """Return a judge with up to about 3,600 gradients for each subset."""
        return cls(p)

    @classmethod
    def thorough(cls, p: float = 2) -> Judge:
        """Return a judge with up to about 24,000 gradients for each subset."""
        return cls(p, steps=150, classes=20, starts=80)

    @property
    def rows(self) -> int:
        rounds = self._rounds()
        continued = 1.5 * sum(one.steps * (one.classes + one._projected) for one in rounds)
        last = 5 if math.isinf(self.p) else 3
        others = sum(one.steps * (1 + one.starts - one._projected + last) for one in rounds)
        others += sum(one._turns * (one._longer + one.steps * math.isfinite(one.p)) for one in rounds)
        return 2 * rounds[0].steps + round(continued) + others

    @property
    def _projected(self) -> int:
        """How many of the random points are projected; the others descend."""
        return round(self.starts / 3)

    @property
    def _turns(self) -> int:
        """How many searches look for other basins from the best witness."""
        return min(4, self.steps // 15) if math.isinf(self.p) else min(3, self.steps // 20)

    @property
    def _longer(self) -> int:
        """Gradients of each of these searches."""
        return round(self.steps * (4 / 3 if math.isinf(self.p) else 2))

    def _rounds(self) -> list[Judge]:
        """Return the presets that are not larger than this judge, and then this judge."""
        presets = (replace(preset(self.p), seed=self.seed) for preset in (Judge.quick, Judge.default, Judge.thorough))
        rounds = [preset for preset in presets if preset._within(self)]
        return rounds if self in rounds else [*rounds, self]

    def _within(self, other: Judge) -> bool:
        return self.steps <= other.steps and self.classes <= other.classes and self.starts <= other.starts

    def adapted(self, model: Model) -> Robustness:
        """Return this judge, or the exact method that is made for the model, or ``DecisionBased``.

        A judge needs gradients, and ends at points that are no inputs where a model has whole numbers or categories.
        """
        if model.smooth:
            return self
        every = Robustness.registry.classes().values()
        exact = (cls for cls in every if issubclass(cls, Exact) and cls.requires < Access.GRADIENTS)
        for cls in exact:
            if cls.serves(model):
                return cls(self.p)  # type: ignore[call-arg]  # every method takes p
        if self.steps <= Judge.quick().steps:
            return replace(DecisionBased.quick(self.p), seed=self.seed)
        most = DecisionBased.thorough if self.steps > Judge.default().steps else DecisionBased
        return replace(most(self.p), seed=self.seed)

    def _first(self) -> MinNorm:
        return MinNorm(self.p, 2 * self._rounds()[0].steps, seed=self.seed)

    def warm_start(self, cases: Cases, subsets: Tensor) -> Tensor | None:
        """Return the witness of the union of each case's subsets by ``MinNorm``; None if there is one subset."""
        return self._first().warm_start(cases, subsets)

    def search(self, rows: Rows, start: Tensor | None) -> Moves:
        search = Search(rows, self.norm, self.seed)
        self._first().improve(search, None)
        first_radius, draws = search.best_radius().clone(), 0
        for one in self._rounds():
            if start is not None:
                successive_projection(search, one.steps, None, start)
            lost = torch.isinf(search.best_radius())
            if bool(lost.any()):  # usually few rows, but one censored point distorts a curve more than all others
                successive_projection(search.part(lost), _LONGER * one.steps)
            one._project(search, draws)
            one._descend(search, draws + one._projected)
            one._cross(search, draws)
            ddn(search, 2 * one.steps, _STRIDE)
            if math.isinf(self.p):  # signs keep every coordinate at the radius; in the nearest witness some are inside
                ddn(search, 2 * one.steps, _STRIDE, direction=L2())
            ddn(search, one.steps, _STRIDE, direction=L2(), fine=_FINE)
            one._search_few(search, draws)
            tighten(search)
            draws += one.starts
        return search.moves()._replace(first_radius=first_radius)

    def _project(self, search: Search, draws: int) -> None:
        """Project towards each of the nearest classes from x, and towards the nearest class from random points."""
        aims = self._aims(search)
        if aims is None:
            return
        classes, radius, length = aims.shape[1] - 1, search.best_radius().clone(), search.reach()

        def run(part: Search, row: Tensor, leg: Tensor) -> None:
            aimed = leg < classes
            aim = aims[row, leg.clamp_max(classes)]
            useful = ~aimed | (aim != ANY)
            if not bool(useful.all()):
                part, row, leg, aim, aimed = part.part(useful), row[useful], leg[useful], aim[useful], aimed[useful]
            draw = (draws + leg - classes).clamp_min(0)
            begin = part.random_move_of_length(draw, length[row]).masked_fill(aimed[:, None], 0)
            successive_projection(part, self.steps, aim, begin, torch.where(aimed, 1.0, 0.5), draw)
            near = part.best_radius() < _NEAR * radius[row]
            if bool(near.any()):
                ddn(part.part(near), self.steps // 2)

        search.side_by_side(classes + self._projected, run)

    def _descend(self, search: Search, draws: int) -> None:
        """Descend by DDN from random points."""
        radius, length = search.best_radius().clone(), search.reach()

        def run(part: Search, row: Tensor, leg: Tensor) -> None:
            begin = part.sampled_move(draws + leg, length[row], self.steps)
            ddn(part, self.steps, _STRIDE, begin, torch.minimum(radius[row], part.best_radius()), L2())

        search.side_by_side(self.starts - self._projected, run)

    def _cross(self, search: Search, draws: int) -> None:
        """Find other basins: by witnesses in L1 for L2, in L2 for L1, and by new searches in Linf for Linf.

        Searches begin from points around the best witness. In another norm the first one begins from x.
        """
        best, another = search.best_delta(), {1.0: L2(), 2.0: L1()}.get(self.p)

        def run(part: Search, row: Tensor, leg: Tensor) -> None:
            other = Search(part.rows, another or part.norm, self.seed)
            length = other.norm.length(best[row])
            noise = other.random_move_of_length(_CROSS + draws + leg, _AROUND * length)
            around = clip(best[row] + noise, part.rows.low, part.rows.high)
            start = around if another is None else around.masked_fill((leg == 0)[:, None], 0)
            MinNorm(other.norm.p, self._longer, seed=self.seed).improve(other, start)
            if another is None:
                part.merge(other)
            else:
                successive_projection(part, self.steps, None, other.best_delta(), 0.5)

        search.side_by_side(self._turns, run)

    def _search_few(self, search: Search, draws: int) -> None:
        """Search rows with few free coordinates from many more points, then near the best witness of each."""
        some = search.few() & (search.best_radius() > 0)
        if not bool(some.any()):
            return
        few, draw, legs = search.part(some), _FEW_DRAWS + _SPACING * draws, 128 + 8 * self.starts
        many_starts(few, legs, min(60, self.steps), draw)
        refine(few, round(0.4 * self.steps), draw + legs)

    def _aims(self, search: Search) -> Tensor | None:
        """Return the classes with the largest logits at the best witness, then ``ANY``, ``[R, classes + 1]``.

        None if the model was never evaluated, because no row can move or every decision has changed already.
        """
        if search.logits is None:
            return None
        score = search.logits.scatter(1, search.rows.label[:, None], -math.inf)
        nearest = score.topk(min(self.classes, score.shape[1] - 1)).indices
        nearest = nearest.masked_fill(search.rows.target[:, None] != ANY, ANY)
        return torch.nn.functional.pad(nearest, (0, 1), value=ANY)
