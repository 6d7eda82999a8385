from __future__ import annotations

import csv
import io
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import holdfast as hf
from browsing import opened
from holdfast.experiment import Measure, Store, Study, plan_of, run
from holdfast.experiment.results import Results
from holdfast.report.findings import findings
from holdfast.report.page import write_page
from holdfast.report.tables import every_table
from holdfast.report.verdict import verdict
from holdfast.table import Estimate, Table, number
from speed import slowness
from studies import toy_study
from toys import small_net

SORTED_BY = "(all) => all.map((cell) => cell.dataset.sort)"


# ---------------------------------------------------------------------- as text


def test_the_page_stands_alone(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text), "nothing is fetched"
    assert "http://" not in re.sub(r"data:[^\"]*", "", text).replace("http://www.w3.org", "")
    assert text.count("<table") >= 10
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names)), "links lead to one place each"
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(names)
    for words in (
        "Win, draw, loss",
        "example by example",
        "Why not another class?",
        "Sanity",
        "Points without a change",
    ):
        assert words in text, words


def test_words_from_data_are_escaped(tmp_path: Path) -> None:
    study = toy_study({"<script>alert(1)</script>": hf.Grad(), "_b&b $\\foo$": hf.LeaveOneOut()})
    text = _written(study, tmp_path)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_partial_study_is_told(tmp_path: Path) -> None:
    study, path = toy_study({"Grad": hf.Grad(), "LOO": hf.LeaveOneOut()}, cases=6), tmp_path / "results.db"
    seen: list[int] = []
    with Store.open(path) as store:
        run(study, store, notify=lambda progress: seen.append(progress.done), stop=lambda: bool(seen) and seen[-1] > 7)
    results = Results(path)
    assert 0 < len(results.examples) < 6
    write_page(results, tmp_path / "report.html")
    assert f"{results.missing} units of this experiment are missing" in (tmp_path / "report.html").read_text()
    with Store.open(tmp_path / "none.db") as store:
        store.note_study(plan_of(study).record.plain())
    with pytest.raises(hf.HoldfastError, match="holds no curve yet"):
        write_page(Results(tmp_path / "none.db"), tmp_path / "none.html")
    with Store.open(tmp_path / "empty.db") as store, pytest.raises(hf.HoldfastError, match="no run has begun in it"):
        store.study()


def test_a_study_can_be_looked_at_wherever_it_was_stopped(tmp_path: Path, small_results: Path) -> None:
    whole = Store.read(small_results)
    planned = [unit["key"] for unit in whole.study()["units"]]
    for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.97):
        path = tmp_path / f"{share}.db"
        with Store.open(path) as store:
            store.note_study(whole.study())
            store.put(*(whole.get(key) for key in planned[: int(share * len(planned))]))
        results = Results(path)
        assert every_table(results)
        assert verdict(results).startswith("On ") or "nothing to compare" in verdict(results)
        findings(results)


def test_points_without_a_box_to_cap_them_are_told_and_the_rest_is_shown(tmp_path: Path) -> None:
    free = hf.TorchModel(small_net(), None)
    x = torch.rand(4, 12, generator=torch.Generator().manual_seed(0)).double()
    base = toy_study({"Grad": hf.Grad(), "LOO": hf.LeaveOneOut()})
    study = replace(base, cases=free.ask(x))
    with Store.open(tmp_path / "results.db") as store:
        run(study, store)
    _replace_values(tmp_path / "results.db", np.inf)
    write_page(Results(tmp_path / "results.db"), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No area of Grad, rest: " in text
    assert "points are censored, and the model has no bounds" in text
    assert "insertion ↑" in text


def _replace_values(path: Path, value: float) -> None:
    """Put one value into the first place of every curve that has a largest one."""
    with Store.read(path) as store:
        units, study = list(store.units()), store.study()
    path.unlink()
    with Store.open(path) as fresh:
        for unit in units:
            arrays = {name: array.copy() for name, array in unit.arrays.items()}
            if unit.kind == "curve" and "RobustnessRest" in unit.made_of["criterion"]:
                arrays["values"][0, 0] = value
            fresh.put(replace(unit, arrays=arrays))
        fresh.note_study(study)


def test_inputs_that_are_no_pictures_have_no_gallery(tmp_path: Path) -> None:
    assert 'id="gallery"' not in _written(toy_study({"Grad": hf.Grad(), "LOO": hf.LeaveOneOut()}), tmp_path)


def test_one_method_alone_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    assert "there is nothing to compare it with" in _written(toy_study({"Grad": hf.Grad()}), tmp_path)


def _written(study: Study, folder: Path) -> str:
    with Store.open(folder / "results.db") as store:
        run(study, store)
    write_page(Results(folder / "results.db"), folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


# ---------------------------------------------------------------------- tables


def test_tables_hold_the_areas_of_the_curves(small_results: Path) -> None:
    results = Results(small_results)
    tables = {table.key: table for table in every_table(results)}
    area = results.areas("table")["Robustness-S̄r"]["Grad"]
    row = next(row for row in tables["robustness"].rows if row[0] == "Grad")
    assert isinstance(row[1], Estimate)
    assert row[1].value == pytest.approx(float(area.double().mean()))
    assert row[1].low <= row[1].value <= row[1].high
    assert row[2] == 88.0, "the paper's"
    best = [row[0] for row in tables["robustness"].rows if isinstance(row[1], Estimate) and row[1].best]
    means = {name: float(value.mean()) for name, value in results.areas("table")["Robustness-S̄r"].items()}
    assert best == [max(means, key=lambda name: means[name])]
    crossed = {(row[0], row[1]): row for row in tables["crossed"].rows}
    own = crossed["Greedy-AS", "Robustness-S̄r"][2]
    main = next(row for row in tables["robustness"].rows if row[0] == "Greedy-AS")[1]
    assert isinstance(own, Estimate)
    assert isinstance(main, Estimate)
    assert own.value == main.value


def test_a_table_as_csv_latex_and_markdown() -> None:
    rows = (("a & b", Estimate(1.5, 1.0, 2.0, best=True), None), ("S̄r_2", Estimate(2.5), 1234))
    table = Table("key", "50 % of Robustness-S̄r", ("method", "area ↑", "count"), rows, "a note")
    lines = list(csv.reader(io.StringIO(table.csv())))
    assert lines[0] == ["method", "area ↑", "area ↑, low", "area ↑, high", "count"]
    assert lines[1] == ["a & b", "1.5", "1.0", "2.0", ""]
    latex = table.latex()
    assert latex.isascii()
    assert r"a \& b & \textbf{1.50 (1.00 to 2.00)} &  \\" in latex
    assert r"50 \% of Robustness-$\overline{S_r}$" in latex
    assert r"\begin{tabular}{lrr}" in latex
    assert "| a & b  | 1.50 (1.00 to 2.00) |       |" in table.markdown()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0.00"),
        (0.123456, "0.12"),
        (9.876, "9.88"),
        (98.76, "98.8"),
        (987.6, "988"),
        (1234.5, "1,234"),
        (1e-7, "1e-07"),
    ],
)
def test_numbers_have_as_many_figures_as_one_reads(value: float, told: str) -> None:
    assert number(value) == told


@pytest.mark.slow
def test_ten_thousand_units_make_a_small_store_and_a_quick_page(tmp_path: Path) -> None:
    """1,000 cases in blocks of two, of two methods, each by nine criteria."""
    model = hf.TorchModel(torch.nn.Linear(784, 10).eval(), (0, 1))
    x = torch.rand(1000, 784, generator=torch.Generator().manual_seed(0))
    base = toy_study({"Grad": hf.Grad(), "Random": hf.Random()}, block=2)
    measures = tuple(Measure(f"removed {n}", hf.Insertion(n / 10)) for n in range(9))
    study = Study("large", model.ask(x), base.methods, measures, "Grad", block=2)
    assert len(plan_of(study).jobs) >= 10_000
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        store._connection.execute("PRAGMA synchronous=OFF")  # the test need not survive a power cut
        assert run(study, store).missing == 0
    assert path.stat().st_size < 50 * 2**20
    started = time.perf_counter()
    write_page(Results(path), tmp_path / "report.html")
    assert time.perf_counter() - started < 10 * slowness()


# ---------------------------------------------------------------------- in a browser


@pytest.mark.slow
def test_the_page_opens_without_a_word_and_every_picture_loads(browser: Any, page: Path) -> None:
    tab, said = opened(browser, page)
    broken = tab.evaluate("[...document.images].filter((i) => !i.complete || i.naturalWidth === 0).map((i) => i.alt)")
    assert broken == []
    assert tab.evaluate("document.images.length") > 30
    assert said == []


@pytest.mark.slow
def test_a_click_sorts_by_number_and_a_second_one_turns_it_round(browser: Any, page: Path) -> None:
    tab, said = opened(browser, page)

    def column() -> list[str]:
        cells: list[str] = tab.eval_on_selector_all("#robustness tbody tr td:nth-child(2)", SORTED_BY)
        return cells

    head = tab.locator("#robustness thead th:nth-child(2)")
    head.get_by_role("button").click()
    rising = [float(value) for value in column()]
    assert rising == sorted(rising)
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert [float(value) for value in column()] == rising[::-1]
    tab.locator("#robustness thead th:nth-child(4)").get_by_role("button").click()
    words = tab.eval_on_selector_all("#robustness tbody tr td:nth-child(4)", SORTED_BY)
    assert words[-1] == "", "empty cells come last"
    assert said == []


@pytest.mark.slow
def test_the_page_fits_a_phone_and_both_colour_schemes(browser: Any, page: Path) -> None:
    backgrounds = set()
    for scheme in ("light", "dark"):
        tab, said = opened(browser, page, viewport={"width": 360, "height": 700}, color_scheme=scheme)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360, "nothing runs off the side"
        backgrounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert said == []
    assert len(backgrounds) == 2


@pytest.mark.slow
def test_on_paper_everything_is_open(browser: Any, page: Path) -> None:
    tab, _ = opened(browser, page)
    assert not tab.evaluate("[...document.querySelectorAll('details')].every((one) => one.open)")
    tab.pdf()
    assert tab.evaluate("[...document.querySelectorAll('details')].every((one) => one.open)")
