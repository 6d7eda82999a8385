"""Reference values, sanity, sensitivity, agreement, runtime, diagnostics."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure
from scipy import stats
from torch import Tensor, nn

import holdfast as hf
from holdfast import analyses
from holdfast.analyses.agreement import Marks, agreement
from holdfast.analyses.diagnostics import Diagnostics, diagnostics
from holdfast.analyses.reference_values import reference_values
from holdfast.analyses.runtime import runtime
from holdfast.analyses.sanity import reinitialised, sanity, spearman, trainable_layers
from holdfast.analyses.sensitivity import neighbours, sensitivity
from toys import small_net


def _cases(n: int = 4) -> hf.Cases:
    x = torch.rand(n, 12, generator=torch.Generator().manual_seed(0)).double()
    return hf.TorchModel(small_net(), (0, 1)).ask(x)


def _ranked(scores: Tensor) -> hf.Ranking:
    return hf.Ranking.by_score(_cases(len(scores)), scores.double())


# ---------------------------------------------------------------------- reference values


def test_reference_values_are_the_areas_of_the_criteria() -> None:
    cases = _cases()
    rankings: Any = {"grad": hf.Grad()(cases), "pair": (hf.Random(1)(cases), hf.Random(2)(cases))}
    result = reference_values(cases, rankings, [0.0, "uniform"], draws=2)
    assert result.areas.shape == (2, 2, 2, 4)
    expected = hf.trace(cases, rankings["pair"][1], hf.Deletion("uniform", draws=2)).auc()
    torch.testing.assert_close(result.areas[1, 1, 1], expected)
    rows = result.table()
    assert len(rows) == 8
    assert rows[0]["draws"] == 2
    assert {row["rank"] for row in rows if row["reference"] == "0" and row["criterion"] == "Insertion"} == {1, 2}
    for criterion in (0, 1):
        result.plot(Figure().add_subplot(), criterion)


def test_the_best_insertion_is_high_and_the_best_deletion_low() -> None:
    areas = torch.tensor([[[[3.0], [3.0]]], [[[1.0], [1.0]]], [[[3.0], [2.0]]]])
    ranks = analyses.ReferenceValues(("a", "b", "c"), ("0",), areas, 1).ranks()
    assert ranks[:, 0, 0].tolist() == [1, 3, 1]
    assert ranks[:, 0, 1].tolist() == [3, 1, 2]


def test_one_case_has_no_standard_error() -> None:
    cases = _cases(1)
    assert reference_values(cases, {"grad": hf.Grad()(cases)}, [0.0]).table()[0]["standard error"] is None


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="at least one ranking"):
        reference_values(_cases(), {})
    with pytest.raises(hf.HoldfastError, match="a reference is named twice: 0, blur, 0"):
        reference_values(_cases(), {"grad": hf.Grad()(_cases())}, [0.0, "blur", 0.0])
    with pytest.raises(hf.HoldfastError, match="the ranking orders"):
        reference_values(_cases(2), {"grad": hf.Grad()(_cases())})


# ---------------------------------------------------------------------- sanity


def test_spearman_is_scipys_with_ties_and_padding() -> None:
    generator = torch.Generator().manual_seed(0)
    one, other = (torch.randint(0, 5, (4, 12), generator=generator) for _ in range(2))
    found = spearman(_ranked(one), _ranked(other))
    for case in range(4):
        assert float(found[case]) == pytest.approx(stats.spearmanr(one[case], other[case]).statistic)
    ids = torch.tensor([[0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5], [0, 1, 2, 3, 3, 3, 3, 3, 3, 3, -1, -1]])
    cases = hf.TorchModel(small_net()).ask(torch.rand(2, 12), features=hf.Features.of(ids))
    scores = [torch.randint(0, 4, (2, 6), generator=generator).double() for _ in range(2)]
    padded = spearman(*(hf.Ranking.by_score(cases, score) for score in scores))
    assert float(padded[1]) == pytest.approx(stats.spearmanr(scores[0][1, :4], scores[1][1, :4]).statistic)


def test_an_order_without_order_is_excluded_and_counted() -> None:
    flat, steep = _ranked(torch.zeros(4, 12)), _ranked(torch.arange(48.0).reshape(4, 12))
    assert bool(spearman(flat, steep).isnan().all())
    result = analyses.Sanity(("flat",), ("last",), spearman(flat, steep)[None, None])
    assert result.table()[0]["rank correlation"] is None
    assert result.table()[0]["excluded"] == 4


def test_layers_start_anew_from_the_last_back_and_the_network_stays() -> None:
    net = small_net()
    assert trainable_layers(_asked(net)) == ["4", "2", "0"]
    before = [weight.clone() for weight in net.parameters()]
    fresh = reinitialised(net, ["4"], seed=3)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    changed = [not torch.equal(a, b) for a, b in zip(before, fresh.parameters(), strict=True)]
    assert changed == [False, False, False, False, True, True]
    again = reinitialised(net, ["4"], seed=3)
    assert all(torch.equal(a, b) for a, b in zip(fresh.parameters(), again.parameters(), strict=True))
    assert trainable_layers(_asked(nn.Linear(12, 2).double())) == [""]
    with pytest.raises(hf.HoldfastError, match="no layer that can be re-initialised"):
        trainable_layers(_asked(nn.Sequential(nn.ReLU())))


def _asked(net: nn.Module) -> hf.Cases:
    return hf.TorchModel(net.eval().requires_grad_(False)).ask(torch.rand(2, 12).double())


def test_the_last_layer_is_the_one_an_input_passes_last_whatever_it_is_called() -> None:
    class HeadFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classify, self.unused, self.body = nn.Linear(5, 3), nn.Linear(2, 2), nn.Linear(12, 5)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.classify(self.body(x).relu())
            return out

    cases = _asked(HeadFirst().double())
    assert trainable_layers(cases) == ["classify", "body"], "what is never used is left out"
    assert sanity(cases, {"Grad": hf.Grad()}).stages == ("classify",)


def test_sanity_sees_who_looks_at_the_network() -> None:
    class Brightest(hf.Explainer):
        def __call__(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            return hf.Ranking.by_score(cases, cases.features.pool(cases.x), "brightest")

    cases = _cases(8)
    explainers = {"brightest": Brightest(), "Grad": hf.Grad(), "Greedy-AS": hf.GreedyAS(step=0.2)}
    result = sanity(cases, explainers, cascade=True)
    assert result.stages == ("4", "2", "0")
    mean = result.correlation.nanmean(2)
    torch.testing.assert_close(mean[0], torch.ones(3).double())
    assert float(mean[1].abs().max()) < 0.7
    lost = mean[2].isnan()  # a network with fresh weights may never turn
    assert float(mean[2].nan_to_num(0).abs().max()) < 0.7
    assert len([note for note in result.notes if note.startswith("Greedy-AS")]) == int(lost.sum())
    assert len(result.table()) == 9
    result.plot(Figure().add_subplot())
    assert len(sanity(cases, {"Grad": hf.Grad()}).stages) == 1


def test_what_stays_as_trained_and_what_is_dropped_is_said() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.scale = small_net(), nn.Parameter(torch.ones(12).double())

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.net(x * self.scale)
            return out

    model = hf.TorchModel(Scaled().eval().requires_grad_(False))
    x = torch.rand(3, 12).double()
    label = model(x).argmax(1)
    fresh = model.through(reinitialised(model.module, trainable_layers(model.ask(x))[:1]))(x).argmax(1)
    target = torch.where(fresh != label, fresh, (label + 1) % 4)
    result = sanity(model.ask(x, target=target), {"Grad": hf.Grad()}, cascade=True)
    assert any(note.startswith("scale stayed as trained") for note in result.notes)
    assert any("targets were dropped" in note for note in result.notes) == bool((fresh != label).any())
    with pytest.raises(hf.HoldfastError, match="at least one explainer"):
        sanity(_cases(), {})


# ---------------------------------------------------------------------- sensitivity


def test_neighbours_fill_the_ball_of_what_may_move() -> None:
    """Uniform in a disc: the mean distance is two thirds of the radius."""
    ids = torch.tensor([0, 1] + [-1] * 10)
    cases = hf.TorchModel(small_net()).ask(torch.rand(1, 12), features=hf.Features.of(ids))
    moved = neighbours(cases, 0.3, 2000).x - cases.x
    assert float(moved.norm(dim=1).mean()) == pytest.approx(0.2, rel=0.05)


def test_neighbours_are_in_the_ball_and_in_the_box() -> None:
    ids = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, -1, -1, -1, -1])
    cases = hf.TorchModel(small_net(), (0, 1)).ask(torch.rand(3, 12), features=hf.Features.of(ids))
    near = neighbours(cases, 0.1, 50)
    assert len(near) == 150
    moved = near.x.view(3, 50, 12) - cases.x[:, None]
    assert float(moved.norm(dim=2).max()) <= 0.1 + 1e-9
    assert float(moved.norm(dim=2).median()) > 0.05
    assert not bool(moved[:, :, 8:].any())
    assert 0 <= float(near.x.min()) <= float(near.x.max()) <= 1
    assert torch.equal(near.label.view(3, 50), cases.label[:, None].expand(-1, 50))


def test_sensitivity_is_the_worst_overlap() -> None:
    class Fickle(hf.Explainer):
        """Drops none, one or two of its three features, depending on the neighbour."""

        def __call__(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            scores = torch.zeros(len(cases), 12).double()
            scores[:, :3] = 1
            moved = ~(cases.x[:, None] == base.x).all(2).any(1)
            third = (cases.x.sum(1) * 1e6).long() % 3
            scores[moved & (third >= 1), 2] = -1
            scores[moved & (third >= 2), 1] = -1
            return hf.Ranking.by_score(cases, scores)

    base = _cases()
    explainer = Fickle()
    found = sensitivity(base, {"fickle": explainer}, top=3, samples=4).values[0]
    near = neighbours(base, 0.1, 4)
    overlaps = []
    for case in range(4):
        own = set(explainer(base).order[case, :3].tolist())
        every = [set(explainer(near).order[4 * case + k, :3].tolist()) for k in range(4)]
        overlaps.append([len(own & other) / 3 for other in every])
    torch.testing.assert_close(found, torch.tensor([1 - min(overlap) for overlap in overlaps]).double())
    assert any(max(overlap) > min(overlap) for overlap in overlaps)  # or mean and worst would be the same


def test_orders_that_mean_nothing_are_left_out() -> None:
    class Empty(hf.Explainer):
        def __call__(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            ranking = hf.Grad()(cases)
            return replace(ranking, uninformative=torch.arange(len(cases)) == 0)

    result = sensitivity(_cases(), {"empty": Empty()}, samples=3)
    assert bool(result.values[0, 0].isnan())
    assert not bool(result.values[0, 1:].isnan().any())
    assert (result.table()[0]["cases"], result.table()[0]["excluded"]) == (3, 1)
    assert sanity(_cases(), {"empty": Empty()}).table()[0]["excluded"] == 1


def test_an_explanation_that_never_changes_is_not_sensitive() -> None:
    class Constant(hf.Explainer):
        def __call__(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            return hf.Ranking.by_score(cases, torch.arange(12.0).double().expand(len(cases), -1))

    result = sensitivity(_cases(), {"constant": Constant()}, samples=3)
    assert not bool(result.values.any())
    assert result.table()[0]["sensitivity"] == 0
    result.plot(Figure().add_subplot())
    with pytest.raises(hf.HoldfastError, match="radius > 0"):
        sensitivity(_cases(), {"constant": Constant()}, radius=0)


# ---------------------------------------------------------------------- agreement


def _written(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_precision_and_average_precision_by_hand(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "marks.jsonl",
        {"example": "a", "annotator": "x", "features": [0, 2]},
        {"example": "a", "annotator": "y", "features": [0, 3]},
        {"example": "a", "annotator": "z", "features": [0]},
        "",
        {"example": "b", "annotator": "x", "features": [1, 5]},
        {"example": "c", "annotator": "x", "features": []},
    )
    marks = Marks.read(path)
    assert marks.majority("a") == {0}
    assert marks.majority("b") == {1, 5}
    scores = torch.zeros(3, 12)
    scores[0, [2, 0]] = torch.tensor([2.0, 1.0])  # a hit at the second place
    scores[1, [1, 4, 5]] = torch.tensor([3.0, 2.0, 1.0])  # hits at the first and third
    result = agreement({"ours": _ranked(scores)}, ["a", "b", "c"], marks, most=3)
    assert result.excluded == ("c",)
    torch.testing.assert_close(result.precision[0], torch.tensor([[0, 1], [1 / 2, 1 / 2], [1 / 3, 2 / 3]]).double())
    torch.testing.assert_close(result.average_precision[0], torch.tensor([1 / 2, (1 + 2 / 3) / 2]).double())
    row = result.table()[0]
    assert row["marked nothing"] == 1
    assert row["p@1"] == 0.5
    assert row["mAP"] == pytest.approx((0.5 + 5 / 6) / 2)
    assert row["F1 between people"] == pytest.approx((0.5 + 2 / 3 + 2 / 3) / 3)
    result.plot(Figure().add_subplot())


def test_more_places_than_features_are_misses(tmp_path: Path) -> None:
    path = _written(tmp_path / "marks.jsonl", {"example": 0, "annotator": "x", "features": list(range(12))})
    found = agreement({"ours": _ranked(torch.rand(1, 12))}, [0], Marks.read(path), most=14)  # type: ignore[list-item]  # numbers count as names
    assert found.precision[0, :, 0].tolist() == pytest.approx([1.0] * 12 + [12 / 13, 12 / 14])


def test_of_two_who_disagree_both_count(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "marks.jsonl",
        {"example": 1, "annotator": "x", "features": [0]},
        {"example": 1, "annotator": "y", "features": [7]},
    )
    assert Marks.read(path).majority("1") == {0, 7}
    assert Marks.read(path).between_people() == 0


def test_people_alone_have_nobody_to_agree_with(tmp_path: Path) -> None:
    path = _written(tmp_path / "marks.jsonl", {"example": "a", "annotator": "x", "features": [0]})
    assert Marks.read(path).between_people() is None


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["not json"], "line 1 of"),
        ([{"example": "a", "annotator": "x"}], "line 1 of"),
        ([{"example": "a", "annotator": "x", "features": [1.5]}], "1.5 is not the number of a feature"),
        ([{"example": "a", "annotator": "x", "features": [1]}] * 2, "x has marked a twice"),
        ([], "holds no marks"),
    ],
)
def test_bad_marks_are_named_by_line(tmp_path: Path, lines: list[object], says: str) -> None:
    with pytest.raises(hf.HoldfastError, match=says):
        Marks.read(_written(tmp_path / "marks.jsonl", *lines))


def test_marks_and_rankings_must_match(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "marks.jsonl",
        {"example": "a", "annotator": "x", "features": [30]},
        {"example": "b", "annotator": "x", "features": []},
    )
    marks, ranking = Marks.read(path), _ranked(torch.rand(1, 12))
    with pytest.raises(hf.HoldfastError, match="ours, example a: people marked feature 30, which the case has not"):
        agreement({"ours": ranking}, ["a"], marks)
    with pytest.raises(hf.HoldfastError, match="nobody marked 'q'"):
        agreement({"ours": ranking}, ["q"], marks)
    with pytest.raises(hf.HoldfastError, match="no example has a feature"):
        agreement({"ours": ranking}, ["b"], marks)
    with pytest.raises(hf.HoldfastError, match="ours ranks 1 cases, 2 examples are named"):
        agreement({"ours": ranking}, ["a", "b"], marks)
    with pytest.raises(hf.HoldfastError, match="cannot read the marks"):
        Marks.read(tmp_path / "nowhere.jsonl")


# ---------------------------------------------------------------------- runtime


def test_runtime_counts_rows_and_seconds() -> None:
    result = runtime(_cases(), {"Grad": hf.Grad(), "IG": hf.IntegratedGradients(steps=7)}, repeats=2)
    rows = {row["explainer"]: row for row in result.table()}
    assert rows["Grad"]["rows a case"] == 1
    assert rows["IG"]["rows a case"] == rows["IG"]["of them with gradient"] == 7
    assert 0 < rows["IG"]["fastest"] <= rows["IG"]["s a case"] <= rows["IG"]["slowest"]
    assert rows["IG"]["repetitions"] == 2
    result.plot(Figure().add_subplot())
    with pytest.raises(hf.HoldfastError, match="at least one explainer"):
        runtime(_cases(), {})


# ---------------------------------------------------------------------- diagnostics


def test_diagnostics_hold_one_search_against_the_judge() -> None:
    cases = _cases()
    sizes = (0.1, 0.3, 0.5, 0.9)
    result = diagnostics(
        cases, hf.Grad()(cases), sizes=sizes, judge=hf.Judge.quick(), search=hf.MinNorm(steps=10), seeds=2
    )
    assert result.judged.shape == (4, 4)
    assert result.searched.shape == (2, 4, 4)
    both = torch.isfinite(result.gap())
    assert float(result.gap()[both].min()) > 0.99  # the judge is hardly ever looser
    violations = result.violations()
    assert bool(violations[0].isnan())
    assert bool(((violations[1:] >= 0) & (violations[1:] <= 1)).all())
    with pytest.raises(hf.HoldfastError, match="sizes must rise"):
        diagnostics(cases, hf.Grad()(cases), sizes=(0.5, 0.1))
    assert [row["held"] for row in result.table()] == list(sizes)
    result.plot(Figure().add_subplot())
    with pytest.raises(hf.HoldfastError, match="at least two seeds"):
        diagnostics(cases, hf.Grad()(cases), seeds=1)


def test_diagnostics_of_nothing_found_are_none_and_not_zero() -> None:
    inf = torch.full((2, 3), math.inf)
    result = analyses.Diagnostics((0.1, 0.2, 0.3), inf, inf.expand(2, 2, 3), inf, torch.ones(2, 3), "judge", "search")
    row = result.table()[0]
    assert row["censored by the judge"] == 1
    assert row["one search / judge, mean"] is None
    assert row["largest / smallest of seeds, mean"] is None
    result.plot(Figure().add_subplot())


def test_a_judge_that_found_nothing_is_no_ratio() -> None:
    judged, searched = torch.tensor([[math.inf], [2.0]]), torch.tensor([[[1.0], [3.0]]] * 2)
    result = analyses.Diagnostics((0.1,), judged, searched, judged, torch.ones(2, 1), "judge", "search")
    assert result.table()[0]["one search / judge, mean"] == 1.5
    assert result.table()[0]["of ratios"] == 2


def test_violations_are_counted_where_sizes_really_differ() -> None:
    radius = torch.tensor([[1.0, 0.5, 0.5], [1.0, 2.0, 1.0]])
    moving = torch.tensor([[9, 8, 8], [9, 8, 7]])
    found = Diagnostics((0.1, 0.2, 0.3), radius, radius[None], radius, moving, "", "").violations()
    assert bool(found[0].isnan())
    assert found[1:].tolist() == [0.5, 1.0]


def test_rows_of_a_result_have_the_same_columns_and_no_nan() -> None:
    cases = _cases()
    two = {"Grad": hf.Grad(), "Random": hf.Random()}
    rankings = {name: explainer(cases) for name, explainer in two.items()}
    areas = {"S̄r": {name: hf.trace(cases, ranking, hf.Insertion(0.0)).auc() for name, ranking in rankings.items()}}
    marks = Marks({str(case): {"x": frozenset({case})} for case in range(4)})
    results: list[analyses.Result] = [
        analyses.significance(areas, "Grad", {"S̄r": True}),
        analyses.significance({"S̄r": {name: area[:1] for name, area in areas["S̄r"].items()}}, "Grad", {"S̄r": True}),
        reference_values(cases, rankings, [0.0]),
        sanity(cases, two),
        sensitivity(cases, two, samples=2),
        agreement(rankings, list("0123"), marks),
        runtime(cases, two, repeats=1),
        diagnostics(
            cases, rankings["Grad"], sizes=(0.1, 0.3), judge=hf.MinNorm(), search=hf.MinNorm(steps=10), seeds=2
        ),
    ]
    kinds = [kind for kind in vars(analyses).values() if isinstance(kind, type) and issubclass(kind, analyses.Result)]
    assert {type(result) for result in results} == set(kinds) - {analyses.Result}
    for result in results:
        rows = result.table()
        assert len({tuple(row) for row in rows}) == 1
        assert not any(isinstance(value, float) and math.isnan(value) for row in rows for value in row.values())
        result.plot(Figure().add_subplot())
