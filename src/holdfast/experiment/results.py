"""Results: the latest study in a store, read without the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from holdfast.analyses import Significance, significance
from holdfast.analyses.analysis import Analysis, Arrays, Cost
from holdfast.analyses.result import Result
from holdfast.curve import Curve
from holdfast.errors import HoldfastError
from holdfast.experiment.jobs import analysis_kind
from holdfast.experiment.packing import unpack_ranking
from holdfast.experiment.reading import explanations_of
from holdfast.experiment.record import MeasureRecord, Role, StudyRecord
from holdfast.experiment.store import Store, Unit
from holdfast.experiment.study import SIDES
from holdfast.explanation import Explanation
from holdfast.models.model import Queries
from holdfast.ranking import Ranking

Place = tuple[str, str, str, str]
"""Kind of a unit, method, side, and measure."""


class Results:
    """The latest study in a store. In a partial study, incomplete parts are left out and counted as ``missing``.

    Args:
        path: The file of results.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        with Store.read(path) as store:
            self.study = StudyRecord.parse(store.study(), path)
            wanted = {unit.key for unit in self.study.units}
            self.units: dict[str, Unit] = {unit.key: unit for unit in store.units() if unit.key in wanted}
        #: Why curves that were needed have no area, by method and criterion.
        self.refused: dict[str, str] = {}
        self._curves: dict[Place, Curve | None] = {}
        self._compared: dict[tuple[tuple[str, ...], tuple[str, ...]], Significance | None] = {}
        self._places: dict[Place, dict[int, str]] = defaultdict(dict)
        for unit in self.study.units:
            if unit.role.target < 0 and unit.key in self.units:
                self._places[_place(unit.kind, unit.role)][unit.role.block] = unit.key

    # ------------------------------------------------------------------ what there is

    @property
    def missing(self) -> int:
        """The number of units of the study that are not stored."""
        return len({unit.key for unit in self.study.units} - set(self.units))

    @property
    def main(self) -> str:
        """The method that the others are compared with."""
        return self.study.main

    @property
    def sizes(self) -> tuple[float, ...] | tuple[int, ...]:
        """The sizes of the relevant set."""
        return self.study.sizes

    @property
    def published(self) -> str | None:
        """The data set of the published values that tables show beside the measured ones."""
        return self.study.published

    @property
    def largest_block(self) -> int:
        """The most cases that were computed together."""
        return max(stop - start for start, stop in self.study.blocks)

    @property
    def marks(self) -> Mapping[str, Mapping[str, frozenset[int]]] | None:
        """Features that people marked, by example and annotator."""
        marks = self.study.marks.items()
        return {name: {who: frozenset(marked) for who, marked in by.items()} for name, by in marks} or None

    @cached_property
    def blocks(self) -> list[int]:
        """Numbers of the blocks that every stored curve covers. All tables use these blocks."""
        curves = [blocks for place, blocks in self._places.items() if place[0] == "curve"]
        if not curves:
            raise HoldfastError(f"{self.path} holds no curve yet: let the run go on before you ask for a report.")
        return [number for number in range(len(self.study.blocks)) if all(number in blocks for blocks in curves)]

    @cached_property
    def examples(self) -> list[int]:
        """Indices, in the study, of the examples in ``blocks``."""
        return [example for number in self.blocks for example in range(*self.study.blocks[number])]

    @property
    def example_names(self) -> list[str]:
        """Names of ``examples``."""
        return [self.study.examples[example] for example in self.examples]

    def methods(self, *groups: str) -> list[str]:
        """Return the names of the computed methods of these groups; without groups, of all."""
        computed = {place[1] for place in self._places}
        return [m.name for m in self.study.methods if (not groups or m.group in groups) and m.name in computed]

    def measures(self, *groups: str) -> list[MeasureRecord]:
        """Return the criteria of these groups; without groups, all."""
        return [measure for measure in self.study.measures if not groups or measure.group in groups]

    def sides(self, method: str) -> list[str]:
        """Return the sides of a method's rankings: ``["both"]``, or ``["rest", "relevant"]`` if it has two."""
        explainers = next(m.explainers for m in self.study.methods if m.name == method)
        return [side for side in ("both", *SIDES) if side in explainers]

    def own_side(self, method: str, side: str) -> str:
        """Return ``side`` if the method has a ranking for it, otherwise the side of its only ranking."""
        sides = self.sides(method)
        return side if side in sides else sides[0]

    # ------------------------------------------------------------------ curves

    def curve(self, method: str, measure: MeasureRecord, side: str | None = None) -> Curve | None:
        """Return the curve of one ranking over ``examples``, with values ``[B, P]``; None if it is not stored.

        Args:
            method: The name of the method.
            measure: The criterion.
            side: Which ranking of the method: "both", "rest" or "relevant"; None: the one for the criterion.
        """
        place = ("curve", method, side or self.own_side(method, measure.side), measure.name)
        if place not in self._curves:
            blocks = self._places.get(place)
            self._curves[place] = self._joined(blocks, self.blocks, measure) if blocks and self.blocks else None
        return self._curves[place]

    def whole_curve(self, method: str, measure: MeasureRecord, side: str) -> tuple[list[int], Curve] | None:
        """Return the indices of all examples that one ranking has a curve for, and the curve; None without any."""
        blocks = self._places.get(("curve", method, side, measure.name))
        if not blocks:
            return None
        numbers = sorted(blocks)
        examples = [example for number in numbers for example in range(*self.study.blocks[number])]
        return examples, self._joined(blocks, numbers, measure)

    def _joined(self, blocks: Mapping[int, str], numbers: Sequence[int], measure: MeasureRecord) -> Curve:
        arrays = [self.units[blocks[number]].arrays for number in numbers]
        values, ceiling = (
            torch.from_numpy(np.concatenate([of[name] for of in arrays])) for name in ("values", "ceiling")
        )
        return Curve(torch.tensor(self.sizes), values, ceiling, measure.criterion, "")

    def area(self, method: str, measure: MeasureRecord, side: str | None = None) -> Tensor | None:
        """Return the area of each example ``[B]``, as ``curve`` does; None without one, with why in ``refused``."""
        curve = self.curve(method, measure, side)
        if curve is None:
            return None
        try:
            return curve.auc()
        except HoldfastError as error:
            self.refused[f"{method}, {measure.name}"] = str(error)
            return None

    def areas(self, *groups: str, measures: Sequence[str] = ("table",)) -> dict[str, dict[str, Tensor]]:
        """Return areas ``[B]`` by criterion, then by method, of the ranking that optimises the criterion."""
        by_measure: dict[str, dict[str, Tensor]] = {}
        for measure in self.measures(*measures):
            areas = {name: self.area(name, measure) for name in self.methods(*groups)}
            by_measure[measure.name] = {name: area for name, area in areas.items() if area is not None}
        return {name: areas for name, areas in by_measure.items() if areas}

    def compared(self, *groups: str, measures: Sequence[str] = ("table",)) -> Significance | None:
        """Compare the main method with the others by paired tests; None if there is nothing to compare."""
        key = (groups, tuple(measures))
        if key not in self._compared:
            self._compared[key] = self._compare(groups, measures)
        return self._compared[key]

    def _compare(self, groups: tuple[str, ...], measures: Sequence[str]) -> Significance | None:
        areas = {name: by for name, by in self.areas(*groups, measures=measures).items() if self.main in by}
        if not any(len(by) > 1 for by in areas.values()):
            return None
        return significance(areas, self.main, {measure.name: measure.higher for measure in self.measures()})

    # ------------------------------------------------------------------ analyses

    @cached_property
    def analyses(self) -> dict[type[Analysis], Result]:
        """Results of all analyses that were computed, or that need no computation."""
        results: dict[type[Analysis], Result] = {}
        for name, cls in Analysis.registry.classes().items():
            if cls.automatic or name in self.study.settings:
                result = cls.read(self)
                if result is not None:
                    results[cls] = result
        return results

    def analysis(self, cls: type[Analysis]) -> Result | None:
        """Return the result of one analysis; None if there is none."""
        return self.analyses.get(cls)

    def arrays(self, analysis: str, side: str = "rest") -> dict[str, list[Arrays]]:
        """Return the stored arrays of an analysis by method, one item for each block that all methods have.

        Args:
            analysis: The name of the analysis.
            side: Which ranking to use of methods that have two.
        """
        kind = analysis_kind(analysis)
        places = {method: (kind, method, self.own_side(method, side), analysis) for method in self.methods()}
        blocks = {method: self._places[place] for method, place in places.items() if place in self._places}
        shared = sorted(set.intersection(*(set(of) for of in blocks.values()))) if blocks else []
        return {m: [dict(self.units[of[n]].arrays) for n in shared] for m, of in blocks.items()} if shared else {}

    def settings_of(self, analysis: str) -> str:
        """Return the settings of an analysis, as text; empty if it has none."""
        return self.study.settings.get(analysis, "")

    def notes_of(self, kind: str) -> list[str]:
        """Return the notes of the units of an analysis, without repetition."""
        notes = [n for unit in self.units.values() if unit.kind == analysis_kind(kind) for n in unit.notes]
        return list(dict.fromkeys(notes))

    def variant_areas(self, analysis: str, *groups: str) -> tuple[list[str], dict[str, Tensor]]:
        """Return the variants of an analysis, and by method, if complete, areas ``[variants, measures, B]``."""
        extra = [measure for measure in self.measures("extra") if measure.analysis == analysis]
        names = list(dict.fromkeys(measure.variant for measure in extra))
        pairs = [sorted((m for m in extra if m.variant == name), key=lambda m: not m.higher) for name in names]
        areas: dict[str, Tensor] = {}
        for method in self.methods(*groups):
            values = [self.area(method, measure) for pair in pairs for measure in pair]
            known = [value for value in values if value is not None]
            if known and len(known) == len(values):
                areas[method] = torch.stack(known).unflatten(0, (len(names), -1))
        return names, areas

    def rankings(self, *groups: str) -> dict[str, Ranking]:
        """Return the ranking of ``examples`` by method; of two rankings, the one for Robustness-S̄r."""
        rankings: dict[str, Ranking] = {}
        for method in self.methods(*groups):
            blocks = self._places.get(("ranking", method, self.sides(method)[0], ""), {})
            if self.blocks and set(self.blocks) <= set(blocks):
                rankings[method] = Ranking.joined([unpack_ranking(self.units[blocks[n]]) for n in self.blocks])
        return rankings

    def costs(self) -> dict[str, Cost]:
        """Return the cost of each method's ranking; of two rankings, of the one for Robustness-S̄r."""
        costs: dict[str, Cost] = {}
        for method in self.methods():
            blocks = self._places.get(("ranking", method, self.sides(method)[0], ""), {})
            units = [self.units[blocks[number]] for number in self.blocks if number in blocks]
            if units:
                rows = Queries(sum(u.forward for u in units), sum(u.gradient for u in units))
                costs[method] = Cost(sum(unit.seconds for unit in units), rows)
        return costs

    @cached_property
    def machines(self) -> list[str]:
        """The machines that computed the units."""
        return sorted({unit.machine for unit in self.units.values()})

    @cached_property
    def notes(self) -> dict[str, int]:
        """The notes of all units, and how often each occurs."""
        counts: dict[str, int] = defaultdict(int)
        for unit in self.units.values():
            for note in unit.notes:
                counts[f"{unit.kind}: {note}"] += 1
        return dict(counts)

    def spent(self) -> dict[str, tuple[int, float, int]]:
        """Return units, seconds and model rows by kind of work and its method or criterion."""
        total: dict[str, tuple[int, float, int]] = {}
        for key, record in {unit.key: unit for unit in reversed(self.study.units)}.items():
            unit = self.units.get(key)
            if unit is not None:
                subject = record.role.measure if unit.kind == "curve" else record.role.method
                name = f"{unit.kind} {subject}".strip()
                count, seconds, rows = total.get(name, (0, 0.0, 0))
                total[name] = count + 1, seconds + unit.seconds, rows + unit.forward
        return total

    # ------------------------------------------------------------------ explanations

    def explanations(self) -> dict[int, dict[str, Explanation]]:
        """Return the explanations of the gallery by example, then by method."""
        by_example: dict[int, dict[str, Explanation]] = defaultdict(dict)
        words = self._replacements()
        for number, (start, _) in enumerate(self.study.blocks):
            inputs = self._unit(("inputs", "", "", ""), number)
            for method in self.methods():
                unit = self._unit(("explanation", method, self.sides(method)[0], ""), number)
                if inputs is not None and unit is not None:
                    for row, one in enumerate(explanations_of(self.study, inputs, unit, method, start)):
                        new = words.get((one.key, start + row))
                        by_example[start + row][method] = replace(one, replacements=new) if new else one
        return dict(by_example)

    def targeted(self) -> dict[int, list[Explanation]]:
        """Return, by example, why it is not of each other likely class, most likely first."""
        by_example: dict[int, list[Explanation]] = defaultdict(list)
        for record in sorted(self.study.units, key=lambda unit: unit.role.target):
            unit = self.units.get(record.key)
            if record.role.target >= 0 and unit is not None:
                for example, one in enumerate(explanations_of(self.study, unit, unit, record.role.method, 0)):
                    by_example[example].append(one)
        return dict(by_example)

    def _replacements(self) -> dict[tuple[str, int], dict[int, str]]:
        """Return the real words that replace others, by the key of a ranking and example, then by feature."""
        words: dict[tuple[str, int], dict[int, str]] = {}
        kinds = {analysis_kind(name): cls for name, cls in Analysis.registry.classes().items() if cls.uses_words}
        for (kind, *_), blocks in self._places.items():
            for number, key in blocks.items() if kind in kinds else ():
                unit, start = self.units[key], self.study.blocks[number][0]
                by_case = kinds[kind].replacements(unit.arrays, self.study.vocabulary)
                words |= {(str(unit.made_of["ranking"]), start + row): new for row, new in enumerate(by_case)}
        return words

    def _unit(self, place: Place, number: int) -> Unit | None:
        key = self._places.get(place, {}).get(number)
        return None if key is None else self.units[key]


def _place(kind: str, role: Role) -> Place:
    return kind, role.method, role.side, role.measure
