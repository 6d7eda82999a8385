"""Models that a command names: a function of the user's own code, TorchScript, ONNX, or the file of a tree model."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from holdfast.errors import HoldfastError, first_line
from holdfast.files import MEGABYTE, reading

_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*")
_SCRIPTS = (".pt", ".ts", ".torchscript")
_TREES = (".json", ".ubj", ".txt", ".skops")
PICKLES = (".pkl", ".pickle", ".joblib", ".pth", ".pt2", ".ckpt", ".bin")
_LARGEST = 65_536 * MEGABYTE


def is_own(name: str | None) -> bool:
    """Return whether a name is that of a user's own model, and not of a known network.

    >>> is_own("my_package.models:network"), is_own("model.onnx"), is_own("imagenet"), is_own("timm:resnet18")
    (True, True, False, False)
    """
    if name is None:
        return False
    known = name.partition(":")[0] in ("torchvision", "timm", "huggingface")
    return Path(name).suffix.lower() in (*_SCRIPTS, ".onnx", *PICKLES) or (
        not known and _FUNCTION.fullmatch(name) is not None
    )


def load_model(name: str, weights: Path | None = None, device: str = "cpu") -> Any:
    """Load a model that a command names.

    Args:
        name: ``package.module:function``: the function is called and returns the model. This runs the user's code, and
            modules of the current folder are found. Or a file: TorchScript (``.pt``), ONNX (``.onnx``, computed by
            onnxruntime as a function without gradients), or trees, as ``hf.trees`` reads them. TorchScript contains
            code: load only files that you trust.
        weights: Weights in a ``.safetensors`` file for the torch module that the function returns.
        device: Where a torch module computes.

    Returns:
        A model that ``hf.as_model`` takes.

    Raises:
        HoldfastError: It cannot be loaded, or the file is a pickle.
    """
    suffix = Path(name).suffix.lower()
    if _FUNCTION.fullmatch(name) is not None:
        made = _called(name)
    elif suffix in PICKLES:
        raise HoldfastError(
            f"{name} is a pickle or may hold one, which can run any code: name a function that builds the network, "
            "package.module:function, with --weights file.safetensors."
        )
    elif suffix in _SCRIPTS:
        with reading(name, "the TorchScript module", _LARGEST), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # torch prefers exported programs, which hold pickles
            made = torch.jit.load(name, map_location=device).eval()
    elif suffix == ".onnx":
        made = _Onnx(name)
    elif suffix in _TREES:
        made = Path(name)
    else:
        raise HoldfastError(
            f"--model {name} is no model: expected package.module:function, TorchScript (.pt), ONNX (.onnx) or trees "
            f"({', '.join(_TREES)})."
        )
    if weights is not None:
        _load_weights(made, weights, name)
    return made.to(device) if isinstance(made, nn.Module) else made


def _called(name: str) -> Any:
    """Import a function of the user's code and return what it returns."""
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # and stays there: the model may import more when it is asked
    try:
        with contextlib.redirect_stdout(sys.stderr):  # the answer alone goes to stdout
            return getattr(importlib.import_module(module), function)()
    except HoldfastError:
        raise
    except ModuleNotFoundError as error:
        raise HoldfastError(f"--model {name} cannot be imported: {first_line(error)}") from error
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise HoldfastError(f"--model {name} failed: {type(error).__name__}: {first_line(error)}") from error


def _load_weights(module: Any, path: Path, name: str) -> None:
    if not isinstance(module, nn.Module):
        raise HoldfastError(f"--weights are for a torch module, and {name} gives a {type(module).__name__}.")
    if path.suffix.lower() != ".safetensors":
        raise HoldfastError(f"--weights must be a .safetensors file, got {path}: other formats may run code.")
    with reading(path, "the weights", _LARGEST):
        tensors = load_file(path)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        raise HoldfastError(f"the weights of {path} do not fit {name}: {first_line(error)}") from error


class _Onnx:
    """An ONNX network as a function of rows, computed by onnxruntime.

    Args:
        name: The file.
    """

    def __init__(self, name: str):
        try:
            import onnxruntime  # not a dependency
        except ImportError as error:
            raise HoldfastError("an ONNX model needs onnxruntime: pip install onnxruntime.") from error
        with reading(name, "the ONNX model", _LARGEST):
            self._session = onnxruntime.InferenceSession(name, providers=["CPUExecutionProvider"])
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            raise HoldfastError(f"{name} has {len(inputs)} inputs: expected one.")
        self._name, self._shape = inputs[0].name, inputs[0].shape

    def __call__(self, rows: Any) -> Any:
        given = np.asarray(rows, dtype=np.float32)
        if self._shape and all(isinstance(n, int) for n in self._shape[1:]):
            given = given.reshape(len(given), *self._shape[1:])
        alone = bool(self._shape) and self._shape[0] == 1  # some are exported for one row at a time
        pieces = [row[None] for row in given] if alone else [given]
        answers = [np.asarray(self._session.run(None, {self._name: piece})[0]) for piece in pieces]
        return np.concatenate(answers).reshape(len(given), -1)
