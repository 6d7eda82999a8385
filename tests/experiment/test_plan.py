"""Planning and building: nothing is computed, and every object is made once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from captum import attr as captum

import holdfast as hf
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.data.digit_experiments import MnistCnn
from holdfast.experiment import Method, Store, Study, plan_of, run
from holdfast.experiment.build import build
from holdfast.experiment.results import Results
from holdfast.experiment.toml import load
from holdfast.interop.captum import from_captum
from holdfast.ranking import Ranking
from holdfast.reference import FixedReference
from studies import SMALL, small_study, toy_study
from toys import small_net

HEAD = """
main = "Greedy"
sizes = SIZES
features = "patches:7"
[data]
use = "mnist"
count = 1
[criteria.Insertion]
use = "insertion"
"""


def _experiment(folder: Path, rest: str, sizes: str = "[0.1, 0.3]", name: str = "one.toml") -> str:
    path = folder / name
    path.write_text(HEAD.replace("SIZES", sizes) + rest, encoding="utf-8")
    return str(path)


# ---------------------------------------------------------------------- planning


def test_planning_asks_the_model_nothing() -> None:
    study = small_study()
    model = study.cases.model
    assert isinstance(model, hf.TorchModel)
    calls: list[int] = []
    hook = model.module.register_forward_hook(lambda *_: calls.append(1))
    before = model.queries
    plan = plan_of(study)
    assert any(job.kind == "targeted explanation" for job in plan.jobs.values())
    assert set(plan.rows) == set(plan.jobs), "what is expected to be spent, too"
    hook.remove()
    assert calls == []
    assert model.queries == before


def test_a_plan_is_the_same_each_time_and_follows_the_study() -> None:
    study = small_study()
    first, second = plan_of(study), plan_of(study)
    assert list(first.jobs) == list(second.jobs)
    assert first.record == second.record
    labels = [task.label for task in first.tasks]
    assert {"ranking Grad", "curve Greedy-AS (rest), Robustness-S̄r", "sanity analysis Greedy-AS (rest), sanity"} <= set(
        labels
    )
    assert {task.role.method for task in first.tasks if task.role.measure == "sensitivity"} == {"Grad", "Random"}
    assert {task.role.method for task in first.tasks if task.role.measure == "diagnostics"} == {"Greedy-AS"}
    without = plan_of(replace(study, analyses=(), gallery=None))
    assert {job.kind for job in without.jobs.values()} == {"inputs", "ranking", "curve"}


def test_analyses_see_the_first_examples_only() -> None:
    plan = plan_of(small_study())  # three examples in blocks of two
    by_kind = {
        kind: [task.role.block for task in plan.tasks if task.job.kind == f"{kind} analysis"]
        for kind in ("sanity", "sensitivity", "diagnostics")
    }
    assert by_kind == {"sanity": [0, 0], "sensitivity": [0, 0, 1, 1], "diagnostics": [0]}


# ---------------------------------------------------------------------- building


def test_every_setting_is_built_once_and_with_its_own_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    tensors: list[tuple[int, ...]] = []
    check, begin = hf.ExpectedGradients.__post_init__, FixedReference.__init__

    def noted(self: hf.ExpectedGradients) -> None:
        check(self)
        made.append((self.samples, repr(self.references)))

    def begun(self: FixedReference, values: torch.Tensor) -> None:
        begin(self, values)
        tensors.append(tuple(values.shape))

    monkeypatch.setattr(hf.ExpectedGradients, "__post_init__", noted)
    monkeypatch.setattr(FixedReference, "__init__", begun)
    settings = load(str(SMALL))
    assert (made, tensors) == ([], []), "reading a file makes nothing"
    study = build(settings, "small", tmp_path)
    references = FixedReference(hf.data.mnist().x[200:205])
    assert made == [(4, repr(references))]
    assert set(tensors) == {(5, 1, 28, 28)}, "no tensor stands in for another"
    assert study.methods[-1].explainers["both"] == hf.ExpectedGradients(references, samples=4)


def test_the_network_is_made_once_and_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    model = MnistCnn.model

    def counted(self: MnistCnn, *arguments: Any) -> Any:
        calls.append(self.full_name)
        return model(self, *arguments)

    monkeypatch.setattr(MnistCnn, "model", counted)
    build(load(str(SMALL)), "small", tmp_path)
    assert calls == ["mnist-cnn"]


@pytest.mark.parametrize("use", ["greedy", "greedy-as", "greedy-as-quick", "greedy-as-paper"])
def test_a_budget_is_the_largest_size_unless_the_file_names_another(use: str, tmp_path: Path) -> None:
    greedy = f'[explainers.Greedy]\nuse = "{use}"\n'
    for sizes, settings, expected in (
        ("[0.1, 0.3]", "", 0.3),
        ("[2, 5]", "", 5),
        ("[0.1, 0.3]", "budget = 0.9\n", 0.9),
        ("[0.1, 0.3]", "budget = 7\n", 7),
    ):
        made = build(load(_experiment(tmp_path, greedy + settings, sizes)), "one", tmp_path)
        for side in ("rest", "relevant"):
            explainer: Any = made.methods[0].explainers[side]
            assert (explainer.budget, type(explainer.budget)) == (expected, type(expected))
    plain = '[explainers.Greedy]\nuse = "grad"\n'
    assert build(load(_experiment(tmp_path, plain)), "one", tmp_path).methods[0].explainers == {"both": hf.Grad()}


def test_a_search_by_name_or_with_settings_is_that_of_both_rankings(tmp_path: Path) -> None:
    for text, expected in (('"pgd-paper"', hf.PGD.paper()), ('{ use = "min-norm", steps = 3 }', hf.MinNorm(steps=3))):
        greedy = f'[explainers.Greedy]\nuse = "greedy"\nsearch = {text}\n'
        made = build(load(_experiment(tmp_path, greedy)), "one", tmp_path)
        objectives = [getattr(explainer, "objective", None) for explainer in made.methods[0].explainers.values()]
        assert objectives == [hf.RobustnessRest(expected), hf.RobustnessRelevant(expected)]


# ---------------------------------------------------------------------- explainers of Captum


def _captum_study(**settings: Any) -> tuple[Study, dict[str, hf.Explainer]]:
    base = toy_study({"Grad": hf.Grad()})
    net = small_net()
    explainers: dict[str, hf.Explainer] = {
        "Saliency": from_captum(captum.Saliency(net), **settings),
        "IG": from_captum(captum.IntegratedGradients(net), n_steps=8, baselines=torch.zeros(1, 12).double()),
    }
    methods = tuple(Method(name, {"both": one}) for name, one in explainers.items())
    return replace(base, methods=(*base.methods, *methods)), explainers


def test_explainers_of_captum_work_in_a_study(tmp_path: Path) -> None:
    study, explainers = _captum_study()
    with Store.open(tmp_path / "results.db") as store:
        summary = run(study, store)
        assert (summary.missing, summary.failed) == (0, {})
        assert run(_captum_study()[0], store).made == 0, "made anew, the same keys"
    results = Results(tmp_path / "results.db")
    assert results.methods() == ["Grad", "Saliency", "IG"]
    for name, explainer in explainers.items():
        direct: Ranking = explainer(study.cases)
        assert torch.equal(results.rankings()[name].order, direct.order)
    other = set(plan_of(_captum_study(absolute=True)[0]).jobs)
    assert len(other - set(plan_of(study).jobs)) == 2 * 3, "a ranking and two curves in each of two blocks"


@dataclass(frozen=True, eq=True)
class Unhashable(hf.Explainer):
    """Holds a list, as an explainer from outside may."""

    weights: list[int]

    def rank(self, cases: Cases, progress: Progress | None = None) -> Ranking:
        return hf.Grad()(cases)


def test_an_explainer_need_not_be_hashable(tmp_path: Path) -> None:
    study = toy_study({"Mine": Unhashable([1, 2]), "Other": Unhashable([3])})
    with Store.open(tmp_path / "results.db") as store:
        summary = run(study, store)
    assert (summary.missing, summary.failed) == (0, {})
    assert (
        len(
            {
                unit.made_of["explainer"]
                for unit in Results(tmp_path / "results.db").units.values()
                if unit.kind == "ranking"
            }
        )
        == 2
    )
