"""Reads tree ensembles from files, without pickle."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.files import reading
from holdfast.tree_ensembles import from_catboost, from_lightgbm, from_sklearn, from_xgboost
from holdfast.tree_ensembles.ensemble import TreeEnsemble
from holdfast.tree_ensembles.scalers import before_scaling, split_pipeline
from holdfast.tree_ensembles.ubjson import parse

_LARGEST = 2**30  # bytes of a file, and of what an archive unpacks to
_PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".dill")
_PICKLED = (b"\x80", b"c", b"(")  # how pickles begin, and none of the files that are read
_SAFE = (
    "save XGBoost as .json or .ubj, LightGBM as .txt, CatBoost as .json, and scikit-learn with skops.io.dump as .skops"
)
_TREES = ("sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")


def read_trees(path: Path, classes: tuple[str, ...] = ()) -> TreeEnsemble:
    """Return the trees of a file: XGBoost .json or .ubj, LightGBM .txt, CatBoost .json, scikit-learn .skops.

    Args:
        path: The file.
        classes: Names of the classes.

    Raises:
        HoldfastError: The file cannot be read, is a pickle, or holds something else.
    """
    kind = path.suffix.lower()
    readers: dict[str, Callable[[bytes], TreeEnsemble]] = {
        ".json": lambda data: _from_json(data, classes),
        ".ubj": lambda data: from_xgboost.from_json(parse(data), classes),
        ".txt": lambda data: from_lightgbm.from_text(data.decode(), classes),
        ".skops": _from_skops,
    }
    with reading(path, "the trees", _LARGEST if kind in readers else None):
        if kind in _PICKLES:
            raise _pickled()
        if kind not in readers:
            raise HoldfastError(f"its name must end in .json, .ubj, .txt or .skops: {_SAFE}.")
        data = path.read_bytes()
        if data.startswith(_PICKLED):
            raise _pickled()
        return readers[kind](data)


def _pickled() -> HoldfastError:
    return HoldfastError(f"it is a pickle, which can run any code when it is opened: {_SAFE}.")


def _from_json(data: bytes, classes: tuple[str, ...]) -> TreeEnsemble:
    record: Any = json.loads(data)
    if isinstance(record, dict) and "learner" in record:
        return from_xgboost.from_json(record, classes)
    if isinstance(record, dict) and "features_info" in record:
        return from_catboost.from_json(record, classes)
    raise HoldfastError("expected the JSON of an XGBoost or a CatBoost model; LightGBM saves its models as .txt.")


def _from_skops(data: bytes) -> TreeEnsemble:
    try:
        from skops.io import get_untrusted_types, loads
    except ImportError as error:
        raise HoldfastError("reading .skops requires skops: pip install skops.") from error
    plain = _without_trees(data)
    unknown = get_untrusted_types(data=plain)
    if unknown:
        raise HoldfastError(f"it holds {unknown[0]}, which skops does not trust: {_SAFE}.")
    steps, last = split_pipeline(pipeline := loads(plain))
    found = from_sklearn.from_estimator(last)
    if found is None:
        raise HoldfastError(f"it holds a {type(last).__name__}: expected a tree classifier of scikit-learn.")
    names = tuple(map(str, getattr(pipeline, "feature_names_in_", ())))
    return before_scaling(found, steps, names) if steps else found


def _without_trees(data: bytes) -> bytes:
    """Return a file of skops in which each tree is a dictionary of its arrays.

    Skops does not trust the class of trees, whose compiled code believes what a file says about its arrays. So no
    tree is made: its arrays are all that is needed.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as copy:
        if sum(member.file_size for member in archive.infolist()) > _LARGEST:
            raise HoldfastError("it unpacks to more than 1 GiB.")
        for name in archive.namelist():
            content = archive.read(name)
            copy.writestr(name, json.dumps(_plain(json.loads(content))) if name == "schema.json" else content)
    return out.getvalue()


def _plain(node: Any) -> Any:
    """Return a part of the schema with trees replaced by their attributes."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    if f"{node.get('__module__')}.{node.get('__class__')}" in _TREES and "__loader__" in node:
        return _plain(node["content"])
    return {name: _plain(value) for name, value in node.items()}
