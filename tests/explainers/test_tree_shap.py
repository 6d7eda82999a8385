"""TreeSHAP beside Shapley values of the model itself, and what it refuses."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import pytest
import torch

import holdfast as hf
from holdfast.explainers import tree_shap
from tree_fits import FITS, MORE, TWO
from tree_models import table

pytest.importorskip("shap")
EVERY = [*((name, fit, classes) for name, fit in FITS.items() for classes in (2, 3))]
EVERY += [(name, fit, 2) for name, fit in TWO.items()] + [(name, fit, 3) for name, fit in MORE.items()]


@pytest.mark.parametrize(("name", "fit", "classes"), EVERY)
def test_values_are_shapley_values_of_the_scores(name: str, fit: object, classes: int) -> None:
    assert callable(fit)
    x, y = table(classes=classes)
    model = hf.trees(fit(x, y), bounds=(0, 1))
    cases, point = model.ask(x[:3]), torch.from_numpy(x[50])
    expected = hf.KernelShap(point).attribute(cases)  # all subsets of few columns: exact
    torch.testing.assert_close(hf.TreeShap(reference=point).attribute(cases), expected, rtol=0, atol=1e-5)
    targeted = model.ask(x[:3], target=(cases.label + 1) % classes)
    expected = hf.KernelShap(point).attribute(targeted)
    torch.testing.assert_close(hf.TreeShap(reference=point).attribute(targeted), expected, rtol=0, atol=1e-5)


def _cases(count: int = 4) -> hf.Cases:
    cases: hf.Cases = hf.data.adult_trees().ask(hf.data.adult().x[:count])
    return cases


def test_references_are_averaged() -> None:
    cases, rows = _cases(), hf.data.adult().x[100:105]
    each = [hf.TreeShap(reference=row).attribute(cases) for row in rows]
    together = hf.TreeShap(references=rows).attribute(cases)
    torch.testing.assert_close(together, torch.stack(each).mean(0), rtol=0, atol=1e-6)
    many = hf.TreeShap(references=hf.data.adult().x[100:300]).attribute(cases)  # shap itself would draw 100 of them
    halves = [hf.TreeShap(references=hf.data.adult().x[a : a + 100]).attribute(cases) for a in (100, 200)]
    torch.testing.assert_close(many, (halves[0] + halves[1]) / 2, rtol=0, atol=1e-6)


def test_values_add_up_to_the_difference_of_the_scores() -> None:
    cases, rows = _cases(), hf.data.adult().x[100:150]
    free = replace(cases, features=hf.Features.columns(list(range(43)), 43))  # the fixed columns share, too
    fixed = cases.features.ids[0] < 0
    assert bool(fixed.any())
    total = hf.TreeShap(references=rows).attribute(free).sum(1)
    own = cases.model(cases.x).gather(1, cases.label[:, None])[:, 0]
    average = cases.model(rows).mean(0)[cases.label]
    torch.testing.assert_close(total, own - average, rtol=0, atol=1e-5)


def test_an_order_does_not_depend_on_the_batch_and_names_its_method() -> None:
    cases = _cases()
    explainer = hf.TreeShap(references=hf.data.adult().x[100:110])
    together = explainer(cases)
    assert together.method == repr(explainer)
    assert hf.TreeShap().rows(8) == 0
    before = cases.model.queries
    for number in range(len(cases)):
        assert torch.equal(explainer(cases[number]).order[0], together.order[number])
    assert cases.model.queries == before
    reports: list[tuple[int, int]] = []
    explainer(cases, lambda done, total: reports.append((done, total)))
    assert reports[-1] == (4, 4)


def test_other_models_and_a_missing_library_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbours = hf.neighbours([[0.0, 0], [1, 1]], [0, 1], bounds=(0, 1)).ask([[0.2, 0.1]])
    with pytest.raises(hf.HoldfastError, match=r"models that hf\.trees made, got a NeighboursModel"):
        hf.TreeShap()(neighbours)
    found = importlib.util.find_spec
    monkeypatch.setattr(tree_shap, "find_spec", lambda name: None if name == "shap" else found(name))
    with pytest.raises(hf.HoldfastError, match=r"^TreeShap needs shap: pip install shap\.$"):
        hf.TreeShap()(_cases(1))


def test_what_shap_says_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import shap

    def fail(*_: object, **__: object) -> None:
        raise ValueError("no such trees\nand more")

    monkeypatch.setattr(shap, "TreeExplainer", fail)
    with pytest.raises(hf.HoldfastError, match=r"^shap cannot explain these trees of \S+: no such trees\.$"):
        hf.TreeShap(hf.data.adult().x[50:60])(_cases(1))
