"""Pipelines of scikit-learn that were fitted on tables with categories, beside their own predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import holdfast as hf

pandas = pytest.importorskip("pandas")
JOBS, GRADES = ["clerk", "nurse", "pilot", "smith"], ["low", "middle", "high"]


def _table(seed: int = 0, rows: int = 120) -> dict[str, Any]:
    drawn = np.random.default_rng(seed)
    return {
        "job": [JOBS[one] for one in drawn.integers(0, 4, rows)],
        "age": drawn.integers(20, 60, rows).tolist(),
        "smokes": [bool(one) for one in drawn.integers(0, 2, rows)],
        "income": drawn.uniform(1, 4, rows).round(2).tolist(),
        "grade": [GRADES[one] for one in drawn.integers(0, 3, rows)],
    }


TABLE = _table()
FRAME = pandas.DataFrame(TABLE)
Y = np.array([one > 2.4 for one in TABLE["income"]]) ^ np.array([one == "pilot" for one in TABLE["job"]])
COLUMNS = hf.Columns.read(TABLE, kinds={"grade": "ordered"}, categories={"grade": GRADES})


def _transformer(**encoder: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["income", "age"]),
            ("categories", OneHotEncoder(**encoder), ["job", "smokes"]),
            ("ordered", OrdinalEncoder(categories=[GRADES]), ["grade"]),
        ]
    )


PARTS = {
    "one-hot": _transformer(),
    "first dropped": _transformer(drop="first"),
    "unknown ignored": _transformer(handle_unknown="ignore"),
    "imputed, the rest passed through": ColumnTransformer(
        [
            ("a", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), [0]),
            ("b", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
            ("c", make_pipeline(OrdinalEncoder(categories=[GRADES]), StandardScaler()), ["grade"]),
        ],
        remainder="passthrough",
    ),
    "places of categories": ColumnTransformer(
        [("a", OrdinalEncoder(), ["job"]), ("b", "passthrough", ["smokes", "income"])], remainder="drop"
    ),
}
LAST = [LogisticRegression(max_iter=500), SVC(), KNeighborsClassifier(1), MLPClassifier((5,), max_iter=50)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("last", LAST, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("part", PARTS)
def test_decisions_are_those_of_the_pipeline(part: str, last: Any) -> None:
    pipeline = make_pipeline(PARTS[part], last).fit(FRAME, Y)
    model = hf.from_sklearn(pipeline, columns=COLUMNS, classes=["refused", "granted"])
    other = _table(1)
    kept = [n for n, age in enumerate(other["age"]) if COLUMNS["age"].low <= age <= COLUMNS["age"].high]
    rows = pandas.DataFrame(other).iloc[kept].assign(income=lambda one: one["income"].clip(1.1, 3.9))
    rows = rows.reset_index(drop=True)
    x = COLUMNS.encode(rows)
    expected = torch.from_numpy(pipeline.predict(rows[list(FRAME.columns)]).astype(int))
    assert torch.equal(model(x).argmax(1), expected)
    cases = model.ask(x[:2])
    assert cases.features.names == (COLUMNS.moving,)


TREES = {
    "forest": RandomForestClassifier(5, max_depth=5, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "xgboost": xgboost.XGBClassifier(n_estimators=5, max_depth=4, n_jobs=1),
}


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("part", [part for part in PARTS if part != "places of categories"])
def test_trees_after_encoders_decide_as_the_pipeline(part: str, kind: str) -> None:
    pipeline = make_pipeline(PARTS[part], TREES[kind]).fit(FRAME, Y)
    model = hf.trees(pipeline, columns=COLUMNS, classes=["refused", "granted"])
    rows = pandas.DataFrame(_table(1)).assign(income=lambda one: one["income"].clip(1.1, 3.9))
    rows = rows.assign(age=rows["age"].clip(21, 58))
    x = COLUMNS.encode(rows)
    expected = pipeline.predict_proba(rows)
    np.testing.assert_allclose(model.probabilities(model(x)).numpy(), expected, rtol=0, atol=1e-5)
    cases = model.ask(x[:2])
    radii = hf.ExactTrees()(cases, np.ones((2, 1, 5), bool))
    assert bool(radii.proven.all())
    changed = COLUMNS.to_frame(radii.witness[:, 0], like=rows)
    decided = pipeline.predict(changed).astype(int)
    assert (decided != cases.label.numpy()).all(), "the pipeline itself changes its mind at every witness"


def test_a_category_that_the_table_does_not_have_is_never_there() -> None:
    frame = FRAME.assign(job=["wizard" if job == "smith" else job for job in FRAME["job"]])
    pipeline = make_pipeline(_transformer(), RandomForestClassifier(9, random_state=0)).fit(frame, Y)
    few = frame[frame["job"] != "wizard"].reset_index(drop=True)
    columns = hf.Columns.read(few, kinds={"grade": "ordered"}, categories={"grade": GRADES})
    for last in (RandomForestClassifier(9, random_state=0), LogisticRegression()):
        pipeline = make_pipeline(_transformer(), last).fit(frame, Y)
        model = hf.from_sklearn(pipeline, columns=columns)
        assert model(columns.encode(few)).argmax(1).tolist() == pipeline.predict(few).astype(int).tolist()


def test_a_change_is_read_aloud() -> None:
    pipeline = make_pipeline(_transformer(), LogisticRegression()).fit(FRAME, Y)
    model = hf.from_sklearn(pipeline, columns=COLUMNS, classes=["refused", "granted"])
    cases = model.ask(COLUMNS.encode(FRAME.iloc[:1]))
    radii = hf.DecisionBased(queries=500)(cases, np.ones((1, 1, 5), bool))
    assert bool(radii.witnessed.all())
    assert " if " in COLUMNS.sentence(COLUMNS.changes(cases.x[0], radii.witness[0, 0]))


def test_the_matrix_is_read_as_before() -> None:
    matrix = COLUMNS.matrix(TABLE)
    plain = LogisticRegression(max_iter=500).fit(matrix, Y)
    model = hf.from_sklearn(plain, columns=COLUMNS)
    x = COLUMNS.encode(TABLE)
    assert torch.equal(model(x).argmax(1), torch.from_numpy(plain.predict(matrix).astype(int)))


def _refusal(estimator: Any, columns: hf.Columns = COLUMNS) -> str:
    with pytest.raises(hf.HoldfastError) as caught:
        hf.from_sklearn(estimator, columns=columns)
    return str(caught.value)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            ColumnTransformer([("a", OneHotEncoder(), ["grade"])]),
            "OneHotEncoder of this pipeline: it gets the column 'grade', which is ordered: state it as categorical",
        ),
        (
            ColumnTransformer([("a", OneHotEncoder(min_frequency=40), ["job"])]),
            "it joins rare categories",
        ),
        (
            ColumnTransformer([("a", OrdinalEncoder(), ["grade"])]),
            "its categories of the column 'grade' are not those of the table in the same order",
        ),
    ],
)
def test_encoders_that_do_not_fit_are_refused_by_name(step: ColumnTransformer, said: str) -> None:
    assert said in _refusal(make_pipeline(step, LogisticRegression()).fit(FRAME, Y))


def test_tables_that_do_not_fit_are_refused() -> None:
    pipeline = make_pipeline(_transformer(), LogisticRegression()).fit(FRAME, Y)
    more = hf.Columns.read(TABLE, kinds={"grade": "ordered"}, categories={"grade": GRADES, "job": [*JOBS, "wizard"]})
    assert "it does not know the category 'wizard' of 'job'" in _refusal(pipeline, more)
    renamed = hf.Columns.read({**{k: v for k, v in TABLE.items() if k != "age"}, "years": TABLE["age"]})
    assert "the table has job, smokes, income, grade, years" in _refusal(pipeline, renamed)
    places = make_pipeline(PARTS["places of categories"], RandomForestClassifier(3)).fit(FRAME, Y)
    assert "OrdinalEncoder of this pipeline: before trees, it gets 'job', whose categories have no order" in _refusal(
        places
    )
    lines = make_pipeline(ColumnTransformer([("a", PCA(2), ["age", "income"])]), RandomForestClassifier(3))
    assert "cannot fold the step PCA before trees" in _refusal(lines.fit(FRAME, Y))
    scaled = ColumnTransformer([("a", StandardScaler(), ["job"])])
    numbers = make_pipeline(scaled, LogisticRegression()).fit(FRAME.assign(job=1.5), Y)
    assert "StandardScaler of this pipeline: it gets the column 'job', which has categories" in _refusal(numbers)
