"""Models of scikit-learn estimators: the same decisions and scores, and plain refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn import (
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    impute,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from torch import nn

import holdfast as hf

Array = NDArray[np.float64]
WIDTH = 6
GENERATOR = np.random.default_rng(0)


def data(classes: int, rows: int = 150) -> tuple[Array, NDArray[np.int64]]:
    """Overlapping clouds, so that support vectors and votes are many."""
    generator = np.random.default_rng(classes)
    centres = 1.5 * generator.normal(size=(classes, WIDTH))
    y = np.arange(rows) % classes
    return centres[y] + 1.5 * generator.normal(size=(rows, WIDTH)) + 0.3, 10 * y


def rows() -> Array:
    return 3 * np.random.default_rng(7).normal(size=(400, WIDTH))


LINEAR: list[Any] = [
    linear_model.LogisticRegression(),
    linear_model.LogisticRegression(fit_intercept=False),
    svm.LinearSVC(),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr"),
    linear_model.RidgeClassifier(),
    linear_model.RidgeClassifierCV(),
    linear_model.SGDClassifier(random_state=0),
    linear_model.Perceptron(random_state=0),
]
MACHINES: list[Any] = [
    *[kind(kernel=kernel) for kind in (svm.SVC, svm.NuSVC) for kernel in ("linear", "rbf", "poly", "sigmoid")],
    svm.SVC(kernel="poly", degree=2, coef0=1.5, gamma=0.1),
    svm.SVC(break_ties=True),
    svm.SVC(decision_function_shape="ovo"),
]
LIKELIHOODS: list[Any] = [
    naive_bayes.GaussianNB(),
    discriminant_analysis.QuadraticDiscriminantAnalysis(),
    discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.3, priors=None),
]
NETWORKS: list[Any] = [
    neural_network.MLPClassifier((8, 5), activation=activation, max_iter=3000, tol=1e-2, random_state=0)
    for activation in ("identity", "logistic", "tanh", "relu")
]


def agrees(estimator: Any, x: Array) -> hf.Model:
    model = hf.from_sklearn(estimator)
    scores = model(torch.tensor(x), exact=True)
    assert scores.dtype == torch.float64
    assert model.classes == tuple(map(str, estimator.classes_))
    assert np.array_equal(estimator.classes_[scores.argmax(1).numpy()], estimator.predict(x))
    return model


def same_up_to_a_constant(scores: torch.Tensor, expected: Array) -> None:
    if expected.ndim == 1:
        expected = np.column_stack([-expected / 2, expected / 2])
    shifted = torch.tensor(expected)
    gap = (scores - scores[:, :1]) - (shifted - shifted[:, :1])
    assert float(gap.abs().max()) <= 1e-6 * max(1, float(shifted.abs().max()))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("estimator", LINEAR, ids=repr)
def test_linear_classifiers(estimator: Any, classes: int) -> None:
    estimator.fit(*data(classes))
    model = agrees(estimator, rows())
    same_up_to_a_constant(model(torch.tensor(rows())), estimator.decision_function(rows()))
    assert isinstance(model, hf.TorchModel)
    assert isinstance(model.module, nn.Linear)
    radii = hf.ExactLinear()(model.ask(rows()[:3]), torch.ones(3, 1, WIDTH, dtype=torch.bool))
    assert bool(radii.proven.all())
    moved = estimator.predict(radii.witness[:, 0].numpy())
    assert (moved != estimator.predict(rows()[:3])).all()


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("estimator", MACHINES, ids=repr)
def test_support_vector_machines_decide_as_predict_does(estimator: Any, classes: int) -> None:
    if isinstance(estimator, svm.NuSVC):
        estimator.set_params(nu=0.3)
    estimator.fit(*data(classes))
    model = agrees(estimator, rows())
    assert isinstance(model, hf.TorchModel)
    assert isinstance(model.module, nn.Sequential)
    machine: Any = model.module[1]
    pairs = machine.pairs(torch.tensor(rows()))
    shape = estimator.decision_function_shape
    estimator.decision_function_shape = "ovo"
    expected = torch.tensor(estimator.decision_function(rows())).reshape(len(pairs), -1)
    estimator.decision_function_shape = shape
    torch.testing.assert_close(pairs, expected, rtol=1e-6, atol=1e-6 * float(expected.abs().max()))


def test_votes_and_confidences_differ_somewhere() -> None:
    x, y = data(6)
    estimator = svm.SVC(kernel="linear").fit(x, y)
    by_votes, by_confidence = estimator.predict(rows()), estimator.decision_function(rows()).argmax(1)
    assert (estimator.classes_[by_confidence] != by_votes).any(), "otherwise the tests above show nothing"


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("estimator", [*LIKELIHOODS, *NETWORKS], ids=repr)
def test_likelihoods_and_networks(estimator: Any, classes: int) -> None:
    estimator.fit(*data(classes))
    x = rows() / 3
    model = agrees(estimator, x)
    same_up_to_a_constant(model(torch.tensor(x)), estimator.predict_log_proba(x))


@pytest.mark.parametrize(
    "estimator", [svm.SVC(), naive_bayes.GaussianNB(), LIKELIHOODS[1], NETWORKS[2], LINEAR[0]], ids=repr
)
def test_gradients_explainers_and_judge_work(estimator: Any) -> None:
    model = hf.from_sklearn(estimator.fit(*data(3)), bounds=(-20, 20))
    cases = model.ask(data(3)[0][:2])
    assert isinstance(model, hf.TorchModel)
    x = cases.x.clone().requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: model.logits(x)[:, :2], (x,))
    radii = hf.Judge.quick()(cases, torch.ones(2, 1, WIDTH, dtype=torch.bool))
    assert bool(radii.witnessed.all())
    before, after = estimator.predict(cases.x.numpy()), estimator.predict(radii.witness[:, 0].numpy())
    assert (before != after).all()
    assert hf.GreedyAS()(cases).order.shape == (2, WIDTH)


STEPS: list[list[Any]] = [
    [preprocessing.StandardScaler()],
    [preprocessing.StandardScaler(with_mean=False, with_std=False)],
    [preprocessing.MinMaxScaler((-1, 2)), decomposition.PCA(4, whiten=True)],
    [preprocessing.MaxAbsScaler(), preprocessing.RobustScaler(with_centering=False)],
    [preprocessing.RobustScaler(), "passthrough", decomposition.PCA(5)],
    [impute.SimpleImputer(), feature_selection.SelectKBest(k=3)],
    [pipeline.Pipeline([("a", preprocessing.StandardScaler()), ("b", decomposition.TruncatedSVD(3))])],
]


def piped(steps: list[Any], last: Any) -> pipeline.Pipeline:
    return pipeline.Pipeline([(str(i), step) for i, step in enumerate([*steps, last])])


@pytest.mark.parametrize("last", [LINEAR[0], svm.SVC(), neighbors.KNeighborsClassifier(3)], ids=repr)
@pytest.mark.parametrize("steps", STEPS, ids=repr)
def test_affine_steps_are_folded(steps: list[Any], last: Any) -> None:
    whole = piped(steps, last).fit(*data(3))
    model = agrees(whole, rows())
    if isinstance(last, linear_model.LogisticRegression):
        assert isinstance(model, hf.TorchModel)
        assert isinstance(model.module, nn.Linear)
        same_up_to_a_constant(model(torch.tensor(rows())), whole.decision_function(rows()))


def test_columns_are_transformed_side_by_side() -> None:
    x, y = data(3)
    x[:, 4], x[:, 5] = GENERATOR.integers(0, 2, len(x)), GENERATOR.choice([2, 5], len(x))
    nested = pipeline.Pipeline([("a", preprocessing.MinMaxScaler()), ("b", preprocessing.StandardScaler())])
    step = compose.ColumnTransformer(
        [
            ("scaled", preprocessing.StandardScaler(), [3, 1]),
            ("nested", nested, slice(0, 1)),
            ("codes", preprocessing.OneHotEncoder(drop="if_binary"), [4]),
            ("both", preprocessing.OneHotEncoder(), np.array([False] * 5 + [True])),
            ("none", "drop", []),
        ],
        remainder="passthrough",
        sparse_threshold=0,
    )
    agrees(piped([step], linear_model.LogisticRegression()).fit(x, y), x)


def test_names_of_columns_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    x, y = data(2)
    frame = pandas.DataFrame(x, columns=[f"c{i}" for i in range(WIDTH)])
    step = compose.ColumnTransformer([("a", preprocessing.StandardScaler(), ["c4", "c0"])], remainder="drop")
    whole = piped([step], linear_model.LogisticRegression()).fit(frame, y)
    model = hf.from_sklearn(whole, classes=["no", "yes"])
    assert model.columns == tuple(frame.columns)
    assert model.classes == ("no", "yes")
    same_up_to_a_constant(model(torch.tensor(x)), whole.decision_function(frame))


def refusal(estimator: Any, **arguments: Any) -> str:
    with pytest.raises(hf.HoldfastError) as caught:
        hf.from_sklearn(estimator, **arguments)
    message = str(caught.value)
    assert message.endswith(".")
    return message


ALONE = linear_model.LogisticRegression()


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (ALONE, "the LogisticRegression is not fitted: call fit"),
        (piped([preprocessing.StandardScaler()], ALONE), "the Pipeline is not fitted"),
        (nn.Linear(2, 2), "expected a fitted classifier of scikit-learn, got Linear"),
        (None, "expected a fitted classifier of scikit-learn, got NoneType"),
        (linear_model.LinearRegression().fit(*data(2)), "got a LinearRegression, which gives no classes"),
        (preprocessing.StandardScaler().fit(data(2)[0]), "got a StandardScaler, which gives no classes"),
        (piped([decomposition.PCA(2)], tree.DecisionTreeClassifier()), "cannot fold the step PCA before trees"),
        (ensemble.BaggingClassifier(ALONE, 2).fit(*data(2)), "BaggingClassifier: its kind is not known; use hf.Func"),
        (svm.SVC(kernel=lambda a, b: a @ b.T).fit(*data(2)), "its kernel is a function, and only linear, rbf"),
        (neighbors.KNeighborsClassifier(weights="distance").fit(*data(2)), "weights='uniform', got 'distance'"),
        (neighbors.KNeighborsClassifier(p=1).fit(*data(2)), "Euclidean distance, got metric='manhattan'"),
        (piped([preprocessing.Normalizer()], ALONE), "cannot fold the step Normalizer of this pipeline: it is not aff"),
        (piped([preprocessing.MinMaxScaler(clip=True)], ALONE), "MinMaxScaler of this pipeline: clip=True is not"),
        (piped([preprocessing.FunctionTransformer(np.abs)], ALONE), "its function is not known to be affine"),
        (piped([cluster.KMeans(2)], ALONE), "the step KMeans of this pipeline: it is not known to be affine"),
        (piped([impute.SimpleImputer(missing_values=0)], ALONE), "it replaces 0, which an input may hold"),
    ],
    ids=lambda part: part[:30] if isinstance(part, str) else type(part).__name__,
)
def test_what_cannot_be_read_is_refused_in_one_sentence(estimator: Any, said: str) -> None:
    if isinstance(estimator, pipeline.Pipeline) and "not fitted" not in said:
        estimator.fit(*data(2))
    assert said in refusal(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        tree.DecisionTreeClassifier(max_depth=3),
        ensemble.RandomForestClassifier(3, max_depth=3, random_state=0),
        ensemble.HistGradientBoostingClassifier(max_iter=3),
    ],
    ids=repr,
)
def test_trees_are_handed_over(estimator: Any) -> None:
    assert isinstance(agrees(estimator.fit(*data(3)), rows()), hf.TreeModel)
    assert isinstance(hf.from_sklearn(piped(["passthrough"], estimator).fit(*data(3))), hf.TreeModel)


def test_other_columns_are_refused() -> None:
    for estimator in (linear_model.LogisticRegression(), svm.SVC(), neighbors.KNeighborsClassifier()):
        model = hf.from_sklearn(estimator.fit(*data(2)))
        with pytest.raises(hf.HoldfastError, match=r"of 6 co[a-z]+, as in training, got 5: choose the same columns\.$"):
            model.ask(rows()[:, :5])


def test_codes_of_more_than_two_numbers_are_refused() -> None:
    x, y = data(2)
    x[:, 0] = GENERATOR.integers(0, 3, len(x))
    step = compose.ColumnTransformer([("codes", preprocessing.OneHotEncoder(), [0])], remainder="passthrough")
    assert "column 0 has 3 categories, and only two numbers are affine" in refusal(piped([step], ALONE).fit(x, y))


def test_several_labels_are_refused() -> None:
    x, y = data(2)
    several = np.column_stack([y, y[::-1]]) // 10
    assert "several labels" in refusal(neighbors.KNeighborsClassifier().fit(x, several))
    assert "several labels" in refusal(neural_network.MLPClassifier((3,), max_iter=2000, tol=0.1).fit(x, several))
    assert "several labels" in refusal(linear_model.RidgeClassifier().fit(x, several))


def test_bounds_and_names_are_those_of_every_model() -> None:
    fitted = linear_model.LogisticRegression().fit(*data(2))
    assert "low < high" in refusal(fitted, bounds=(1, 0))
    model = hf.from_sklearn(fitted, bounds=(-9, 9), classes=["no", "yes", "perhaps"])
    with pytest.raises(hf.HoldfastError, match="3 classes are named, and the model has 2"):
        model.ask(rows()[:1] / 9)
