"""The content of a model and of its cases as a short text: equal content, equal text, wherever it was made."""

from __future__ import annotations

import hashlib

from torch import Tensor, nn

from holdfast.cases import Cases
from holdfast.errors import HoldfastError
from holdfast.models.function import FunctionModel
from holdfast.models.torch import TorchModel


def of_model(model: TorchModel, name: str | None = None) -> str:
    """A hash of layers, weights and bounds, or of its name and bounds.

    What a module's own code does beyond its layers is not seen: name a model whose code has changed anew.
    """
    if name is None and isinstance(model, FunctionModel):
        raise HoldfastError("a function has no weights to know it by: give the study a name for its model.")
    if name is not None:
        digest = hashlib.sha256(f"{name}\n{model.classes}\n".encode())
    else:
        digest = hashlib.sha256(_layers(model.module).encode())
        for key, value in sorted(model.module.state_dict().items()):
            digest.update(f"{key} ".encode() + _bytes(value))
    for bound in (model.low, model.high):
        digest.update(b"none" if bound is None else _bytes(bound))
    return digest.hexdigest()[:16]


def _layers(module: nn.Module) -> str:
    """Every layer's kind and plain settings; not its ``repr``, which differs from one torch to the next."""
    told = []
    for name, layer in module.named_modules():
        settings = {key: value for key, value in vars(layer).items() if key != "training" and key[0] != "_"}
        plain = [f"{key}={value!r}" for key, value in sorted(settings.items()) if _is_plain(value)]
        told.append(f"{name} {type(layer).__qualname__} {', '.join(plain)}")
    return "\n".join(told)


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def of_cases(cases: Cases) -> str:
    """A hash of the inputs, the classes asked about and the features."""
    digest = hashlib.sha256(f"{cases.features.count} {cases.features.kind}".encode())
    for tensor in (cases.x, cases.label, cases.target, cases.features.ids):
        digest.update(_bytes(tensor))
    return digest.hexdigest()[:16]


def _bytes(tensor: Tensor) -> bytes:
    whole = tensor.detach().cpu().contiguous()
    plain = whole.float() if str(whole.dtype) == "torch.bfloat16" else whole  # NumPy has no bfloat16
    return f"{whole.dtype} {tuple(whole.shape)} ".encode() + plain.numpy().tobytes()
