"""Example cards: which methods they show, and how they compare radii; and the glossary."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.experiment import Measure, Method, Store, Study, run
from holdfast.experiment.results import Results
from holdfast.explanation import Explanation
from holdfast.modalities.modality import Modality
from holdfast.report.cards import Pair, cards, pair_of
from holdfast.report.glossary import about, glossary
from holdfast.report.page import write_page
from studies import small_study, toy_study


def _results(study: Study, folder: Path) -> Results:
    with Store.open(folder / "results.db") as store:
        assert run(study, store).missing == 0
    return Results(folder / "results.db")


class Changed(Results):
    """Results whose explanations a test changes."""

    change: Any

    def explanations(self) -> dict[int, dict[str, Explanation]]:
        by_example = super().explanations()
        return {
            example: {name: self.change(name, one) for name, one in by.items()} for example, by in by_example.items()
        }


def test_the_best_method_is_shown_beside_a_random_order(small_results: Path) -> None:
    results = Results(small_results)
    pair = pair_of(results)
    areas = results.areas("table")["Robustness-S̄r"]
    assert pair.best == max(areas, key=lambda name: float(areas[name].mean()))
    assert pair.baseline == "Random"
    assert pair.why == f"{pair.best} has the best mean Robustness-S̄r of 3 methods; Random is the baseline."


def test_without_a_random_order_the_worst_method_is_the_baseline(tmp_path: Path) -> None:
    results = _results(
        toy_study({"Grad": hf.Grad(), "LOO": hf.LeaveOneOut(), "IG": hf.IntegratedGradients()}), tmp_path
    )
    areas = {name: float(area.mean()) for name, area in results.areas("table")["rest"].items()}
    pair = pair_of(results)
    assert (pair.best, pair.baseline) == (max(areas, key=areas.__getitem__), min(areas, key=areas.__getitem__))
    assert pair.why.endswith(f"{pair.baseline} has the worst.")


def test_one_method_has_no_baseline(tmp_path: Path) -> None:
    assert pair_of(_results(toy_study({"Grad": hf.Grad()}), tmp_path)) == Pair("Grad", None, "")


@pytest.mark.parametrize(
    ("radius", "told"),
    [
        (
            (1.0, 4.0),
            ["held is 2.00 times that of Random (larger is better)", "alone is 0.50 times that of Random (sm"],
        ),
        ((2.0, 2.0), ["held is as large as that of Random (larger", "alone is as large as that of Random (smaller"]),
        ((math.inf, 1.0), ["held is 0.50 times that of Random (larger is better)"]),
    ],
)
def test_radii_are_compared_and_nothing_is_said_where_one_is_unknown(
    small_results: Path, radius: tuple[float, float], told: list[str]
) -> None:
    results = Changed(small_results)
    new = tuple(-1 if math.isinf(one) else 3 for one in radius)
    results.change = lambda name, one: replace(
        one, **({"radius": radius, "new_class": new} if name == "Greedy-AS" else {"radius": (2.0, 2.0)})
    )
    card = cards(results, Modality.registry.make("image"), Pair("Greedy-AS", "Random", ""))[0]
    assert len(card.compared) == len(told)
    for sentence, part in zip(card.compared, told, strict=True):
        assert sentence.startswith("Greedy-AS: the smallest change")
        assert part in sentence
    assert card.radii[0][1] == ("none found" if math.isinf(radius[0]) else f"{radius[0]:.2f} → 3")
    assert list(card.explanations) == ["Greedy-AS", "Random"]


def test_one_example_is_the_example(tmp_path: Path) -> None:
    results = _results(replace(small_study(limit=1), analyses=()), tmp_path)
    tables = write_page(results, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>The first example, explained</h2>" in text
    assert "were measured on 1 example, which is too few to compare them" in text
    assert "1 examples" not in text
    assert all("1 examples" not in table.note for table in tables)
    assert any("over 1 example with" in table.note for table in tables)


# ---------------------------------------------------------------------- glossary


def test_the_glossary_explains_what_tables_name(small_results: Path) -> None:
    words = glossary(Results(small_results))
    by_name = {entry.name: entry for entry in [*words.criteria, *words.methods]}
    assert by_name["Grad"].text.startswith("How strongly the score reacts to a small change of each feature")
    assert by_name["Grad"].source == "Simonyan et al. 2013"
    assert by_name["Random"].source == ""
    assert by_name["Robustness-Sr"].text.endswith("Lower is better: the prediction depends on the relevant features.")
    assert "A variant of Grad. It answers the question: is it the references?" in by_name["EG, other digits"].text
    keys = [entry.key for entry in [*words.criteria, *words.methods, *words.terms]]
    assert len(keys) == len(set(keys))


def test_every_class_of_the_package_has_words_for_the_glossary() -> None:
    for base in (hf.Explainer, hf.Criterion):
        for name, cls in base.registry.classes().items():
            if cls.__module__.startswith("holdfast."):
                words = about(cls)
                assert words.endswith("."), name
                assert 20 < len(words) < 300, name
                assert "``" not in words, name


def test_a_class_that_is_not_installed_or_has_no_words_is_named_all_the_same(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Wordless(hf.Explainer):
        seed: int = 0

        def rank(self, cases: Cases, progress: Progress | None = None) -> hf.Ranking:
            return hf.Grad()(cases)

    base = toy_study({"Grad": hf.Grad()})
    study = replace(
        base,
        methods=(*base.methods, Method("A", {"both": Wordless()}), Method("B", {"both": hf.Random()})),
        measures=(Measure("insertion", hf.Insertion(0.5)),),
    )
    results = _results(study, tmp_path)
    gone = [replace(one, kinds=("of-an-extension",)) if one.name == "B" else one for one in results.study.methods]
    results.study = replace(results.study, methods=tuple(gone))
    by_name = {entry.name: entry for entry in glossary(results).methods}
    assert about(Wordless) == ""
    for name in ("A", "B"):
        assert by_name[name].text == "Its class is not known here; its settings are at the end of the page."


def test_results_of_earlier_versions_have_a_page_too(tmp_path: Path, small_results: Path) -> None:
    """Their records lack the names of classes and the norm."""
    old = Store.read(small_results).study()
    for one in (*old["methods"], *old["measures"]):
        del one["kinds" if "kinds" in one else "kind"]
    del old["norm"]
    path = tmp_path / "results.db"
    with Store.read(small_results) as whole, Store.open(path) as store:
        store.put(*whole.units())
        store.note_study(old)
    write_page(Results(path), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Radii are lengths: 1 is the change" in text
    assert "Its class is not known here" in text
