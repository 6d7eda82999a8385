"""Extensions in a study: a data set, a network, explainers, criteria, analyses and an engine that are not ours."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
import torch
from torch import Tensor

import holdfast as hf
from holdfast.analyses.analysis import Analysis, Computed, Draw, ExtraMeasure, Stored, Subject, Vocabulary
from holdfast.analyses.result import Result, Row
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.data.dataset import DataSet
from holdfast.data.network import Network
from holdfast.experiment import Engine, Plan, Store, Study, plan_of, run
from holdfast.experiment.build import build
from holdfast.experiment.results import Results
from holdfast.experiment.toml import load
from holdfast.palette import styles
from holdfast.ranking import Ranking
from holdfast.registry import Registry
from holdfast.report import figures
from holdfast.report.page import write_page
from holdfast.report.tables import Section, sections
from holdfast.report.verdict import verdict
from holdfast.table import Estimate, Table

FILES = Path(__file__).parent.parent / "extensions"
MODULES = ("explainer_brightness", "criterion_size", "analysis_spread", "dataset_inverted", "engine_reversed")
REGISTRIES: tuple[Registry[Any], ...] = (
    hf.Explainer.registry,
    hf.Criterion.registry,
    Analysis.registry,
    DataSet.registry,
    Network.registry,
    Engine.registry,
)
TEXT = """
main = "Greedy"
sizes = [0.25, 0.5]
features = "patches:14"
block = 2
engine = "reversed"

[data]
use = "inverted-mnist"
count = 4

[explainers.Brightness]
use = "brightness"

[explainers."Chosen"]
use = "chosen"
feature = 2

[explainers.Greedy]
use = "greedy"
search = { use = "min-norm", steps = 5 }

[criteria.Size]
use = "size"

[criteria.Insertion]
use = "insertion"
draws = 2

[analyses.spread]
examples = 3

[analyses.drawn]
methods = ["Brightness"]
times = 3

[analyses.measured]

[analyses.references]
values = [0, 1]
"""


class Drawn(Result):
    """A number for each method."""

    def __init__(self, values: dict[str, float]):
        self.values = values

    def table(self) -> list[Row]:
        return [{"method": name, "value": value} for name, value in self.values.items()]

    def draw(self, ax: Any) -> None:
        ax.bar(list(self.values), list(self.values.values()))


def _define() -> None:
    """Define what the files do not cover: a required setting, an analysis of explainers that has a figure alone."""

    @dataclass(frozen=True)
    class Chosen(hf.Explainer):
        feature: int  # no default
        name: ClassVar[str] = "chosen"
        source: ClassVar[str] = "this test"

        def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
            scores = torch.zeros(len(cases), cases.features.count).to(cases.x)
            scores[:, self.feature] = 1
            return Ranking.by_score(cases, scores, repr(self))

    @dataclass(frozen=True)
    class DrawnAnalysis(Analysis):
        methods: tuple[str, ...] | None = None
        times: int = 1
        words: bool = True
        name: ClassVar[str] = "drawn"
        title: ClassVar[str] = "Drawn"
        subject: ClassVar[Subject] = Subject.EXPLAINERS
        uses_words: ClassVar[bool] = True

        def with_vocabulary(self, vocabulary: Vocabulary | None) -> Analysis:
            return DrawnAnalysis(self.methods, self.times, vocabulary is not None)

        def compute(self, cases: Cases, subject: hf.Explainer | Ranking, progress: Progress | None) -> Computed:
            assert isinstance(subject, hf.Explainer)
            return Computed({"value": (self.times * subject(cases).count).numpy()}, ["drawn by hand"])

        @classmethod
        def read(cls, stored: Stored) -> Drawn | None:
            blocks = stored.arrays(cls.name)
            return Drawn({name: float(of[0]["value"][0]) for name, of in blocks.items()}) if blocks else None

        @classmethod
        def figures(cls, result: Drawn) -> dict[str, Draw]:
            return {"A drawing": result.draw}

    @dataclass(frozen=True)
    class MeasuredAnalysis(Analysis):
        name: ClassVar[str] = "measured"
        title: ClassVar[str] = "Measured"
        subject: ClassVar[Subject] = Subject.STORED

        def measures(self) -> list[ExtraMeasure]:
            return [ExtraMeasure("Insertion of half", hf.Insertion(0.5), "half")]

        @classmethod
        def read(cls, stored: Stored) -> Drawn | None:
            names, areas = stored.variant_areas(cls.name)
            assert names == ["half"]
            assert {area.shape for area in areas.values()} == {(1, 1, 4)}
            return Drawn({name: float(area.mean()) for name, area in areas.items()})

        @classmethod
        def tables(cls, result: Drawn, stored: Stored) -> list[Table]:
            rows = tuple((row["method"], row["value"]) for row in result.table())
            return [Table("measured", cls.title, ("method", "value"), rows)]


class Extended(NamedTuple):
    study: Study
    plan: Plan
    results: Results
    engine: Engine


@pytest.fixture(scope="module")
def extensions() -> Iterator[None]:
    """Register the extensions, and forget them afterwards: other tests list what is registered."""
    with pytest.MonkeyPatch.context() as patch:
        for registry in REGISTRIES:
            patch.setattr(registry, "_classes", dict(registry.classes()))
        patch.syspath_prepend(str(FILES))
        for module in MODULES:
            importlib.import_module(module)
        _define()
        yield
    for module in MODULES:
        del sys.modules[module]


@pytest.fixture(scope="module")
def extended(extensions: None, tmp_path_factory: pytest.TempPathFactory) -> Extended:
    folder = tmp_path_factory.mktemp("extended")
    path = folder / "extended.toml"
    path.write_text(TEXT, encoding="utf-8")
    settings = load(str(path))
    study = build(settings, "extended", folder)
    engine = Engine.registry.classes()[settings.engine].start(None, None, "cpu")
    with Store.open(folder / "results.db") as store:
        summary = run(study, store, engine)
    assert (summary.missing, summary.failed) == (0, {})
    return Extended(study, plan_of(study), Results(folder / "results.db"), engine)


@pytest.fixture(scope="module")
def tables(extended: Extended) -> dict[str, Table]:
    return {table.key: table for section in sections(extended.results) for table in section.tables}


def test_a_file_names_them_with_their_settings(extended: Extended) -> None:
    study = extended.study
    assert study.examples[0] == "inverted 0"
    assert study.cases.model.classes == ("a", "b", "c")
    assert study.about == {"network": "last-pixels"}
    assert [repr(method.first[1]) for method in study.methods[:2]] == [
        "Brightness(absolute=True, seed=0)",
        "_define.<locals>.Chosen(feature=2)",
    ]
    assert study.measures[0].criterion.family == "Sizes"
    assert repr(study.analyses[1]).endswith("DrawnAnalysis(methods=('Brightness',), times=3, words=False)")
    assert type(extended.engine).__name__ == "Reversed"


@pytest.mark.parametrize(
    ("there", "other", "said"),
    [
        ("feature = 2\n", "", "explainers.Chosen cannot be made with these settings: .*'feature'"),
        ("feature = 2\n", "feature = 2.5\n", "explainers.Chosen.feature should be a valid integer, got 2.5"),
        ("feature = 2\n", "featur = 2\n", "explainers.Chosen.featur is not a setting of chosen: use feature"),
        (
            '["Brightness"]',
            '["Bright"]',
            "analyses.drawn.methods should be of Brightness, Chosen, Greedy, got 'Bright'",
        ),
        ("examples = 3", "examples = 0", "analyses.spread.examples should be at least 1, got 0"),
        ("count = 4", "count = 99", "ask for more than the 20 examples there are"),
        (
            "[analyses.spread]",
            '[model]\nuse = "mnist-cnn"\n[analyses.spread]',
            "model.use should be last-pixels for inv",
        ),
    ],
)
def test_their_settings_are_checked_too(extensions: None, there: str, other: str, said: str, tmp_path: Path) -> None:
    assert TEXT.count(there) == 1
    path = tmp_path / "wrong.toml"
    path.write_text(TEXT.replace(there, other), encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match=said):
        build(load(str(path)), "wrong", tmp_path)


def test_they_are_in_the_plan(extended: Extended) -> None:
    roles = [(task.job.kind, task.role.block, task.role.method, task.role.side) for task in extended.plan.tasks]
    spread = [role[1:] for role in roles if role[0] == "spread analysis"]
    sides = [("Brightness", "both"), ("Chosen", "both"), ("Greedy", "rest"), ("Greedy", "relevant")]
    assert sorted(spread) == sorted((block, *side) for block in (0, 1) for side in sides), "of every ranking"
    assert [role[1:3] for role in roles if role[0] == "drawn analysis"] == [(0, "Brightness"), (1, "Brightness")]
    sizes = {task.role.method for task in extended.plan.tasks if task.role.measure == "Size"}
    assert sizes == {"Brightness", "Chosen", "Greedy"}


def test_a_criterion_of_its_own_family_is_in_every_table(extended: Extended, tables: dict[str, Table]) -> None:
    results = extended.results
    own = tables["sizes"]
    assert (own.title, own.columns) == ("Sizes", ("method", "Size ↑", "Greedy by Size"))
    assert [row[0] for row in own.rows] == ["Brightness", "Chosen", "Greedy"]
    size = results.measures("table")[0]
    area = results.area("Brightness", size)
    assert area is not None
    first = own.rows[0][1]
    assert isinstance(first, Estimate)
    assert first.value == pytest.approx(float(area.double().mean()))
    assert first.best, "nothing chooses more brightness than brightness itself"
    assert "Size ↑" not in tables["insertion-and-deletion"].columns
    assert next(row[:2] for row in tables["verdicts"].rows if row[0] == "Size") == ("Size", "measured, after Holm")
    assert {row[0] for row in tables["tests"].rows} >= {"Size against Brightness", "Size against Chosen"}
    assert tables["crossed"].columns == ("method", "optimises", "Size ↑", "Insertion ↑")
    assert [row[:2] for row in tables["crossed"].rows] == [("Greedy", "Robustness-S̄r"), ("Greedy", "Robustness-Sr")]
    assert "Size: higher is better" in figures.curves(results, styles([results.main, *results.methods()]))
    assert "by Size" in verdict(results)


def test_an_analysis_has_a_section_with_its_tables_and_figures(
    extended: Extended, tables: dict[str, Table], tmp_path: Path
) -> None:
    by_key: dict[str, Section] = {section.key: section for section in sections(extended.results)}
    assert by_key["spread"].title == "Spread of scores"
    assert [row[0] for row in tables["spread"].rows] == ["Brightness", "Chosen", "Greedy"]
    assert by_key["drawn"].tables == [], "it has a figure alone"
    write_page(extended.results, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for key, title in (("sizes", "Sizes: all methods compared"), ("spread", "Spread of scores"), ("drawn", "Drawn")):
        assert f'<a href="#about-{key}">{title}</a>' in page
        assert f'<section id="about-{key}">\n<h2>{title}</h2>' in page
    assert re.search(r'<img src="data:image/svg\+xml[^"]*" alt="A drawing">', page)
    assert re.search(r'<img src="data:image/svg\+xml[^"]*" alt="Size: higher is better">', page)
    assert "drawn analysis: drawn by hand" in page
    assert "times=3" in page, "settings are part of the provenance"


def test_each_analysis_sees_the_measures_that_it_added(extended: Extended, tables: dict[str, Table]) -> None:
    results = extended.results
    measure = next(one for one in results.measures("extra") if one.name == "Insertion of half")
    areas = {method: results.area(method, measure) for method in results.methods()}
    expected = [(method, float(area.mean())) for method, area in areas.items() if area is not None]
    assert list(tables["measured"].rows) == expected
    assert len(expected) == 3
    assert [row[0] for row in tables["references-insertion"].rows] == ["0", "1"]
    assert "Insertion of half ↑" not in tables["insertion-and-deletion"].columns


def test_values_are_those_of_the_extension(extended: Extended) -> None:
    results, study = extended.results, extended.study
    drawn = next(result for cls, result in results.analyses.items() if cls.name == "drawn")
    assert drawn.table() == [{"method": "Brightness", "value": 12.0}], "three times four patches"
    curve = results.curve("Brightness", results.measures("table")[0])
    assert curve is not None
    pooled: Tensor = study.cases.features.pool(study.cases.x).sort(1, descending=True).values
    torch.testing.assert_close(curve.values, pooled.cumsum(1)[:, :2], check_dtype=False)
