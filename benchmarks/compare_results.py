"""Compare two files of results bit by bit: every array of every unit that both hold.

    python benchmarks/compare_results.py before.db after.db

Units are matched by what they are for (kind, method, side, criterion or analysis, block), not by their keys, so that a
change of names or settings does not hide a change of numbers. Results of version 4 and later are read. The exit code
is 1 if a value differs or a unit has no counterpart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.experiment.store import Store

# What version 4 called kinds of units and arrays.
_KINDS = {"change": "explanation"} | {
    name: f"{name} analysis" for name in ("sanity", "sensitivity", "diagnostics", "substitution")
}
_NAMES = {"turned": "new_class", "after": "new_probability", "empty": "uninformative", "doubt": "uncertain"}
Arrays = Mapping[str, np.ndarray]
Role = tuple[Any, ...]


def roles_of(path: Path) -> tuple[dict[Role, Arrays], int]:
    """Return the arrays of every unit by what it is for, and the version of results."""
    found: dict[Role, Arrays] = {}
    with Store.read(path) as store:
        study = store.study()
        units = {unit.key: unit for unit in store.units()}
        for entry in study["units"]:
            role = entry.get("role", entry)
            kind = _KINDS.get(entry["kind"], entry["kind"])
            measure = (
                role.get("measure")
                or role.get("criterion")
                or (kind.removesuffix(" analysis") if "analysis" in kind else "")
            )
            target = role.get("target", -1)
            place = (
                kind,
                role.get("method", "") or "",
                role.get("side", "") or "",
                measure,
                role.get("block", -1),
                target,
            )
            if entry["key"] in units:
                arrays = {_NAMES.get(name, name): array for name, array in units[entry["key"]].arrays.items()}
                if target >= 0:  # one unit now, three in version 4
                    place = ("targeted explanation", "", "", "", -1, target)
                    arrays = {**found.get(place, {}), **arrays}
                found[place] = arrays
    return found, int(study["results"])


def compare(before: Mapping[Role, Arrays], after: Mapping[Role, Arrays]) -> tuple[int, list[str]]:
    """Return how many values are equal, and a line for each array that differs or unit that is missing."""
    equal, lines = 0, []
    for place in sorted(set(before) | set(after), key=str):
        if place not in before or place not in after:
            lines.append(f"only {'before' if place in before else 'after'}: {place}")
            continue
        for name in sorted(set(before[place]) & set(after[place])):
            old, new = before[place][name], after[place][name]
            if name == "order" and old.shape != new.shape:
                continue  # with and without padding
            if name == "new_probability":  # before version 5, a number where no class was reached
                reached = before[place]["new_class"] >= 0
                old, new = old[reached], new[reached]
            same = old.shape == new.shape and np.array_equal(
                old.astype(np.float64), new.astype(np.float64), equal_nan=True
            )
            equal += old.size if same else 0
            lines += [] if same else [f"differs: {place} {name}"]
    return equal, lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    options = parser.parse_args()
    (before, first), (after, second) = roles_of(options.before), roles_of(options.after)
    equal, lines = compare(before, after)
    print(f"results {first} and {second}: {len(before)} and {len(after)} units, {equal:,} values are equal")
    for line in lines:
        print(line)
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
