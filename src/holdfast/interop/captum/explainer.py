"""A ``captum.attr`` object as an explainer."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar

import numpy as np
import torch
from captum import attr as captum
from torch import Tensor, nn

from holdfast.cases import ANY, Cases
from holdfast.chunks import Progress, out_of_memory
from holdfast.errors import HoldfastError, first_line, unknown_name
from holdfast.explainers.explainer import Attribution, case_by_case
from holdfast.models.model import Access, Queries
from holdfast.models.torch import TorchModel, layers_of
from holdfast.reference import FixedReference
from holdfast.settings import shown_value
from holdfast.tensors import read_tensor

_SET = ("inputs", "target", "return_convergence_delta", "kwargs")  # are not given by the caller
_FOR_CHILDREN = (captum.FeatureAblation, captum.FeaturePermutation)  # further arguments are for classes made of them
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
        HoldfastError: ``method`` does not attribute a class to the input, or an argument is unknown, set by the cases
            or a tensor without real values.
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
        object.__setattr__(self, "arguments", _read(self.arguments, self.method))

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
            with _CaptumCall(self.method, x):
                result = self.method.attribute(x, target=target, **arguments)
        result = result[0] if isinstance(result, tuple) and len(result) == 1 else result
        shape = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
        if shape != tuple(x.shape):
            raise HoldfastError(
                f"{_name(self.method)} returned {shape} for inputs of shape {tuple(x.shape)}: an attribution of the "
                "input itself is needed, not of a layer or a neuron."
            )
        return read_tensor(result, f"the attributions of {_name(self.method)}").to(cases.x)


def _read(arguments: Any, method: Any) -> dict[str, Any]:
    """Check the arguments of a Captum object, and return them with arrays as tensors."""
    if not isinstance(arguments, Mapping):
        raise HoldfastError(f"arguments must be a mapping from names to values, got {shown_value(arguments)}.")
    reserved = ", ".join(sorted({"target", "inputs"} & set(arguments)))
    if reserved:
        raise HoldfastError(f"{_name(method)}'s {reserved} is set by the cases: leave it out.")
    if "return_convergence_delta" in arguments:
        raise HoldfastError("a convergence delta is no attribution: leave return_convergence_delta out.")
    for name in arguments:
        if not _takes(method, name) and not _takes_more(method):
            known = [one for one in _parameters(method) if one not in _SET]
            raise unknown_name(f"argument of {_name(method)}", str(name), known)
    return {name: _as_tensors(value, name) for name, value in arguments.items()}


def _as_tensors(value: Any, name: str) -> Any:
    """Return an argument with arrays as tensors; refuse tensors that cannot be part of a key."""
    if isinstance(value, tuple):
        return tuple(_as_tensors(one, name) for one in value)
    is_array = isinstance(value, (Tensor, np.ndarray))
    if not is_array and (name != "feature_mask" or value is None):  # Captum checks its other arguments, not masks
        return value
    read = read_tensor(value, name)
    return value if isinstance(value, Tensor) else read


class _CaptumCall:
    """A context in which Captum runs. What it raises becomes one ``HoldfastError``, unless memory ran out."""

    def __init__(self, method: Any, x: Tensor):
        self._method, self._x = method, x

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, HoldfastError) or out_of_memory(error):
            return
        raise HoldfastError(
            f"{_name(self._method)} of Captum failed for inputs of shape {tuple(self._x.shape)}: "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators of torch and NumPy, which Captum draws from, and restore them."""
    before = np.random.get_state()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed % 2**63)
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
    one = baselines[0] if isinstance(baselines, tuple) and len(baselines) == 1 else baselines
    values = read_tensor(0 if one is None else one, "baselines", "a number or a tensor [1 or B, *shape]").to(x)
    try:
        baseline = torch.where(ids >= 0, values.expand_as(x), x)
    except RuntimeError as error:
        raise HoldfastError(f"baselines {tuple(values.shape)} do not fit inputs {tuple(x.shape)}.") from error
    return {"feature_mask": mask, "baselines": baseline.to(layers_of(cases.model).module_dtype)}


def _parameters(method: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of ``attribute``, with those of a method inside a NoiseTunnel."""
    try:
        own = dict(inspect.signature(method.attribute).parameters)
    except (TypeError, ValueError):  # written in C
        own = {}
    inner = getattr(method, "attribution_method", None)
    return own if inner is None else {**_parameters(inner), **own}


def _takes(method: Any, name: str) -> bool:
    return name in _parameters(method)


def _takes_more(method: Any) -> bool:
    """Whether ``attribute`` takes arguments of any name: its own, or those of the method inside a NoiseTunnel."""
    inner = getattr(method, "attribution_method", None)
    last = method if inner is None else inner
    kinds = {one.kind for one in _parameters(last).values()}
    return inspect.Parameter.VAR_KEYWORD in kinds and type(last) not in _FOR_CHILDREN


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
    if isinstance(value, tuple):  # torch shortens the text of a large tensor, so that two would have one key
        return f"({', '.join(map(_brief, value))},)"
    return repr(FixedReference(value)) if isinstance(value, Tensor) else repr(value)
