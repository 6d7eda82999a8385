"""The matrix of a table with names, which classifiers keep and holdfast compares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xgboost
from sklearn.linear_model import RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

import holdfast as hf
from people import PEOPLE, people

pytest.importorskip("pandas")
Y = [0, 1, 0, 1]


def test_a_named_matrix_has_the_numbers_of_the_plain_one() -> None:
    columns = people()
    named = columns.matrix(PEOPLE, named=True)
    np.testing.assert_array_equal(named.to_numpy(), columns.matrix(PEOPLE))
    assert list(named.columns) == [
        "income",
        "age",
        "job=clerk",
        "job=nurse",
        "job=pilot",
        "education",
        "smokes=False",
        "smokes=True",
    ]


@pytest.mark.parametrize("fit", [RidgeClassifier(), DecisionTreeClassifier()], ids=["linear", "tree"])
def test_renamed_and_moved_columns_are_noticed(fit: object) -> None:
    columns = people()
    fitted = fit.fit(columns.matrix(PEOPLE, named=True), Y)  # type: ignore[attr-defined]
    assert hf.from_sklearn(fitted, columns=columns).ask(columns.encode(PEOPLE)).label.tolist() == Y
    renamed = hf.Columns(tuple(replace(one, name="wage") if one.name == "income" else one for one in columns))
    with pytest.raises(hf.HoldfastError, match="has 'income' where the table has the column 'wage'"):
        hf.from_sklearn(fitted, columns=renamed)
    income, age, *others = columns
    with pytest.raises(hf.HoldfastError, match="has 'income' where the table has the column 'age'"):
        hf.from_sklearn(fitted, columns=hf.Columns((age, income, *others)))


def test_names_that_a_library_refuses_are_changed() -> None:
    table = {"a": [1.0, 2, 3, 4], "b": ["<5", "[5, 6]", "<5", "x"]}
    columns = hf.Columns.read(table)
    named = columns.matrix(table, named=True)
    assert list(named.columns) == ["a", "b=_5", "b=_5, 6_", "b=x"]
    fitted = xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(named, Y)
    assert hf.trees(fitted, columns=columns).columns == tuple(named.columns)
    same = {"a": [1.0, 2], "b": ["<", "["]}
    with pytest.raises(hf.HoldfastError, match="two columns of the matrix would be called 'b=_'"):
        hf.Columns.read(same).matrix(same, named=True)
