"""Nearest-neighbour models: the decisions of scikit-learn, their scores, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

import holdfast as hf
from people import PEOPLE, people


def cloud(seed: int, rows: int = 60, width: int = 4, classes: int = 3) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(rows, width)), generator.integers(0, classes, rows)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 7))
def test_decisions_are_those_of_scikit_learn(seed: int, k: int) -> None:
    points, labels = cloud(seed)
    fitted = KNeighborsClassifier(k).fit(points, labels)
    x = np.random.default_rng(seed + 1).normal(size=(50, 4))
    for model in (hf.neighbours(points, labels, k), hf.neighbours(fitted), hf.from_sklearn(fitted)):
        scores = model(torch.tensor(x))
        assert np.array_equal(fitted.classes_[scores.argmax(1)], fitted.predict(x))
        np.testing.assert_allclose(model.probabilities(scores).numpy(), fitted.predict_proba(x), atol=1e-12)


def test_scores_of_one_neighbour_are_squared_distances() -> None:
    points, labels = cloud(0)
    model = hf.neighbours(points, labels)
    x = np.zeros((1, 4))
    expected = [-min((points[labels == c] ** 2).sum(1)) for c in range(3)]
    np.testing.assert_allclose(model(torch.tensor(x))[0].numpy(), expected, rtol=1e-12)
    assert model.access == hf.Access.SCORES
    assert model.dtype == torch.float64
    assert model.queries.forward == 1


def test_the_smallest_of_tied_classes_wins() -> None:
    model = hf.neighbours([[0.0], [1], [2], [3]], [2, 1, 1, 2], k=4)
    x = torch.tensor([[0.1]])
    assert model(x).argmax().item() == 0
    assert model.classes == ("1", "2")
    fitted = KNeighborsClassifier(4).fit([[0.0], [1], [2], [3]], [2, 1, 1, 2])
    assert fitted.predict([[0.1]]) == [1]


def test_images_and_names() -> None:
    digits = hf.data.mnist()
    model = hf.neighbours(digits.x[:50], [f"digit {int(one)}" for one in digits.y[:50]], bounds=(0, 1))
    cases = model.ask(digits.x[50:53], label="digit 2", target="digit 3")
    assert cases.features.count == 784
    assert repr(model) == "NeighboursModel(50 points, k=1, bounds=(0, 1))"
    assert hf.neighbours([[0.0], [1]], ["b", "a"], classes=["first", "second"]).classes == ("first", "second")


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hf.neighbours(*cloud(0), 3)
    x = torch.randn(20, 4, dtype=torch.float64)
    whole = model(x)
    monkeypatch.setattr(model, "chunk", lambda rows, gradient=True: 3)
    assert torch.equal(model(x), whole)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([[0.0], [1]],), "expected a label for each training point, got none"),
        (([[0.0], [1]], [0]), r"labels must be \[N\] = \[2\], one for each point, got shape \(1,\)"),
        (([0.0, 1], [0, 1]), r"points must be finite training inputs \[N, \*shape\], got shape \(2,\)"),
        (([[0.0], [np.nan]], [0, 1]), "points must be finite training inputs"),
        (("points", [0, 1]), "points must be training inputs"),
        (([[0.0], [1]], [0, 0]), "at least two classes, got one class"),
        (([[0.0], [1]], [0, 1], 3), "k must be at most the number of training points, 2, got 3"),
        (([[0.0], [1]], [0, 1], 0), "k must be a whole number >= 1"),
        (([[0.0], [1]], [0, 1], 1, (1, 0)), "low < high"),
        ((KNeighborsClassifier(),), "the KNeighborsClassifier is not fitted"),
        ((KNeighborsClassifier().fit(*cloud(0)), [0]), "has its own labels and its own k"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(hf.HoldfastError, match=said):
        hf.neighbours(*arguments)


def test_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="3 classes are named, and the model has 2"):
        hf.neighbours([[0.0], [1]], [0, 1], classes=["a", "b", "c"])


def test_it_stays_on_the_cpu() -> None:
    model = hf.neighbours(*cloud(0))
    assert model.on("cpu") is model
    with pytest.raises(hf.HoldfastError, match=r"there is no device|computes on the CPU"):
        model.on("meta")


def test_methods_with_gradients_refuse_it() -> None:
    cases = hf.neighbours(*cloud(0)).ask(torch.zeros(1, 4))
    with pytest.raises(hf.HoldfastError, match="MinNorm needs gradients, and the NeighboursModel gives only scores"):
        hf.MinNorm()(cases, torch.ones(1, 1, 4, dtype=torch.bool))


def test_a_table_is_told_to_neighbours() -> None:
    columns = people()
    matrix, labels = columns.matrix(PEOPLE), ["no", "yes", "no", "yes"]
    x = columns.encode(PEOPLE)
    points = hf.neighbours(matrix, labels, columns=columns)
    fitted = hf.neighbours(KNeighborsClassifier(1).fit(matrix, labels), columns=columns)
    for model in (points, fitted):
        assert model.classes == ("no", "yes")
        assert model(x).argmax(1).tolist() == [0, 1, 0, 1]
        cases = model.ask(x[:1])
        assert cases.features.names == (columns.moving,)
        assert model.low is not None
        assert torch.equal(model.low, columns.bounds()[0])
        radii = hf.ExactNeighbours()(cases, torch.ones(1, 1, len(columns.moving), dtype=torch.bool))
        assert bool(radii.witnessed.all())
        assert bool(columns.domain().contains(radii.witness[0], x[:1]).all()), "a witness is a row"
        assert float(radii.lower[0, 0]) <= float(radii.radius[0, 0])
    torch.testing.assert_close(points(x), fitted(x))


def test_a_judge_measures_rows_of_mixed_columns_from_decisions() -> None:
    columns = people()
    cases = hf.neighbours(columns.matrix(PEOPLE), [0, 1, 0, 1], columns=columns).ask(columns.encode(PEOPLE))
    every = torch.ones(4, 1, len(columns.moving), dtype=torch.bool)
    judged, exact = hf.Judge.quick()(cases, every), hf.ExactNeighbours()(cases, every)
    assert judged.method.startswith("DecisionBased") or "DecisionBased" in " ".join(judged.notes)
    assert bool(judged.witnessed.all())
    assert bool((judged.radius >= exact.lower - 1e-9).all()), "the lower bounds without the domain hold"
    numbers = hf.neighbours(*cloud(0)).ask(torch.zeros(1, 4))
    assert "ExactNeighbours" in " ".join(hf.Judge()(numbers, torch.ones(1, 1, 4, dtype=torch.bool)).notes)


@pytest.mark.parametrize(
    ("arguments", "more", "said"),
    [
        (([[0.0], [1]], [0, 1]), {}, "trained on 1 columns, and columns.matrix gives 8"),
        ((np.zeros((2, 8)), [0, 1], 1, (0, 1)), {}, "columns state the bounds and the scale: leave out"),
        ((KNeighborsClassifier(),), {}, "the KNeighborsClassifier is not fitted"),
    ],
)
def test_tables_that_do_not_fit_are_refused(arguments: tuple[Any, ...], more: dict[str, Any], said: str) -> None:
    with pytest.raises(hf.HoldfastError, match=said):
        hf.neighbours(*arguments, columns=people(), **more)
