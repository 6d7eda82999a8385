"""The verdict says what holds after Holm's correction, names losses, and counts with the right grammar."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import holdfast as hf
from holdfast.analyses import Significance, significance
from holdfast.experiment import Store, Unit, run
from holdfast.experiment.results import Results
from holdfast.report.findings import findings
from holdfast.report.tables import every_table
from holdfast.report.verdict import how_tested, verdict
from studies import toy_study

REST, RELEVANT, INSERTION, DELETION = "Robustness-S̄r", "Robustness-Sr", "Insertion", "Deletion"
NOISE = torch.tensor([-0.2, -0.1, 0.0, 0.1, 0.2])


def _results(gains: dict[str, dict[str, float]], examples: int = 20) -> Any:
    """Results in which the main method is better than others by these gains, in units of about eight deviations."""
    noise = NOISE.repeat(examples // len(NOISE))
    by = {
        name: {
            "ours": torch.zeros(len(noise)),
            **{who: noise.roll(place) - gain for place, (who, gain) in enumerate(of.items())},
        }
        for name, of in gains.items()
    }
    tested = significance(by, "ours", dict.fromkeys(gains, True))
    return _stub(tested, len(noise))


def _stub(tested: Significance | None, examples: int, methods: Sequence[str] = ("ours", "a", "b")) -> Any:
    measures = [
        SimpleNamespace(name=name, judge="Judge()" if name[0] == "R" else "")
        for name in (REST, RELEVANT, INSERTION, DELETION)
    ]
    return SimpleNamespace(
        main="ours",
        examples=list(range(examples)),
        compared=lambda *_: tested,
        measures=lambda *_: measures,
        methods=lambda *_: list(methods),
        analysis=lambda _: None,
    )


def test_no_difference_that_holds_is_one_plain_sentence() -> None:
    results = _results({REST: {"a": 0.0, "b": 0.0}, RELEVANT: {"a": 0.0, "b": 0.0}, INSERTION: {"a": 0.0, "b": 0.0}})
    assert verdict(results) == (
        "On 20 examples, after Holm's correction, no difference between ours and any of the 2 other methods can be "
        f"shown by {REST}, {RELEVANT} or {INSERTION}."
    )


def test_wins_draws_and_losses_of_each_criterion_are_named_robustness_first() -> None:
    results = _results(
        {
            INSERTION: {"a": -1.0, "b": 1.0},
            REST: {"a": 1.0, "b": 1.0},
            RELEVANT: {"a": 1.0, "b": 0.0},
            DELETION: {"a": -1.0, "b": -1.0},
        }
    )
    assert verdict(results) == (
        f"On 20 examples, after Holm's correction, ours is better than both other methods by {REST}; it is better than "
        f"1 of 2 other methods by {RELEVANT} (no difference from b can be shown). It is better than 1 of 2 other "
        f"methods and worse than a by {INSERTION}; it is worse than a and b by {DELETION}."
    )
    assert how_tested(results) == (
        "Paired t-tests at 95 %, with Holm's correction over 8 comparisons: 4 wins, 1 draw, 3 losses. "
        "Without the correction: 4 wins, 1 draw, 3 losses."
    )


def test_a_win_that_does_not_survive_the_correction_is_not_in_the_verdict() -> None:
    gains = {REST: {"a": 0.12, **{f"m{place}": 0.0 for place in range(7)}}}
    results = _results(gains, examples=10)
    assert "better" not in verdict(results)
    assert "Without the correction: 1 win, 7 draws." in how_tested(results)


def test_grammar_of_one() -> None:
    assert verdict(_stub(None, 1)) == "ours was measured on 1 example; there is nothing to compare it with."
    tested = significance({REST: {"ours": torch.ones(1), "a": torch.zeros(1)}}, "ours", {REST: True})
    assert verdict(_stub(tested, 1, ["ours", "a"])) == (
        "ours and 1 other method were measured on 1 example, which is too few to compare them."
    )
    assert how_tested(_stub(tested, 1)) == ""
    one = _results({REST: {"a": 1.0}})
    assert "ours is better than a by Robustness-S̄r." in verdict(one)
    assert "over 1 comparison: 1 win." in how_tested(one)


def test_a_verdict_on_made_up_curves_agrees_with_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    study = toy_study({"ours": hf.Grad(), "worse": hf.Random(1), "same": hf.Random(2), "better": hf.Random(3)}, cases=4)
    shift = {repr(hf.Grad()): 0.0, repr(hf.Random(1)): -1.0, repr(hf.Random(2)): 0.0, repr(hf.Random(3)): 1.0}
    with Store.open(path) as store:
        run(study, store)
    _replace_curves(path, shift)
    results = Results(path)
    told = verdict(results)
    assert told.startswith("On 4 examples, after Holm's correction, ours is better than 1 of 3 other methods and worse")
    assert "than better by rest and insertion (no difference from same can be shown)" in told
    assert how_tested(results).endswith("2 wins, 2 draws, 2 losses. So few examples can show only large differences.")
    assert findings(results) == [], "no probes, nothing to find"
    tables = {table.key: table for table in every_table(results)}
    assert tables["verdicts"].rows[0] == ("rest", "measured, after Holm", "win", "draw", "loss")
    assert [row[2] for row in tables["robustness"].rows] == [None, "win", "draw", "loss"]


def _replace_curves(path: Path, shift: dict[str, float]) -> None:
    """Put known values into the curves of a store, by the explainer that ranked."""
    store = Store.read(path)
    by_key = {unit.key: unit for unit in store.units()}
    study = store.study()
    store.close()
    path.unlink()
    generator = np.random.default_rng(0)
    noise = generator.random((2, 2)) * 1e-3
    with Store.open(path) as fresh:
        for unit in by_key.values():
            arrays = dict(unit.arrays)
            if unit.kind == "curve":
                name = by_key[unit.made_of["ranking"]].made_of["explainer"]
                values = 5 + shift[name] + noise * generator.random((2, 2)) * (shift[name] != 0)
                arrays = {"values": values, "ceiling": arrays["ceiling"]}
            fresh.put(Unit(unit.kind, unit.made_of, arrays))
        fresh.note_study(study)
