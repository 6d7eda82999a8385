"""A model of any library as a model of holdfast."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from holdfast.cases import AskableModel
from holdfast.columns import Columns
from holdfast.errors import HoldfastError, UnreadableError
from holdfast.models.frame import Bound
from holdfast.models.function import FunctionModel
from holdfast.models.model import Model
from holdfast.models.sklearn import from_sklearn
from holdfast.models.torch import TorchModel
from holdfast.models.trees import trees
from holdfast.text import TextModel, huggingface

_TREES = ("xgboost", "lightgbm", "catboost")
_KINDS = (
    "a torch module, a classifier of scikit-learn, XGBoost, LightGBM or CatBoost, a transformers classifier with its "
    "tokenizer, a function of rows, or the file of a tree model"
)


def as_model(
    model: Any,
    bounds: tuple[Bound, Bound] | None = None,
    *,
    normalize: tuple[Bound, Bound] | None = None,
    classes: Sequence[str] = (),
    columns: Columns | None = None,
) -> AskableModel | TextModel:
    """Make a model of holdfast of a model of any library.

    | model | made by |
    |---|---|
    | a model of holdfast | taken as it is |
    | ``torch.nn.Module`` | ``hf.TorchModel`` |
    | XGBoost, LightGBM, CatBoost, or the file of a tree model | ``hf.trees`` |
    | a classifier or pipeline of scikit-learn | ``hf.from_sklearn``; kinds that it cannot read: ``hf.FunctionModel`` |
    | ``(classifier, tokenizer)`` or a text pipeline of transformers | ``hf.text.huggingface`` |
    | another callable | ``hf.FunctionModel`` |

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> x, y = load_iris(return_X_y=True)
    >>> as_model(LogisticRegression(max_iter=500).fit(x, y), bounds=(0, 10))
    TorchModel(LinearScores, bounds=(0, 10), output=not asked yet)

    Args:
        model: The model.
        bounds: The box that inputs live in, ``(low, high)``; None: inputs are not bounded.
        normalize: ``(mean, std)`` for each channel, applied to inputs before a torch module.
        classes: Names of the classes. Default: those that the model knows, or numbers. A function that returns
            decisions as numbers needs ``hf.FunctionModel`` itself.
        columns: The columns of the table that the model was fitted on.

    Returns:
        The model. One of texts is a ``TextModel``.

    Raises:
        HoldfastError: It is of no known kind, not fitted, or does not go with an argument.
    """
    root = type(model).__module__.partition(".")[0]
    given = {"bounds": bounds, "normalize": normalize, "classes": classes or None, "columns": columns}
    stated = [name for name, value in given.items() if value is not None]
    if isinstance(model, (Model, TextModel)):
        _check_none(stated, f"a {type(model).__name__} has its own")
        assert isinstance(model, (AskableModel, TextModel))
        return model
    if normalize is not None and not isinstance(model, nn.Module):
        raise HoldfastError(f"normalize is for torch modules, got a {type(model).__name__}: leave it out.")
    if (pair := _of_transformers(model)) is not None:
        _check_none([name for name in stated if name != "classes"], "a model of texts has no")
        return huggingface(*pair, list(classes) or None)
    if isinstance(model, nn.Module):
        return _of_module(model, bounds, normalize, classes, columns)
    if isinstance(model, (str, Path)) or root in _TREES:
        return trees(model, bounds, columns=columns, classes=classes)
    if hasattr(model, "get_params") and hasattr(model, "predict"):
        return _of_estimator(model, bounds, classes, columns)
    if callable(model):
        return FunctionModel(model, bounds, classes=classes, columns=columns)
    raise HoldfastError(f"expected {_KINDS}, got {type(model).__name__}.")


def reads_texts(model: Any) -> bool:
    """Return whether a model, not yet read, reads texts."""
    return isinstance(model, TextModel) or _of_transformers(model) is not None


def _check_none(stated: Sequence[str], why: str) -> None:
    if stated:
        raise HoldfastError(f"{why} {' and '.join(stated)}: leave {stated[0]} out.")


def _of_transformers(model: Any) -> tuple[Any, Any] | None:
    """Return the classifier and its tokenizer, if they are given as a pair or as a pipeline; None for other models."""
    if isinstance(model, (tuple, list)) and len(model) == 2 and isinstance(model[0], nn.Module):
        return model[0], model[1]
    pipeline = not isinstance(model, nn.Module) and hasattr(model, "tokenizer") and hasattr(model, "task")
    return (model.model, model.tokenizer) if pipeline and isinstance(model.model, nn.Module) else None


def _of_module(
    module: nn.Module, bounds: Any, normalize: Any, classes: Sequence[str], columns: Columns | None
) -> TorchModel:
    if columns is None:
        return TorchModel(module, bounds, normalize=normalize, classes=classes)
    if bounds is not None or normalize is not None:
        raise HoldfastError("columns give the bounds and the scales of a table: leave bounds and normalize out.")
    # The module was trained on unscaled numbers; points of a table are in units of the columns' scales.
    made = TorchModel(module, columns.bounds(), normalize=(0.0, 1 / columns.scales), classes=classes)
    made.domain, made.features, made.columns = columns.domain(), columns.features(), columns.names
    return made


def _of_estimator(estimator: Any, bounds: Any, classes: Sequence[str], columns: Columns | None) -> AskableModel:
    try:
        return from_sklearn(estimator, bounds, columns=columns, classes=classes)
    except UnreadableError:
        names = list(classes) or [str(name) for name in estimator.classes_]
        score = next((name for name in ("predict_proba", "decision_function") if hasattr(estimator, name)), "predict")
        if hasattr(estimator, "threshold") or hasattr(estimator, "best_threshold_"):
            score = "predict"  # its decision is not that of the largest score
        answer = _answer(estimator, score, columns)
        decides = None if score != "predict" else True
        return FunctionModel(answer, bounds, classes=names, decisions=decides, columns=columns)


def _answer(estimator: Any, score: str, columns: Columns | None) -> Callable[[Any], Any]:
    """Return the scores or the decisions of an estimator as a function of ``columns.matrix(table)``.

    An estimator that was fitted on the table itself gets a frame, and no warnings about rows without names.
    """
    width = getattr(estimator, "n_features_in_", None)
    frames = columns is not None and width == len(columns) and (width != columns.width or _selects_by_name(estimator))

    def answer(rows: Any) -> Any:
        given = rows
        if frames and columns is not None:
            import pandas as pd  # not a dependency; the estimator was fitted on a frame

            points = torch.as_tensor(rows) / columns.scales
            given = pd.DataFrame(columns.decode(points), columns=list(columns.names))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            found = np.asarray(getattr(estimator, score)(given))
        if score == "predict":
            return np.searchsorted(estimator.classes_, found)
        return np.stack([-found / 2, found / 2], 1) if found.ndim == 1 else found  # one logit for two classes

    return answer


def _selects_by_name(estimator: Any) -> bool:
    """Whether the first step of a pipeline chooses columns, perhaps by name."""
    steps = getattr(estimator, "steps", None)
    return isinstance(steps, list) and bool(steps) and hasattr(steps[0][1], "transformers")
