"""Fitted classifiers of scikit-learn, alone or at the end of a pipeline, as models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from holdfast.columns import Columns
from holdfast.errors import HoldfastError
from holdfast.models.affine import AffineMap
from holdfast.models.frame import Bound, bounds_of_table, check_column_names
from holdfast.models.neighbours import NeighboursModel, of_estimator
from holdfast.models.sklearn.kernels import kernel_machine
from holdfast.models.sklearn.likelihoods import likelihoods
from holdfast.models.sklearn.linear import Inputs, LinearScores, linear_scores
from holdfast.models.sklearn.perceptrons import perceptron
from holdfast.models.sklearn.refusals import refused
from holdfast.models.sklearn.steps import in_turn
from holdfast.models.sklearn.tables import folded_table
from holdfast.models.torch import TorchModel
from holdfast.models.trees import TreeModel, trees
from holdfast.tree_ensembles.encoders import reads_table


def from_sklearn(
    estimator: Any,
    bounds: tuple[Bound, Bound] | None = None,
    *,
    columns: Columns | None = None,
    classes: Sequence[str] = (),
) -> TorchModel | NeighboursModel | TreeModel:
    """Make a model of a fitted classifier of scikit-learn, in double precision and with gradients where there are any.

    Its decisions are those of ``predict``. Steps of a pipeline before the classifier are folded into one affine map,
    and scalers before trees into their thresholds, so inputs, bounds and radii are in the units of the pipeline's own
    input.

    | classifier | scores | model |
    |---|---|---|
    | linear ones, and linear discriminant analysis | decision_function | a linear ``TorchModel``, for ``ExactLinear`` |
    | SVC, NuSVC | decision_function; several classes: who wins the votes | ``TorchModel`` |
    | GaussianNB, QuadraticDiscriminantAnalysis | log-likelihoods | ``TorchModel`` |
    | MLPClassifier | logits | ``TorchModel`` |
    | trees, forests, boosted trees | as ``hf.trees`` | ``TreeModel``, for ``ExactTrees`` |
    | KNeighborsClassifier | distances or votes | ``NeighboursModel``, for ``ExactNeighbours`` |

    Two classes with one logit z have the scores ``-z/2`` and ``z/2``. The names of an estimator that was fitted on a
    data frame are kept as ``columns``.

    Args:
        estimator: The classifier, or a pipeline that ends in one.
        bounds: The box that inputs live in, ``(low, high)``; None: inputs are not bounded.
        columns: The columns of the table that the estimator was fitted on, as ``columns.matrix(table)``; or the table
            itself, if a ``ColumnTransformer`` encodes its categories. They replace bounds, and whole numbers and
            categories stay what they are.
        classes: Names of the classes. Default: the estimator's ``classes_``.

    Returns:
        The model.

    Raises:
        HoldfastError: It is not fitted, no classifier, or of a kind that cannot be read exactly.
    """
    _check(estimator)
    last, before, width = _split(estimator)
    own_names = tuple(map(str, getattr(estimator, "feature_names_in_", ())))
    step = None if _is_tree(last) else _before(before, width, own_names, columns)
    names = list(classes) or [str(name) for name in last.classes_]
    if columns is not None:
        of_table = reads_table(before, width, columns)
        bounds = bounds_of_table(columns, columns.width if of_table else width, bounds)
        check_column_names(() if of_table else own_names, columns)
    model: TorchModel | NeighboursModel | TreeModel
    if _is_tree(last):
        box = None if columns is not None else bounds
        model = trees(estimator, box, columns=columns, classes=names)  # folds scalers into thresholds
    elif _is_nearest(last):
        model = of_estimator(last, bounds, classes=names, step=step)
    else:
        model = TorchModel(_module(last, step, width), bounds, classes=names)
    model.columns = own_names
    if columns is not None:
        model.domain, model.features = columns.domain(), columns.features()
    return model


def _check(estimator: Any) -> None:
    """Refuse what is no fitted classifier."""
    try:
        from sklearn.base import BaseEstimator, is_classifier
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted
    except ImportError as error:
        raise HoldfastError("scikit-learn is not installed: run pip install scikit-learn.") from error
    name = type(estimator).__name__
    if not isinstance(estimator, BaseEstimator):
        raise HoldfastError(f"expected a fitted classifier of scikit-learn, got {name}.")
    try:
        classifies = is_classifier(estimator)
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise HoldfastError(f"the {name} is not fitted: call fit(X, y) before asking about it.") from error
    except (ValueError, AttributeError, TypeError):  # an empty pipeline
        classifies = False
    if not classifies:
        raise HoldfastError(f"expected a classifier of scikit-learn, got a {name}, which gives no classes.")


def _split(estimator: Any) -> tuple[Any, list[Any], int]:
    """Return the classifier itself, the steps before it, and the number of columns of the input."""
    from sklearn.pipeline import Pipeline

    before: list[Any] = []
    last = estimator
    while isinstance(last, Pipeline):
        before += [one for _, one in last.steps[:-1]]
        last = last.steps[-1][1]
    before = [one for one in before if not (one is None or (isinstance(one, str) and one == "passthrough"))]
    first = before[0] if before else last
    if _has_several_labels(last):
        raise refused(last, "it gives several labels to a row")
    width = int(getattr(estimator, "n_features_in_", None) or getattr(first, "n_features_in_", 0) or 0)
    if before and not width:
        raise refused(first, "it does not say how many columns its input has")
    return last, before, width


def _before(steps: list[Any], width: int, names: tuple[str, ...], columns: Columns | None) -> AffineMap | None:
    """Return the steps before a classifier, after the scales of columns, as one map; None if there is none."""
    if columns is None:
        return in_turn(steps, width) if steps else None
    scaling = AffineMap.scaling(columns.scales, [0.0] * columns.width)
    if reads_table(steps, width, columns):
        return scaling.then(folded_table(steps, names, columns))
    step = in_turn(steps, width) if steps else None
    return scaling if step is None else scaling.then(step)


def _has_several_labels(estimator: Any) -> bool:
    kind = str(getattr(getattr(estimator, "_label_binarizer", None), "y_type_", ""))
    classes = getattr(estimator, "classes_", None)
    return classes is None or isinstance(classes, list) or kind.startswith("multilabel")


def _module(estimator: Any, step: AffineMap | None, width: int) -> nn.Module:
    """Return the scores of a classifier as a network."""
    scores = linear_scores(estimator)
    if scores is not None:
        return LinearScores(scores if step is None else step.then(scores))
    for read in (perceptron, kernel_machine, likelihoods):
        module = read(estimator)
        if module is not None:
            first = Inputs(width) if step is None else LinearScores(step)
            return nn.Sequential(first, module).eval().requires_grad_(False)
    raise refused(estimator, "its kind is not known")


def _is_tree(estimator: Any) -> bool:
    """Whether ``hf.trees`` reads this classifier."""
    from sklearn import ensemble, tree

    kinds = (
        tree.DecisionTreeClassifier,
        ensemble.RandomForestClassifier,
        ensemble.ExtraTreesClassifier,
        ensemble.GradientBoostingClassifier,
        ensemble.HistGradientBoostingClassifier,
    )
    return isinstance(estimator, kinds)


def _is_nearest(estimator: Any) -> bool:
    from sklearn.neighbors import KNeighborsClassifier

    return isinstance(estimator, KNeighborsClassifier)
