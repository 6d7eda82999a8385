from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.analyses.agreement import AgreementAnalysis
from holdfast.analyses.diagnostics import DiagnosticsAnalysis
from holdfast.analyses.reference_values import ReferenceAnalysis
from holdfast.analyses.runtime import RuntimeAnalysis
from holdfast.analyses.sanity import SanityAnalysis
from holdfast.analyses.sensitivity import SensitivityAnalysis
from holdfast.experiment import Local, Measure, Method, Unit, plan_of
from holdfast.experiment.engine import Batch, Outcome
from holdfast.experiment.export import rows
from holdfast.experiment.fingerprint import of_model
from holdfast.experiment.results import Results
from holdfast.explaining import judge_ranking
from studies import Broken, Faulty, compute, small_study, toy_study
from toys import small_net


def test_curves_in_the_store_are_those_of_the_library(tmp_path: Path) -> None:
    study = toy_study({"Grad": hf.Grad(), "LOO": hf.LeaveOneOut()}, block=3)
    results, _ = compute(study, tmp_path / "results.db")
    for method, explainer in (("Grad", hf.Grad()), ("LOO", hf.LeaveOneOut())):
        for told, measure in zip(results.measures(), study.measures, strict=True):
            curve = results.curve(method, told)
            assert curve is not None
            direct = hf.trace(study.cases, explainer(study.cases), measure.criterion, (0.25, 0.5))
            torch.testing.assert_close(curve.values, direct.values)
            torch.testing.assert_close(curve.ceiling, direct.ceiling)


def test_nothing_is_computed_twice_and_a_new_method_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    first = toy_study({"Grad": hf.Grad()})
    compute(first, path)
    before = first.cases.model.queries
    _, again = compute(toy_study({"Grad": hf.Grad()}), path)
    assert (again.made, again.stored) == (0, len(plan_of(first).jobs))
    assert first.cases.model.queries == before
    made: list[Unit] = []
    wider = toy_study({"Grad": hf.Grad(), "Random": hf.Random()})
    compute(wider, path, notify=lambda progress: made.extend(u for u in progress.latest if u not in made))
    assert {unit.made_of["explainer"] for unit in made if unit.kind == "ranking"} == {"Random(seed=0)"}
    assert len(made) == len(plan_of(wider).jobs) - len(plan_of(first).jobs)


def test_a_key_follows_every_part_of_what_made_it() -> None:
    base = toy_study({"Grad": hf.Grad()})
    keys = set(plan_of(base).jobs)
    other_net = hf.TorchModel(small_net(1), (0, 1)).ask(base.cases.x, base.cases.label)
    other_box = hf.TorchModel(small_net(), (0, 2)).ask(base.cases.x)
    other_x = hf.TorchModel(small_net(), (0, 1)).ask(base.cases.x.flip(1))
    grouped = hf.TorchModel(small_net(), (0, 1)).ask(base.cases.x, features=torch.arange(12).reshape(1, 12) // 2)
    for cases in (other_net, other_box, other_x, grouped):
        assert not keys & set(plan_of(replace(base, cases=cases)).jobs)
    assert keys == set(plan_of(toy_study({"Grad": hf.Grad()})).jobs), "made anew, the same"
    seeded = plan_of(toy_study({"Random": hf.Random(1)})).jobs
    kept = {key for key, job in seeded.items() if job.kind == "inputs"}
    assert set(plan_of(toy_study({"Random": hf.Random(2)})).jobs) & set(seeded) == kept
    longer = plan_of(replace(base, sizes=(0.25, 0.75))).jobs
    assert {plan_of(base).jobs[key].kind for key in keys & set(longer)} == {"inputs", "ranking"}


def test_what_fails_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    study = toy_study({"Grad": hf.Grad(), "Broken": Broken()})
    results, summary = compute(study, tmp_path / "results.db")
    assert set(summary.failed.values()) == {"this one never works."}
    assert summary.missing == len(summary.failed) == 2 * 3  # a ranking and two curves a block
    assert results.methods() == ["Grad"]
    assert results.missing == 6
    assert results.examples == [0, 1, 2, 3]


def test_a_bug_in_an_explainer_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    results, summary = compute(toy_study({"Grad": hf.Grad(), "Faulty": Faulty()}), tmp_path / "results.db")
    said = set(summary.failed.values())
    assert said == {"ranking Faulty() failed with RuntimeError: shape mismatch."}
    assert results.methods() == ["Grad"]


def test_batches_hold_what_fits() -> None:
    study = small_study()
    plan = plan_of(study)
    batches = plan.batches
    assert sorted(job.key for batch in batches for job in batch) == sorted(plan.jobs)
    assert all(len({job.block for job in batch}) == 1 and len({job.kind for job in batch}) == 1 for batch in batches)
    room = study.cases.model.chunk(study.cases.x)
    for batch in batches:
        groups = [job.group(plan.blocks[job.block]) for job in batch]
        assert len(batch) == 1 or sum(group[1] for group in groups if group) <= room
        assert len({group and group[0] for group in groups}) == 1
    assert max(map(len, batches)) > 1


def test_batches_do_not_change_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves computed alone are those computed together, up to float noise: rankings share no witness."""
    study = toy_study({"Grad": hf.Grad(), "Random": hf.Random(), "Other": hf.Random(1)})
    plan = plan_of(study)
    assert max(map(len, plan.batches)) > 1
    together, _ = compute(study, tmp_path / "together.db")
    single = replace(plan, batches=tuple((job,) for batch in plan.batches for job in batch))
    monkeypatch.setattr(sys.modules["holdfast.experiment.run"], "plan_of", lambda _: single)
    apart, _ = compute(study, tmp_path / "apart.db")
    for one, other in zip(rows(together), rows(apart), strict=True):
        assert one[:5] == other[:5]
        assert one[5] == (None if other[5] is None else pytest.approx(other[5], rel=1e-9))


class Unlucky(Local):
    """An engine that loses its second batch."""

    count = 0

    def finished(self) -> tuple[Batch, Outcome]:
        batch, outcome = super().finished()
        self.count += 1
        return (batch, hf.HoldfastError("lost.")) if self.count == 2 else (batch, outcome)


def test_an_engines_failure_is_a_failure_of_its_batch_only(tmp_path: Path) -> None:
    study = toy_study({"Grad": hf.Grad()})
    _, summary = compute(study, tmp_path / "results.db", engine=Unlucky())
    assert set(summary.failed.values()) == {"lost."}
    _, again = compute(study, tmp_path / "results.db")
    assert again.missing == 0


def test_studies_that_make_no_sense() -> None:
    grad = {"Grad": hf.Grad()}
    with pytest.raises(hf.HoldfastError, match="main should be one of Grad, got 'x'"):
        replace(toy_study(grad), main="x")
    with pytest.raises(hf.HoldfastError, match="the method 'Grad' is named twice"):
        replace(toy_study(grad), methods=(*toy_study(grad).methods, *toy_study(grad).methods))
    with pytest.raises(hf.HoldfastError, match="needs one explainer"):
        Method("half", {"rest": hf.Grad()})
    with pytest.raises(hf.HoldfastError, match="1 examples are named, there are 4"):
        replace(toy_study(grad), examples=("one",))
    box = hf.FunctionModel(lambda x: x[:, :2])
    with pytest.raises(hf.HoldfastError, match="give the study a name for its model"):
        of_model(box)
    toy = replace(toy_study({"Random": hf.Random()}), cases=box.ask(torch.rand(4, 12)), model="mine, version 3")
    with pytest.raises(
        hf.HoldfastError, match="RobustnessRest needs gradients, and the FunctionModel gives only scores"
    ):
        plan_of(toy)
    asked = replace(toy, measures=(Measure("insertion", hf.Insertion),))  # type: ignore[arg-type]  # a class is taken
    assert asked.measures[0].criterion == hf.Insertion()
    assert Method("one", hf.Random).explainers == {"both": hf.Random()}  # type: ignore[arg-type]  # so is it alone
    with pytest.raises(hf.HoldfastError, match="there is no modality 'imag': did you mean image"):
        plan_of(replace(asked, modality="imag"))
    boxed = hf.FunctionModel(lambda x: x[:, :2], bounds=(0, 9))
    other = replace(asked, cases=boxed.ask(torch.rand(4, 12)))
    renamed = replace(asked, model="mine, version 4")
    assert not set(plan_of(asked).jobs) & (set(plan_of(other).jobs) | set(plan_of(renamed).jobs)), (
        "name and box both count"
    )
    variants = (*toy_study(grad).methods, Method("Random", {"both": hf.Random()}, "ablation"))
    with pytest.raises(hf.HoldfastError, match="main should be one of Grad, got 'Random'"):
        replace(toy_study(grad), methods=variants, main="Random")


def test_costs_are_foreseen_about_right(small_results: Path) -> None:
    results = Results(small_results)
    expected = plan_of(small_study()).rows
    foreseen: dict[str, list[int]] = {}
    for key, unit in results.units.items():
        foreseen.setdefault(unit.kind, [0, 0])
        foreseen[unit.kind][0] += expected[key] or 0
        foreseen[unit.kind][1] += unit.forward
    for kind, (before, spent) in foreseen.items():
        assert 0.3 * spent <= before <= 3 * spent, kind


def test_what_is_said_while_computing_is_kept(tmp_path: Path) -> None:
    study = toy_study({"Grad": hf.Grad()})
    outside = replace(study, measures=(Measure("far", hf.Insertion(7.0)),))
    results, _ = compute(outside, tmp_path / "results.db")
    assert any("outside the model's bounds" in note for note in results.notes)


def _kinds(units: Sequence[Unit]) -> set[str]:
    return {unit.kind for unit in units}


def test_every_analysis_comes_back(small_results: Path) -> None:
    results = Results(small_results)
    kinds = {"inputs", "ranking", "curve", "explanation", "targeted explanation"}
    kinds |= {"sanity analysis", "sensitivity analysis", "diagnostics analysis"}
    assert _kinds(list(results.units.values())) == kinds
    study = small_study()
    sanity = results.analysis(SanityAnalysis)
    assert isinstance(sanity, hf.analyses.Sanity)
    assert sanity.explainers == ("Grad", "Greedy-AS")
    direct = hf.analyses.sanity(study.cases[:2], {"Grad": hf.Grad()}, cascade=True)
    torch.testing.assert_close(sanity.correlation[:1], direct.correlation)
    sensitivity = results.analysis(SensitivityAnalysis)
    assert isinstance(sensitivity, hf.analyses.Sensitivity)
    assert (sensitivity.radius, sensitivity.samples, sensitivity.top) == (0.1, 2, 0.2)
    near = hf.analyses.sensitivity(study.cases, {"Grad": hf.Grad()}, samples=2)
    torch.testing.assert_close(sensitivity.values[:1], near.values)
    references = results.analysis(ReferenceAnalysis)
    assert isinstance(references, hf.analyses.ReferenceValues)
    assert references.references == ("uniform", "0", "1")
    again = hf.analyses.reference_values(study.cases, {"Grad": hf.Grad()(study.cases)}, [0.0], sizes=study.sizes)
    torch.testing.assert_close(references.areas[:1, 1:2], again.areas)
    diagnostics = results.analysis(DiagnosticsAnalysis)
    assert isinstance(diagnostics, hf.analyses.Diagnostics)
    assert diagnostics.judged.shape == (2, 2)
    assert diagnostics.sizes == study.sizes, "those of the experiment"
    runtime = results.analysis(RuntimeAnalysis)
    assert isinstance(runtime, hf.analyses.Runtime)
    assert set(runtime.seconds) == {method.name for method in study.methods}
    assert results.analysis(AgreementAnalysis) is None, "people marked nothing"


def test_explanations_come_back(small_results: Path) -> None:
    results, study = Results(small_results), small_study()
    targets = [one.target for of in results.targeted().values() for one in of]
    second = study.cases.model(study.cases.x[:2]).argsort(1, descending=True)[:, 1]
    assert targets == second.tolist()
    shown = results.explanations()
    assert sorted(shown) == [0, 1]
    assert list(shown[0]) == [method.name for method in study.methods]
    one = shown[1]["Grad"]
    assert one.x.shape == (1, 28, 28)
    assert one.moves is not None
    # Kept in 16 bits, a witness may end a hair before the boundary: go a thousandth further.
    witness = (one.x + 1.001 * one.moves[0]).float()
    assert int(study.cases.model(witness[None]).argmax()) == one.new_class[0] != one.label
    assert float(one.moves[0].norm()) == pytest.approx(one.radius[0], rel=1e-3)
    outside = ~one.relevant_mask.expand(1, 28, 28)
    assert float(one.moves[0][outside].abs().max()) == 0
    assert one.size == 3, "a fifth of the sixteen patches"
    direct = judge_ranking(study.cases[:2], "Grad", hf.Grad()(study.cases[:2]), hf.MinNorm(steps=12), 0.2)[1]
    assert (one.order, one.label, one.target, one.new_class) == (
        direct.order,
        direct.label,
        direct.target,
        direct.new_class,
    )
    # Other methods were judged in the same batches: single precision then rounds differently, by processor.
    assert one.radius == pytest.approx(direct.radius, rel=1e-5)
    assert one.probability == pytest.approx(direct.probability, rel=1e-5)
    assert one.new_probability == pytest.approx(direct.new_probability, rel=1e-5)
    assert torch.equal(one.relevant_mask, direct.relevant_mask)


def test_a_model_is_known_by_what_it_computes_with_not_by_how_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(1, 2, 3)

    def known(layer: torch.nn.Module) -> str:
        return of_model(hf.TorchModel(torch.nn.Sequential(layer, torch.nn.Flatten()).eval(), bounds=(0, 1)))

    first = known(conv)
    monkeypatch.setattr(torch.nn.Conv2d, "extra_repr", lambda self: "another version of torch")
    assert known(copy.deepcopy(conv)) == first
    wider = copy.deepcopy(conv)
    wider.stride = (2, 2)
    assert known(wider) != first, "the same weights, another network"
    assert known(torch.nn.Conv2d(1, 2, 3)) != first
