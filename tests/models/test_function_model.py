"""Functions as models: texts as decisions, and limits of the queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import holdfast as hf

NAMES = ["refused", "granted"]


def _decide(rows: Any) -> Any:
    return np.where(rows.sum(1) > 1, "granted", "refused")


FORMS = {
    "array": _decide,
    "objects": lambda rows: _decide(rows).astype(object),
    "list": lambda rows: _decide(rows).tolist(),
    "string type": lambda rows: _decide(rows).astype(np.dtypes.StringDType()),
}


@pytest.mark.parametrize("form", FORMS)
def test_texts_are_read_as_classes(form: str) -> None:
    model = hf.FunctionModel(FORMS[form], (0, 1), classes=NAMES, decisions=True)
    x = torch.tensor([[0.1, 0.2], [0.9, 0.8]])
    assert model(x).tolist() == [[1, 0], [0, 1]]
    cases = model.ask(x)
    assert cases.label.tolist() == [0, 1]
    assert model.ask(x[:1], target="granted").target.tolist() == [1]
    radii = hf.DecisionBased(queries=300)(cases, torch.ones(2, 1, 2, dtype=torch.bool))
    numbers = hf.FunctionModel(lambda rows: (rows.sum(1) > 1).astype(int), (0, 1), classes=2)
    same = hf.DecisionBased(queries=300)(numbers.ask(x), torch.ones(2, 1, 2, dtype=torch.bool))
    assert torch.equal(radii.radius, same.radius)


def test_texts_of_pandas_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    model = hf.FunctionModel(lambda rows: pandas.Series(_decide(rows)), (0, 1), classes=NAMES, decisions=True)
    assert model(torch.tensor([[0.9, 0.8]])).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("function", "settings", "said"),
    [
        (_decide, {}, "the function returns texts: give the names of all classes and decisions=True"),
        (_decide, {"classes": 2}, "the function returns texts: give the names of all classes"),
        (_decide, {"classes": NAMES}, "the function returns texts: give the names of all classes"),
        (
            lambda rows: np.where(rows.sum(1) > 1, "granted", "maybe"),
            {"classes": NAMES, "decisions": True},
            "must return names of classes, refused, granted, got 'maybe'",
        ),
        (
            lambda rows: _decide(rows)[:, None],
            {"classes": NAMES, "decisions": True},
            r"must return whole decisions \[R\]",
        ),
        (
            lambda rows: np.array([object()] * len(rows)),
            {"classes": NAMES, "decisions": True},
            "must return class numbers from 0, or scores, got a ndarray of object",
        ),
    ],
)
def test_texts_that_are_no_classes_are_refused(function: Any, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(hf.HoldfastError, match=said):
        hf.FunctionModel(function, (0, 1), **settings).ask(torch.tensor([[0.1, 0.2]]))


def _counted() -> tuple[list[int], Any]:
    got: list[int] = []

    def scores(rows: Any) -> Any:
        got.append(len(rows))
        return np.stack([rows.sum(1), 1.5 - rows.sum(1)], 1)

    return got, scores


def test_no_row_beyond_the_limit_reaches_the_function() -> None:
    got, scores = _counted()
    model = hf.FunctionModel(scores, (0, 1), most_queries=500)
    cases = model.ask(torch.tensor([[0.9, 0.8, 0.7]]))
    for _ in range(2):  # what is over the limit stays over it
        with pytest.raises(
            hf.HoldfastError, match=r"^this function may get 500 rows, it got \d+, and \d+ more are asked"
        ):
            hf.Greedy(budget=2)(cases)
    assert 0 < sum(got) <= 500


def test_a_question_within_the_limit_is_answered_as_without_it() -> None:
    x = torch.tensor([[0.9, 0.8, 0.7]])
    rankings = []
    got, scores = _counted()
    for limit in (None, 10_000):
        ranking = hf.LeaveOneOut()(hf.FunctionModel(scores, (0, 1), most_queries=limit).ask(x))
        rankings.append(ranking.scores)
    assert torch.equal(*rankings)
    exactly = sum(got) // 2
    hf.LeaveOneOut()(hf.FunctionModel(scores, (0, 1), most_queries=exactly).ask(x))
    with pytest.raises(hf.HoldfastError, match="raise most_queries"):
        hf.LeaveOneOut()(hf.FunctionModel(scores, (0, 1), most_queries=exactly - 1).ask(x))
    with pytest.raises(hf.HoldfastError, match="most_queries must be a whole number >= 1"):
        hf.FunctionModel(scores, most_queries=0)
