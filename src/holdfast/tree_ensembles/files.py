"""Reads tree ensembles from files, without pickle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, first_line
from holdfast.tree_ensembles import from_catboost, from_lightgbm, from_sklearn, from_xgboost
from holdfast.tree_ensembles.ensemble import TreeEnsemble
from holdfast.tree_ensembles.ubjson import parse

_LARGEST = 2**30  # bytes of a file
_PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".dill")
_SAFE = (
    "save XGBoost as .json or .ubj, LightGBM as .txt, CatBoost as .json, and scikit-learn with skops.io.dump as .skops"
)


def read_trees(path: Path, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a file: XGBoost .json or .ubj, LightGBM .txt, CatBoost .json, scikit-learn .skops.

    Args:
        path: The file.
        classes: Names of the classes.

    Raises:
        HoldfastError: The file cannot be read, is a pickle, or holds something else.
    """
    kind = path.suffix.lower()
    if kind in _PICKLES:
        raise HoldfastError(f"{path} is a pickle, which can run any code when it is opened: {_SAFE}.")
    readers: dict[str, Callable[[bytes], TreeEnsemble | None]] = {
        ".json": lambda data: _from_json(data, classes),
        ".ubj": lambda data: from_xgboost.from_json(parse(data), None, classes),
        ".txt": lambda data: from_lightgbm.from_text(data.decode(), classes),
        ".skops": _from_skops,
    }
    if kind not in readers:
        raise HoldfastError(f"{path} must end in .json, .ubj, .txt or .skops: {_SAFE}.")
    try:
        if path.stat().st_size > _LARGEST:
            raise HoldfastError(f"{path} is larger than 1 GiB.")
        found = readers[kind](path.read_bytes())
    except HoldfastError as error:
        raise HoldfastError(f"{path}: {str(error).removeprefix(f'{path} ')}") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise HoldfastError(f"{path} cannot be read: {first_line(error)}") from error
    if found is None:
        raise HoldfastError(f"{path} holds no tree classifier of scikit-learn.")
    return found


def _from_json(data: bytes, classes: tuple[str, ...]) -> TreeEnsemble:
    record: Any = json.loads(data)
    if isinstance(record, dict) and "learner" in record:
        return from_xgboost.from_json(record, None, classes)
    if isinstance(record, dict) and "features_info" in record:
        return from_catboost.from_json(record, classes)
    raise HoldfastError("expected the JSON of an XGBoost or a CatBoost model.")


def _from_skops(data: bytes) -> TreeEnsemble | None:
    try:
        from skops.io import get_untrusted_types, loads
    except ImportError as error:
        raise HoldfastError("reading .skops requires skops: pip install skops.") from error
    try:
        unknown = get_untrusted_types(data=data)
        if unknown:
            raise HoldfastError(f"it holds types that skops does not trust, such as {unknown[0]}.")
        return from_sklearn.from_estimator(loads(data))
    except HoldfastError:
        raise
    except Exception as error:  # skops has no one class for a damaged file
        raise HoldfastError(f"skops cannot read it: {first_line(error)}") from error
