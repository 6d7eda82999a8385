"""What a store holds of its latest study: curves, rankings and analyses, read without the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from holdfast.analyses import (
    Agreement,
    Diagnostics,
    Marks,
    ReferenceValues,
    Runtime,
    Sanity,
    Sensitivity,
    Significance,
    agreement,
    significance,
)
from holdfast.curve import Curve
from holdfast.errors import HoldfastError
from holdfast.experiment.store import Store, Unit, ranking_of
from holdfast.experiment.study import SIDES
from holdfast.models.model import Queries
from holdfast.ranking import Ranking
from holdfast.text import by_word

Found = TypeVar("Found")
_SUBSTITUTED = ("radius", "changed", "rounded", "by_chance")  # the last is not in stores of version 3


@dataclass(frozen=True)
class Picture:
    """One explanation of one example: its top features, and the smallest changes when only they move, or all others.

    ``x [*shape]``; ``relevant`` (bool) and ``heat`` (1 for the first feature, 0 for the last) broadcast to it. ``moves
    [2, *shape]`` if they were kept, ``radius`` and ``turned`` of both, ``target`` the class it was asked not to be, -1
    for none. ``before`` is the probability of the label, ``after`` those of the classes it turned into. ``chosen`` are
    the numbers of the top features, most relevant first where their order is known; ``ranking`` is its key.
    """

    example: int
    label: int
    target: int
    x: np.ndarray
    relevant: np.ndarray
    heat: np.ndarray
    moves: np.ndarray | None
    radius: tuple[float, float]
    turned: tuple[int, int]
    before: float
    after: tuple[float, float] | None
    chosen: tuple[int, ...]
    ranking: str


class Results:
    """The latest study in a store. Partial results are read too: what lacks some method is left out, and counted."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        with Store.read(path) as store:
            self.study: dict[str, Any] = store.study()
            wanted = {unit["key"] for unit in self.study["units"]}
            self.units: dict[str, Unit] = {unit.key: unit for unit in store.units() if unit.key in wanted}
        self._kept: dict[tuple[Any, ...], Any] = {}
        #: Curves without an area, as far as anybody asked, and why.
        self.refused: dict[str, str] = {}
        self._places: dict[tuple[Any, ...], dict[int, str]] = defaultdict(dict)
        for unit in self.study["units"]:
            if "target" not in unit and unit["key"] in self.units:
                self._places[_place(unit)][unit["block"]] = unit["key"]

    # ------------------------------------------------------------------ what there is

    @property
    def missing(self) -> int:
        """How many units of the study are not there."""
        return len({unit["key"] for unit in self.study["units"]} - set(self.units))

    @property
    def main(self) -> str:
        """The method that the others are compared with."""
        name: str = self.study["main"]
        return name

    @cached_property
    def blocks(self) -> list[int]:
        """Blocks in which no method lacks a curve that it has elsewhere: what all tables are about."""
        curves = [held for place, held in self._places.items() if place[0] == "curve"]
        if not curves:
            raise HoldfastError(f"{self.path} holds no curve yet: let the run go on before you ask for a report.")
        return [number for number in range(len(self.study["blocks"])) if all(number in held for held in curves)]

    @cached_property
    def examples(self) -> list[int]:
        """The examples in those blocks, as places in the study."""
        spans = self.study["blocks"]
        return [example for number in self.blocks for example in range(*spans[number])]

    def methods(self, *groups: str) -> list[str]:
        """Names of the methods that were computed, of some groups or of all."""
        return [
            method["name"]
            for method in self.study["methods"]
            if (not groups or method["group"] in groups) and any(place[1] == method["name"] for place in self._places)
        ]

    def measures(self, *groups: str) -> list[dict[str, Any]]:
        """The criteria of some groups, or all."""
        return [m for m in self.study["measures"] if not groups or m["group"] in groups]

    def sides(self, method: str) -> list[str]:
        """What the rankings of a method were made for: "both", or "rest" and "relevant"."""
        found = next(m for m in self.study["methods"] if m["name"] == method)
        return [side for side in ("both", *SIDES) if side in found["explainers"]]

    def own_side(self, method: str, measure: dict[str, Any]) -> str:
        """Which of a method's rankings a criterion is meant for."""
        sides = self.sides(method)
        return measure["side"] if measure["side"] in sides else sides[0]

    # ------------------------------------------------------------------ curves

    def curve(self, method: str, measure: dict[str, Any], side: str | None = None) -> Curve | None:
        """The curve of a method's own ranking, or of one side's, over the examples of all tables."""
        place = ("curve", method, side or self.own_side(method, measure), measure["name"])
        return self._once(place, lambda: self._curve(place, measure["criterion"]))

    def _curve(self, place: tuple[Any, ...], criterion: str) -> Curve | None:
        held = self._places.get(place)
        return self._joined_curve(held, self.blocks, criterion, place[1]) if held and self.blocks else None

    def whole_curve(self, method: str, measure: dict[str, Any], side: str) -> tuple[list[int], Curve] | None:
        """The curve of one ranking over all examples it has, and which they are."""
        held = self._places.get(("curve", method, side, measure["name"]))
        if not held:
            return None
        numbers = sorted(held)
        examples = [example for number in numbers for example in range(*self.study["blocks"][number])]
        return examples, self._joined_curve(held, numbers, measure["criterion"], method)

    def _joined_curve(self, held: Mapping[int, str], numbers: Sequence[int], criterion: str, method: str) -> Curve:
        units = [self.units[held[number]] for number in numbers]
        values, ceiling = (_joined(units, name) for name in ("values", "ceiling"))
        return Curve(torch.tensor(self.study["sizes"]), values, ceiling, criterion, method)

    def _once(self, what: tuple[Any, ...], find: Callable[[], Found]) -> Found:
        """What was found before, or is found now: tables ask for the same thing often."""
        if what not in self._kept:
            self._kept[what] = find()
        found: Found = self._kept[what]
        return found

    def areas(self, *groups: str, measures: Sequence[str] = ("table",)) -> dict[str, dict[str, Tensor]]:
        """``areas[criterion][method]`` is ``[B]``: each method by the ranking that is meant for the criterion."""
        found: dict[str, dict[str, Tensor]] = {}
        for measure in self.measures(*measures):
            areas = {name: self.area(name, measure) for name in self.methods(*groups)}
            found[measure["name"]] = {name: area for name, area in areas.items() if area is not None}
        return {name: by for name, by in found.items() if by}

    def area(self, method: str, measure: dict[str, Any], side: str | None = None) -> Tensor | None:
        """The area of every example ``[B]``; None where there is no curve, or no area under it, as ``refused`` says."""
        curve = self.curve(method, measure, side)
        if curve is None:
            return None
        try:
            return curve.auc()
        except HoldfastError as error:
            self.refused[f"{method}, {measure['name']}"] = str(error)
            return None

    def compared(self, *groups: str, measures: Sequence[str] = ("table",)) -> Significance | None:
        """The main method against the others; None where there is nothing to compare."""
        return self._once(("compared", groups, tuple(measures)), lambda: self._compare(groups, measures))

    def _compare(self, groups: tuple[str, ...], measures: Sequence[str]) -> Significance | None:
        areas = {name: by for name, by in self.areas(*groups, measures=measures).items() if self.main in by}
        if not any(len(by) > 1 for by in areas.values()):
            return None
        higher = {measure["name"]: measure["higher"] for measure in self.measures()}
        return significance(areas, self.main, higher)

    # ------------------------------------------------------------------ analyses

    @cached_property
    def references(self) -> ReferenceValues | None:
        """Insertion and Deletion under several references, of the methods of the tables."""
        names = list(dict.fromkeys(m["reference"] for m in self.measures("reference")))
        pairs = [[m for m in self.measures("reference") if m["reference"] == name] for name in names]
        areas: dict[str, Tensor] = {}
        for method in self.methods("table"):
            found = [self.area(method, measure) for pair in pairs for measure in pair]
            whole = [area for area in found if area is not None]
            if whole and len(whole) == len(found):  # a method that meets only some of them is left out
                areas[method] = torch.stack(whole).view(len(names), 2, -1)
        if not areas:
            return None
        draws = int(self.measures("reference")[0]["draws"])
        return ReferenceValues(tuple(areas), tuple(names), torch.stack(list(areas.values())), draws)

    @cached_property
    def sanity(self) -> Sanity | None:
        """Rank correlations after layers forgot what they learnt; of the S̄r ranking where a method has two."""
        found = self._by_method("sanity", lambda units: _joined(units, "correlation", 1))
        if not found:
            return None
        count = next(iter(found.values())).shape[0]
        stages = tuple("the last layer" if n == 0 else f"the last {n + 1} layers" for n in range(count))
        notes = [note for unit in self.units.values() if unit.kind == "sanity" for note in unit.notes]
        return Sanity(tuple(found), stages, torch.stack(list(found.values())), tuple(dict.fromkeys(notes)))

    @cached_property
    def sensitivity(self) -> Sensitivity | None:
        """How much of each explanation survives a small change; of the S̄r ranking where a method has two."""
        found = self._by_method("sensitivity", lambda units: _joined(units, "values"))
        if not found:
            return None
        made_of = next(unit.made_of for unit in self.units.values() if unit.kind == "sensitivity")
        settings = (made_of["radius"], made_of["samples"], made_of["top"])
        return Sensitivity(tuple(found), torch.stack(list(found.values())), *settings)

    @cached_property
    def diagnostics(self) -> Diagnostics | None:
        """How far the radii of the main method's top features can be trusted."""
        for place, held in self._places.items():
            if place[0] == "diagnostics":
                units = [self.units[held[number]] for number in sorted(held)]
                judged, alone, moving = (_joined(units, name) for name in ("judged", "alone", "moving"))
                sizes = tuple(self.study["sizes"])
                judge = str(units[0].made_of["judge"])
                return Diagnostics(sizes, judged, _joined(units, "searched", 1), alone, moving, judge, "one search")
        return None

    @cached_property
    def agreement(self) -> Agreement | None:
        """Do the rankings name what people marked? Those for Robustness-S̄r where a method has two; probes come last."""
        if not self.study.get("marks"):
            return None
        methods = [*self.methods("table"), *self.methods("probe")]
        held = {name: self._places.get(("ranking", name, self.sides(name)[0], None), {}) for name in methods}
        rankings = {
            name: [ranking_of(self.units[places[number]]) for number in self.blocks]
            for name, places in held.items()
            if set(self.blocks) <= set(places)
        }
        if not rankings or not self.blocks:
            return None
        marks = Marks(
            {name: {who: frozenset(marked) for who, marked in by.items()} for name, by in self.study["marks"].items()}
        )
        names = [self.study["examples"][example] for example in self.examples]
        return agreement({name: Ranking.joined(parts) for name, parts in rankings.items()}, names, marks)

    @cached_property
    def compared_by_people(self) -> Significance | None:
        """The main method against the others by what people marked; None where nobody did."""
        found = self.agreement
        if found is None or self.main not in found.methods or len(found.methods) < 2:
            return None
        by = {f"p@{found.precision.shape[1]}": found.precision[:, -1], "mAP": found.average_precision}
        values = {criterion: dict(zip(found.methods, held, strict=True)) for criterion, held in by.items()}
        return significance(values, self.main, dict.fromkeys(by, True))

    def substitutions(self) -> dict[str, dict[str, Tensor]]:
        """By method: radii of its top words, and whether real words, rounding to them, or random ones turn it too."""
        found = {}
        for method in self.methods("table", "ablation"):
            sides = self.sides(method)
            held = self._places.get(("substitution", method, "relevant" if "relevant" in sides else "both", None), {})
            units = [self.units[held[number]] for number in self.blocks if number in held]
            if units and len(units) == len(self.blocks):
                kept = [name for name in _SUBSTITUTED if all(name in unit.arrays for unit in units)]
                found[method] = {name: _joined(units, name) for name in kept}
        return found

    def new_words(self) -> dict[tuple[str, int], dict[int, str]]:
        """By the key of a ranking and an example: the real words that take the place of words, by their number."""
        found: dict[tuple[str, int], dict[int, str]] = {}
        for place, held in self._places.items():
            if place[0] != "substitution":
                continue
            for number, key in held.items():
                unit, start = self.units[key], self.study["blocks"][number][0]
                both = zip(unit.arrays["rows"].tolist(), unit.arrays["owner"].tolist(), strict=True)
                for example, (rows, owner) in enumerate(both, start):
                    into = by_word(rows, owner, self.study["vocabulary"])
                    found[str(unit.made_of["ranking"]), example] = into
        return found

    @cached_property
    def runtime(self) -> Runtime | None:
        """What the rankings cost; that for Robustness-S̄r where a method has two."""
        seconds: dict[str, tuple[float, ...]] = {}
        queries: dict[str, Queries] = {}
        for method in self.methods():
            side = self.sides(method)[0]
            held = self._places.get(("ranking", method, side, None), {})
            units = [self.units[held[number]] for number in self.blocks if number in held]
            if units:
                seconds[method] = (sum(unit.seconds for unit in units),)
                queries[method] = Queries(sum(u.forward for u in units), sum(u.gradient for u in units))
        return Runtime(seconds, queries, len(self.examples), "; ".join(self.machines)) if seconds else None

    @cached_property
    def machines(self) -> list[str]:
        """Where the units were made."""
        return sorted({unit.machine for unit in self.units.values()})

    @cached_property
    def notes(self) -> dict[str, int]:
        """What was said while units were made, and how often."""
        said: dict[str, int] = defaultdict(int)
        for unit in self.units.values():
            for note in unit.notes:
                said[f"{unit.kind}: {note}"] += 1
        return dict(said)

    def spent(self) -> dict[str, tuple[int, float, int]]:
        """Units, seconds and model rows of each kind of work and method or criterion."""
        total: dict[str, tuple[int, float, int]] = {}
        counted: set[str] = set()
        for role in self.study["units"]:
            unit = self.units.get(role["key"])
            if unit is None or unit.key in counted:
                continue
            counted.add(unit.key)
            what = role.get("criterion") if unit.kind == "curve" else role.get("method")
            name = f"{unit.kind} {what}" if what else unit.kind
            before = total.get(name, (0, 0.0, 0))
            total[name] = before[0] + 1, before[1] + unit.seconds, before[2] + unit.forward
        return total

    def _by_method(self, kind: str, read: Callable[[list[Unit]], Tensor]) -> dict[str, Tensor]:
        """An analysis by method, of its first side, over the blocks that all of them have."""
        held = {
            method: self._places[kind, method, self.sides(method)[0], None]
            for method in self.methods()
            if (kind, method, self.sides(method)[0], None) in self._places
        }
        numbers = sorted(set.intersection(*(set(blocks) for blocks in held.values()))) if held else []
        if not numbers:
            return {}
        return {method: read([self.units[blocks[number]] for number in numbers]) for method, blocks in held.items()}

    # ------------------------------------------------------------------ pictures

    def pictures(self) -> dict[int, dict[str, Picture]]:
        """By example and method: what the tables compare, and the variants."""
        found: dict[int, dict[str, Picture]] = defaultdict(dict)
        for number, (start, _) in enumerate(self.study["blocks"]):
            inputs = self._unit(("inputs", None, None, None), number)
            for method in self.methods():
                change = self._unit(("change", method, self.sides(method)[0], None), number)
                if inputs is not None and change is not None:
                    ranking = self.units.get(change.made_of["ranking"])
                    for place, picture in enumerate(_pictures(inputs, change, ranking, start)):
                        found[start + place][method] = picture
        return dict(found)

    def targeted(self) -> dict[int, list[Picture]]:
        """By example: why not the next likely class, the one after it, …"""
        asked: dict[int, dict[str, Unit]] = defaultdict(dict)
        for role in self.study["units"]:
            if "target" in role and role["key"] in self.units:
                asked[role["target"]][role["kind"]] = self.units[role["key"]]
        found: dict[int, list[Picture]] = defaultdict(list)
        for _, units in sorted(asked.items()):
            if {"inputs", "change"} <= set(units):
                for picture in _pictures(units["inputs"], units["change"], units.get("ranking"), 0):
                    found[picture.example].append(picture)
        return dict(found)

    def _unit(self, place: tuple[Any, ...], number: int) -> Unit | None:
        key = self._places.get(place, {}).get(number)
        return None if key is None else self.units[key]


def _place(role: dict[str, Any]) -> tuple[Any, ...]:
    return role["kind"], role.get("method"), role.get("side"), role.get("criterion")


def _joined(units: Sequence[Unit], name: str, axis: int = 0) -> Tensor:
    """An array of all units, block after block."""
    return torch.from_numpy(np.concatenate([unit.arrays[name] for unit in units], axis))


def _pictures(inputs: Unit, change: Unit, ranking: Unit | None, start: int) -> list[Picture]:
    held = change.arrays
    x, ids = inputs.arrays["x"], inputs.arrays["ids"]
    share = torch.from_numpy(inputs.arrays["logits"]).softmax(1).numpy()
    found = []
    for place in range(min(len(x), len(held["relevant"]))):
        chosen = np.append(held["relevant"][place], False)  # the last stands for coordinates that are no feature
        heat = chosen.astype(np.float32)
        if ranking is not None:
            order, count = ranking.arrays["order"][place], int(ranking.arrays["count"][place])
            heat[order[:count]] = np.linspace(1, 0, count, dtype=np.float32)
        top = [int(feature) for feature in held["relevant"][place].nonzero()[0]]
        if ranking is not None:
            top = [int(feature) for feature in ranking.arrays["order"][place][: len(top)]]
        moves = None
        if "moves" in held:
            moves = held["moves"][place].astype(np.float64) / 32767 * held["largest"][place][:, None]
        label = int(inputs.arrays["label"][place])
        found.append(
            Picture(
                start + place,
                label,
                int(inputs.arrays["target"][place]),
                x[place],
                chosen[ids[place]],
                heat[ids[place]],
                None if moves is None else moves.reshape(2, *x.shape[1:]),
                _both(held["radius"][place], float),
                _both(held["turned"][place], int),
                float(share[place, label]),
                _both(held["after"][place], float) if "after" in held else None,
                tuple(top),
                str(change.made_of["ranking"]),
            )
        )
    return found


def _both(pair: np.ndarray, kind: Callable[[Any], Found]) -> tuple[Found, Found]:
    return kind(pair[0]), kind(pair[1])
