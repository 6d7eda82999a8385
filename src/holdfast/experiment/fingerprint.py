"""Fingerprints: the content of a model or of cases as a short text, equal for equal content on every machine."""

from __future__ import annotations

import hashlib

from torch import Tensor, nn

from holdfast.cases import Cases
from holdfast.domain import Domain
from holdfast.errors import HoldfastError
from holdfast.models.model import Model
from holdfast.models.torch import TorchModel


def of_model(model: Model, name: str | None = None) -> str:
    """Return a hash of a model's layers, weights and bounds, or of its name and bounds.

    The code of a module beyond its layers is not part of the hash: give a model whose code has changed a new name.

    Args:
        model: The model.
        name: A name for a model that has no weights to recognise it by.

    Raises:
        HoldfastError: The model has no weights and no name.
    """
    if name is not None:
        digest = hashlib.sha256(f"{name}\n{len(model.classes)}\n".encode())
    elif isinstance(model, TorchModel):
        digest = hashlib.sha256(_layers(model.module).encode())
        for key, value in sorted(model.module.state_dict().items()):
            digest.update(f"{key} ".encode() + _bytes(value))
    elif (content := model.content()) is not None:
        digest = hashlib.sha256(type(model).__qualname__.encode())
        for key, value in sorted(content.items()):
            digest.update(f"{key} ".encode() + _bytes(value))
    else:
        raise HoldfastError(
            f"a {type(model).__name__} has no weights to recognise it by: give the study a name for its model."
        )
    if model.domain is not None:
        digest.update(_domain(model.domain))
    for bound in (model.low, model.high):
        digest.update(b"none" if bound is None else _bytes(bound))
    return digest.hexdigest()[:16]


def _domain(domain: Domain) -> bytes:
    assert domain.rising is not None
    assert domain.falling is not None
    parts = (domain.step, domain.rising, domain.falling, *domain.groups)
    return b"".join(map(_bytes, parts)) + f"{domain.hot!r}".encode()


def _layers(module: nn.Module) -> str:
    """Return every layer's class and plain settings; its ``repr`` differs between versions of torch."""
    lines = []
    for name, layer in module.named_modules():
        settings = {key: value for key, value in vars(layer).items() if key != "training" and key[0] != "_"}
        plain = [f"{key}={value!r}" for key, value in sorted(settings.items()) if _is_plain(value)]
        lines.append(f"{name} {type(layer).__qualname__} {', '.join(plain)}")
    return "\n".join(lines)


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def of_cases(cases: Cases) -> str:
    """Return a hash of the inputs, the classes and the features."""
    digest = hashlib.sha256(f"{cases.features.count} {cases.features.kind}".encode())
    for tensor in (cases.x, cases.label, cases.target, cases.features.ids):
        digest.update(_bytes(tensor))
    return digest.hexdigest()[:16]


def _bytes(tensor: Tensor) -> bytes:
    whole = tensor.detach().cpu().contiguous()
    plain = whole.float() if str(whole.dtype) == "torch.bfloat16" else whole  # NumPy has no bfloat16
    return f"{whole.dtype} {tuple(whole.shape)} ".encode() + plain.numpy().tobytes()
