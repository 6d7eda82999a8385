"""A ``captum.attr`` object as an explainer."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.cases import ANY, Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Attribution, case_by_case
from holdfast.models.model import Access, Queries
from holdfast.models.torch import TorchModel, layers_of
from holdfast.reference import FixedReference

_OWN = ("_multiply_by_inputs", "eps")  # settings that Captum keeps in its objects and that change attributions


def from_captum(method: Any, *, absolute: bool = False, seed: int = 0, **arguments: Any) -> FromCaptum:
    """Make an explainer of a Captum object.

    Args:
        method: A ``captum.attr`` object, made with the module that the cases ask about.
        absolute: Order by the size of the attribution.
        seed: Seed of everything that Captum draws, and of the order of features with equal values.
        **arguments: Arguments of ``method.attribute``, such as ``baselines`` or ``n_steps``; arrays become tensors.

    Returns:
        The explainer.

    Raises:
        HoldfastError: ``method`` does not attribute a class to the input, or an argument is set by the cases.
    """
    return FromCaptum(method, arguments, absolute, seed)


@dataclass(frozen=True, repr=False, eq=False)
class FromCaptum(Attribution):
    """A ``captum.attr`` object as an explainer, made by ``from_captum``. Two with the same ``repr`` are equal.

    Captum's ``target`` is the label. For a targeted question, the attribution for the target is subtracted, which is
    right for methods that are linear in the score. Methods that accept a ``feature_mask`` get the features.

    Attributes:
        method: The Captum object.
        arguments: Arguments of its ``attribute``.
        absolute: Order by the size of the attribution.
        seed: Seed of everything random.
    """

    method: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)
    absolute: bool = False
    seed: int = 0
    source: ClassVar[str] = "Captum"
    requires: ClassVar[Access] = Access.LAYERS

    def __post_init__(self) -> None:
        if isinstance(self.method, type) or not callable(getattr(self.method, "attribute", None)):
            raise HoldfastError(f"expected a captum.attr object with attribute(), got {_described(self.method)}.")
        if not _takes(self.method, "target"):
            raise HoldfastError(f"{_name(self.method)} takes no target: it does not attribute a class to the input.")
        reserved = {"target", "inputs"} & set(self.arguments)
        if reserved:
            names = ", ".join(sorted(reserved))
            raise HoldfastError(f"{_name(self.method)}'s {names} is set by the cases: leave it out.")
        if "return_convergence_delta" in self.arguments:
            raise HoldfastError("a convergence delta is no attribution: leave return_convergence_delta out.")
        tensors = {name: torch.as_tensor(v) if isinstance(v, np.ndarray) else v for name, v in self.arguments.items()}
        object.__setattr__(self, "arguments", tensors)

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={_brief(value)}" for name, value in self.arguments.items())
        own = "".join(f", {name.strip('_')}={vars(self.method)[name]!r}" for name in _OWN if name in vars(self.method))
        return f"from_captum({_name(self.method)}{own}{arguments}, absolute={self.absolute}, seed={self.seed})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FromCaptum) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        grouped = "feature_mask" not in self.arguments and _takes(self.method, "feature_mask")
        # An argument as long as the batch may hold one row for each case: then cases are not split.
        together = any(_length(value) == len(cases) for value in self.arguments.values())
        most = cases.model.chunk(cases.x)

        def work(piece: slice) -> Tensor:
            part = cases[piece]
            arguments = dict(self.arguments)
            if _takes(self.method, "internal_batch_size"):
                arguments.setdefault("internal_batch_size", max(most, len(part)))
            if grouped:
                arguments |= _as_mask(part, arguments.get("baselines"), _takes(self.method, "baselines"))
            own = self._attributions(part, part.label, arguments)
            targeted = part.target != ANY
            if bool(targeted.any()):
                other = self._attributions(part, torch.where(targeted, part.target, part.label), arguments)
                own = torch.where(targeted.reshape(-1, *[1] * (own.ndim - 1)), own - other, own)
            pooled = part.features.pool(own)
            # With a mask Captum gives every coordinate the value of its whole feature.
            return pooled / part.features.pool(torch.ones_like(own)).clamp_min(1) if grouped else pooled

        with _counted(layers_of(cases.model)), _seeded(self.seed, cases.x.device):
            return work(slice(0, len(cases))) if together else case_by_case(cases, work, 1, progress)

    def _attributions(self, cases: Cases, target: Tensor, arguments: dict[str, Any]) -> Tensor:
        """Return Captum's attributions ``[B, *shape]`` for these classes."""
        x = cases.x.detach().to(layers_of(cases.model).module_dtype, copy=True).requires_grad_(True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Setting forward, backward hooks")
            warnings.filterwarnings("ignore", "You are providing multiple inputs for Lime / Kernel SHAP")
            result = self.method.attribute(x, target=target, **arguments)
        result = result[0] if isinstance(result, tuple) and len(result) == 1 else result
        shape = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
        if shape != tuple(x.shape):
            raise HoldfastError(
                f"{_name(self.method)} returned {shape} for inputs of shape {tuple(x.shape)}: an attribution of the "
                "input itself is needed, not of a layer or a neuron."
            )
        attributed: Tensor = result.detach().to(cases.x)
        return attributed


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators of torch and NumPy, which Captum draws from, and restore them."""
    before = np.random.get_state()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            np.random.set_state(before)


@contextmanager
def _counted(model: TorchModel) -> Iterator[None]:
    """Count the rows that go through the module while Captum calls it."""

    def count(_module: nn.Module, _inputs: Any, scores: Any) -> None:
        number = len(scores) if isinstance(scores, Tensor) and scores.ndim else 0
        model.queries += Queries(number, number if torch.is_grad_enabled() else 0)

    hook = model.module.register_forward_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _as_mask(cases: Cases, baselines: Any, takes_baselines: bool) -> dict[str, Any]:
    """Return the features as Captum's mask; coordinates of no feature become a feature that equals its baseline."""
    ids, x = cases.features.ids, cases.x
    mask = torch.where(ids >= 0, ids, cases.features.count).expand(len(ids), *x.shape[1:])
    if not bool((ids < 0).any()) or not takes_baselines:
        return {"feature_mask": mask}
    baseline = baselines[0] if isinstance(baselines, tuple) else baselines
    values = torch.as_tensor(0 if baseline is None else baseline).to(x)
    return {"feature_mask": mask, "baselines": torch.where(ids >= 0, values, x).to(layers_of(cases.model).module_dtype)}


def _takes(method: Any, name: str) -> bool:
    """Whether ``attribute`` has this argument, also inside a NoiseTunnel."""
    return name in inspect.signature(method.attribute).parameters or (
        hasattr(method, "attribution_method") and _takes(method.attribution_method, name)
    )


def _length(value: Any) -> int:
    """Return the length of the longest tensor."""
    if isinstance(value, tuple):
        return max(map(_length, value), default=0)
    return len(value) if isinstance(value, Tensor) and value.ndim else 0


def _described(given: Any) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__


def _name(method: Any) -> str:
    """Return the class of a Captum object, with that of the one it wraps."""
    inner = getattr(method, "attribution_method", None)
    return f"{type(method).__name__}({_name(inner)})" if inner is not None else type(method).__name__


def _brief(value: Any) -> str:
    return repr(FixedReference(value)) if isinstance(value, Tensor) else repr(value)
