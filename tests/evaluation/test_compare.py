"""``compare``: what ``trace`` and ``significance`` give one by one, and every bad argument before any work starts."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.analyses import significance
from holdfast.evaluation.compare import area
from holdfast.models.torch import layers_of
from toys import small_net

FAST = (hf.RobustnessRest(hf.MinNorm(steps=10)), hf.RobustnessRelevant(hf.MinNorm(steps=10)), "insertion", hf.Deletion)


def _model() -> hf.TorchModel:
    return hf.TorchModel(small_net(), (0, 1))


def _x(count: int = 6) -> torch.Tensor:
    return torch.rand(count, 12, generator=torch.Generator().manual_seed(0))


def _compare(**changes: Any) -> hf.Evaluation:
    given: dict[str, Any] = {
        "model": _model(),
        "x": _x(),
        "methods": {"mine": _x() - 0.5, "grad": hf.Grad(), "chance": "random"},
        "criteria": FAST,
    }
    return hf.compare(**(given | changes))


def test_curves_are_those_of_trace_and_tests_those_of_significance() -> None:
    model, result = _model(), _compare(sizes=(0.25, 0.5))
    cases = model.ask(_x())
    rankings = {
        "mine": hf.Ranking.by_score(cases, _x() - 0.5, ties=0),
        "grad": hf.Grad()(cases),
        "chance": hf.Random()(cases),
    }
    assert list(result.criteria) == ["Robustness-S̄r", "Robustness-Sr", "Insertion", "Deletion"]
    assert list(result.rankings) == ["mine", "grad", "chance"]
    for name, criterion in result.criteria.items():
        for method, ranking in rankings.items():
            curve = hf.trace(cases, ranking, criterion, (0.25, 0.5))
            assert torch.equal(result.curves[name][method].values, curve.values)
            assert torch.allclose(result.areas[name][method], curve.auc().double())
    higher = {name: criterion.higher_is_better for name, criterion in result.criteria.items()}
    assert result.tests == significance(result.areas, None, higher)
    assert len(result.tests.comparisons) == 4 * 3, "every pair of methods by every criterion"


def test_a_main_method_is_tested_against_the_others_only() -> None:
    tests = _compare(main="grad").tests
    assert tests is not None
    assert [(one.method, one.other) for one in tests.comparisons[:2]] == [("grad", "mine"), ("grad", "chance")]
    assert len(tests.comparisons) == 4 * 2


def test_a_clear_difference_holds_and_the_same_method_twice_shows_none() -> None:
    net = nn.Linear(8, 2, bias=False).eval()
    net.weight.data = torch.stack([torch.arange(8.0), torch.zeros(8)])
    x = 1 - 0.1 * torch.rand(12, 8, generator=torch.Generator().manual_seed(0))
    right = x * net.weight[0]
    result = hf.compare(
        hf.TorchModel(net, (0, 1)), x, {"right": right, "again": right, "wrong": -right}, criteria=["insertion"]
    )
    assert result.verdicts["Insertion"] == (
        "right and again are better than wrong; no difference between right and again can be shown."
    )


def test_rankings_names_classes_and_instances_are_the_same() -> None:
    cases = _model().ask(_x())
    methods = {"ranking": hf.Grad()(cases), "name": "grad", "class": hf.Grad, "instance": hf.Grad()}
    result = _compare(model=cases.model, x=cases, methods=methods, criteria="insertion")
    areas = [*result.areas["Insertion"].values()]
    assert all(torch.equal(one, areas[0]) for one in areas)


def test_a_module_is_taken_as_a_model() -> None:
    net = small_net()
    result = hf.compare(net, _x(), {"grad": "grad"}, criteria={"shown": hf.Insertion(0.0)})
    assert list(result.criteria) == ["shown"]
    assert result.tests is None
    assert result.verdicts["shown"] == "there is one method, so nothing is compared."


def test_few_features_are_counted_and_many_are_shared() -> None:
    assert _compare().curves["Insertion"]["mine"].sizes.tolist() == [1, 2, 3, 4, 5, 6]
    net = small_net(inputs=20)
    wide = hf.compare(hf.TorchModel(net, (0, 1)), torch.rand(2, 20), {"random": "random"}, criteria="insertion")
    assert wide.curves["Insertion"]["random"].sizes.tolist() == pytest.approx([0.05 * n for n in range(1, 10)])


def test_one_size_compares_values() -> None:
    result = _compare(sizes=3, criteria="insertion")
    curve = result.curves["Insertion"]["mine"]
    assert torch.equal(result.areas["Insertion"]["mine"], curve.values[:, 0].double())
    assert "values (mean" in repr(result)


def test_the_same_seed_gives_the_same_answer() -> None:
    assert _compare(seed=3).to_dict() == _compare(seed=3).to_dict()


def test_an_unknown_area_is_left_out_and_said() -> None:
    values = torch.tensor([[1.0, 2.0], [1.0, math.inf], [math.inf, 3.0]])
    ceiling = torch.tensor([[9.0, 9.0], [9.0, math.inf], [9.0, 9.0]])
    areas = area(hf.Curve(torch.tensor([1, 2]), values, ceiling, "", ""))
    assert areas[[0, 2]].tolist() == [1.5, 6.0]
    assert bool(areas[1].isnan())
    unbounded = hf.TorchModel(small_net())
    result = _compare(model=unbounded, criteria=[FAST[0]], methods={"a": "random", "b": _x()}, sizes=range(1, 12))
    shared = result.shared("Robustness-S̄r")
    row = result.table()[0]
    assert (row["cases"], row["excluded"]) == (int(shared.sum()), int((~shared).sum()))
    assert ("without an area" in repr(result)) == (not bool(shared.all()))


def test_progress_is_reported_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    _compare(progress=lambda done, total: seen.append((done, total)))
    shares = [done / total for done, total in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    _compare(progress=True)
    assert "compare: " in capsys.readouterr().err
    _compare()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "net"}, "cannot read the trees net"),
        ({"methods": [_x()]}, 'methods must be a dict such as {"mine"'),
        ({"methods": {}}, "expected at least one method"),
        ({"methods": {3: _x()}}, "the name of a method must be a text, got 3"),
        ({"methods": {" ": _x()}}, "the name of a method must be a text"),
        ({"methods": {"mine": _x(5)}}, r"method 'mine': attributions must be \[6, 12\]"),
        ({"methods": {"mine": "gradd"}}, "method 'mine': there is no explainer 'gradd': did you mean grad"),
        ({"methods": {"a\nb": "lrp", "c": None}}, "method 'c': attributions must be a tensor"),
        ({"methods": {"r": hf.Ranking.by_score(_model().ask(_x(2)), _x(2))}}, "method 'r': the ranking orders"),
        ({"main": "other"}, "there is no method 'other'"),
        ({"main": ["mine"]}, "main must be"),
        ({"criteria": []}, "criteria must be at least one criterion"),
        ({"criteria": 7}, "criteria must be at least one criterion"),
        ({"criteria": ["insertoin"]}, "there is no criterion 'insertoin': did you mean insertion"),
        ({"criteria": [hf.Insertion(0.0), hf.Insertion(1.0)]}, "two criteria are called Insertion: give them names"),
        ({"criteria": {7: "insertion"}}, "the name of a criterion must be a text"),
        ({"criteria": [hf.Insertion("blur")]}, "criterion 'Insertion': reference 'blur' is for images"),
        ({"model": hf.TorchModel(small_net())}, "criterion 'Insertion': uniform noise needs a model with bounds"),
        ({"sizes": (0.5, 0.2)}, "sizes must be rising"),
        ({"sizes": (1, 0.5)}, "sizes must be rising"),
        ({"sizes": 13}, "a size must be at most the 12 features"),
        ({"sizes": 0}, "a size must be at least one feature"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"progress": 3}, "progress must be True, False or a function"),
        ({"x": _x() + 5}, "leaves the model's bounds"),
        ({"x": _model().ask(_x())}, "the cases were asked of another model"),
    ],
)
def test_a_bad_argument_is_one_sentence_before_any_work(changes: Any, said: str) -> None:
    worked: list[int] = []
    with pytest.raises(hf.HoldfastError, match=said) as error:
        _compare(**({"progress": lambda done, total: worked.append(done)} | changes))
    assert worked == []
    assert "\n" not in str(error.value)


def test_an_error_of_an_explainer_names_the_method() -> None:
    with pytest.raises(hf.HoldfastError, match="method 'few': kernel SHAP with 12 features"):
        _compare(methods={"few": hf.KernelShap(samples=10)})


def test_cases_bring_their_question() -> None:
    cases = _model().ask(_x(), target=(_model().ask(_x()).label + 1) % 4)
    result = hf.compare(cases.model, cases, {"grad": "grad"}, criteria="deletion")
    assert torch.equal(result.rankings["grad"].order, hf.Grad()(cases).order)
    again = hf.compare(layers_of(cases.model).module, cases, {"grad": "grad"}, criteria="deletion")
    assert again.to_dict() == result.to_dict()
    with pytest.raises(hf.HoldfastError, match="cases have a label, a target and features already"):
        hf.compare(cases.model, cases, {"grad": "grad"}, target=1)


def test_a_model_without_gradients_refuses_explainers_that_need_them() -> None:
    model = hf.FunctionModel(lambda rows: small_net()(torch.as_tensor(rows).double()).numpy(), bounds=(0, 1))
    with pytest.raises(hf.HoldfastError, match="method 'grad': Grad needs gradients"):
        hf.compare(model, _x(), {"grad": "grad"}, criteria="insertion")
    assert "mine" in repr(hf.compare(model, _x(), {"mine": _x(), "chance": "random"}, criteria="insertion"))
