"""What probes say about a criterion that the main method loses, on areas that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import holdfast as hf
from holdfast.experiment import Measure, Method, Store, run
from holdfast.experiment.results import Results
from holdfast.report.findings import findings
from holdfast.report.page import as_markdown
from holdfast.report.tables import every_table
from holdfast.report.verdict import verdict
from studies import toy_study

NOISE = torch.tensor([-0.02, -0.01, 0.01, 0.02])


class Known(Results):
    """Results with areas that a test sets: a mean, by criterion and method."""

    means: dict[str, dict[str, float]]

    def areas(self, *groups: str, measures: Sequence[str] = ("table",)) -> dict[str, dict[str, Tensor]]:
        methods, names = self.methods(*groups), [measure.name for measure in self.measures(*measures)]
        return {
            name: {who: mean + NOISE.roll(place) for place, (who, mean) in enumerate(by.items()) if who in methods}
            for name, by in self.means.items()
            if name in names
        }


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = toy_study({"Ours": hf.Grad(), "Rival": hf.Random(1), "Weak": hf.Random(2)})
    probes = (
        Method("Rival, unsigned", {"both": hf.Random(3)}, "probe", "is it the sign?", "Rival"),
        Method("Ours, longer", {"both": hf.Random(4)}, "probe", "is it the budget?", "Ours"),
        Method("Weak, other", {"both": hf.Random(5)}, "probe", "does it matter?", "Weak"),
    )
    measures = (
        Measure("Insertion", hf.Insertion(0.5)),
        Measure("Margins", hf.Insertion(0.5, "margin"), "probe", "is it the margin?"),
    )
    file = tmp_path_factory.mktemp("findings") / "results.db"
    with Store.open(file) as store:
        assert run(replace(base, methods=(*base.methods, *probes), measures=measures), store).missing == 0
    return file


def _known(path: Path, insertion: dict[str, float], margins: dict[str, float]) -> Known:
    results = Known(path)
    results.means = {"Insertion": insertion, "Margins": margins}
    return results


def test_every_probe_of_a_lost_criterion_is_answered(path: Path) -> None:
    areas = {"Ours": 2.0, "Rival": 4.0, "Weak": 1.0, "Rival, unsigned": 1.5, "Ours, longer": 5.0, "Weak, other": 9.0}
    results = _known(path, areas, {"Ours": 3.0, "Rival": 2.0, "Weak": 1.0})
    assert verdict(results) == (
        "On 4 examples, after Holm's correction, Ours is better than 1 of 2 other methods and worse than Rival by "
        "Insertion."
    )
    expected = [
        "By Insertion Ours has 2.00 and loses to Rival 4.00.",
        "Is it the sign? Yes: without that Ours wins (Rival, unsigned: 1.50).",
        "Is it the budget? Yes: it is then ahead of them (Ours, longer: 5.00).",
        "Is it the margin? Yes: by Margins Ours wins (Ours 3.00 and Rival 2.00).",
    ]
    sentences = findings(results)
    assert sentences == expected, "the probe of a method that did not win says nothing"
    text = as_markdown(results, every_table(results))
    assert "## Why methods win or lose" in text
    assert sentences[1] in text


def test_answers_are_no_stronger_than_the_numbers(path: Path) -> None:
    areas = {"Ours": 2.0, "Rival": 4.0, "Weak": 3.0, "Rival, unsigned": 3.5, "Ours, longer": 3.5}
    sentences = findings(_known(path, areas, {"Ours": 1.0, "Rival": 2.0, "Weak": 3.0}))
    assert [sentence.partition(" (")[0] for sentence in sentences] == [
        "By Insertion Ours has 2.00 and loses to Rival 4.00 and Weak 3.00.",
        "Is it the sign? Not that alone: without that Ours still loses",
        "Is it the budget? In part: it is better and is ahead of Weak, but behind Rival",
        "Is it the margin? Not that alone: by Margins Ours still loses",
        "Is it the margin? Not that alone: by Margins Ours still loses",
    ]


def test_a_criterion_that_is_not_lost_needs_no_answer(path: Path) -> None:
    assert findings(_known(path, {"Ours": 4.0, "Rival": 2.0, "Weak": 1.0, "Ours, longer": 5.0}, {})) == []
