"""Captum: any ``captum.attr`` object as an explainer, and any explainer as a Captum ``Attribution``::

ranking = from_captum(captum.attr.Saliency(net))(cases)
scores = AsCaptum(hf.GreedyAS(), net, bounds=(0, 1)).attribute(images, target=labels)
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from captum import attr as captum
from captum.log import log_usage
from torch import Tensor, nn

from holdfast.cases import ANY, Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.explainers.explainer import Attribution, Explainer, case_by_case, read_explainer
from holdfast.features import Features
from holdfast.models.model import Access, Queries
from holdfast.models.torch import Bound, TorchModel, layers_of
from holdfast.reference import FixedReference

# ---------------------------------------------------------------------- from Captum


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


# ---------------------------------------------------------------------- to Captum


class AsCaptum(captum.Attribution):  # type: ignore[misc]  # Captum is not typed here
    """A holdfast explainer as a Captum ``Attribution``: the scores of its ranking, in the shape of the inputs.

    Args:
        explainer: An instance, a class that needs no settings, or a name.
        model: A module or a ``TorchModel``.
        bounds: The box that inputs of a module live in. Inputs outside, such as those of a NoiseTunnel, are clipped.

    Raises:
        HoldfastError: An argument is malformed.
    """

    def __init__(
        self,
        explainer: Explainer | type[Explainer] | str,
        model: nn.Module | TorchModel,
        bounds: tuple[Bound, Bound] | None = None,
    ):
        self._explainer = read_explainer(explainer)
        if isinstance(model, TorchModel) and bounds is not None:
            raise HoldfastError("a TorchModel has its own bounds: leave bounds out.")
        self._model = model if isinstance(model, TorchModel) else TorchModel(model, bounds)
        super().__init__(self._model.module)

    @log_usage()  # type: ignore[untyped-decorator]  # a NoiseTunnel requires it
    def attribute(
        self,
        inputs: Tensor | tuple[Tensor, ...],
        target: Any = None,
        additional_forward_args: Any = None,
        feature_mask: Tensor | tuple[Tensor, ...] | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """Return the scores of the ranking.

        Args:
            inputs: Inputs ``[B, *shape]``, or a tuple of them for a module with several.
            target: The class to explain, in every form that Captum accepts for outputs ``[B, classes]``. None: the
                prediction.
            additional_forward_args: Not supported.
            feature_mask: Feature numbers from 0, in the shape of the inputs. None: every coordinate is a feature.

        Returns:
            Scores in the shape of the inputs.

        Raises:
            HoldfastError: An argument is malformed.
        """
        if additional_forward_args is not None:
            raise HoldfastError("additional_forward_args are not supported: wrap the module in one that contains them.")
        parts = inputs if isinstance(inputs, tuple) else (inputs,)
        masks = feature_mask if isinstance(feature_mask, tuple) or feature_mask is None else (feature_mask,)
        if masks is not None and len(masks) != len(parts):
            raise HoldfastError(f"feature_mask has {len(masks)} tensors for {len(parts)} inputs: give one for each.")
        x = parts[0] if len(parts) == 1 else torch.cat([part.flatten(1) for part in parts], 1)
        model = self._model if len(parts) == 1 else _joined(self._model, parts)
        x = x.detach().to(model.device, model.dtype)
        if model.low is not None and model.high is not None:
            x = x.clamp(model.low, model.high)
        cases = model.ask(x, label=_labels(target, len(x)), features=_features(masks, parts))
        ranking = self._explainer(cases)
        self._model.queries = model.queries
        for note in ranking.notes:
            warnings.warn(note, HoldfastWarning, stacklevel=2)
        scores = cases.features.spread(ranking.scores).expand_as(x)
        split = scores.split([part[0].numel() for part in parts], 1) if len(parts) > 1 else (scores,)
        result = tuple(
            score.reshape(part.shape).to(part if part.is_floating_point() else score, copy=True)
            for score, part in zip(split, parts, strict=True)
        )
        return result if isinstance(inputs, tuple) else result[0]


def _joined(model: TorchModel, parts: tuple[Tensor, ...]) -> TorchModel:
    """Return a model of several inputs as a model of one flat input."""
    model.check_ready()
    if any(edge is not None and edge.ndim for edge in (model.low, model.high)):
        raise HoldfastError("a module with several inputs needs bounds that are two numbers.")
    return model.with_module(_Joined(model.module, [part.shape[1:] for part in parts]))


class _Joined(nn.Module):
    """A module of several inputs that gets them as one flat input."""

    def __init__(self, module: nn.Module, shapes: list[torch.Size]):
        super().__init__()
        self.module, self.shapes = module, shapes
        self.training = False  # only of this wrapper: the module itself was checked

    def forward(self, rows: Tensor) -> Tensor:
        parts = rows.split([shape.numel() for shape in self.shapes], 1)
        out: Tensor = self.module(*(part.reshape(-1, *shape) for part, shape in zip(parts, self.shapes, strict=True)))
        return out


def _labels(target: Any, cases: int) -> Any:
    """Return Captum's targets as one class for each case; it accepts k, ``(k,)``, lists of either, and tensors."""
    if target is None:
        return None
    if isinstance(target, tuple):
        target = [target] * cases
    if isinstance(target, list):
        target = [k[0] if isinstance(k, tuple) and len(k) == 1 else k for k in target]
    try:
        labels = torch.as_tensor(target)
    except (TypeError, ValueError) as error:
        raise HoldfastError(f"target must name one class for each input, got {target!r}.") from error
    return labels.reshape(()) if labels.numel() == 1 else labels


def _features(masks: tuple[Tensor, ...] | None, parts: tuple[Tensor, ...]) -> Features:
    """Return the features of one input or of several joined ones."""
    joined = len(parts) > 1
    if masks is None:
        shape = (sum(part[0].numel() for part in parts),) if joined else tuple(parts[0].shape[1:])
        return Features.of(torch.arange(sum(part[0].numel() for part in parts)).reshape(1, *shape))
    ids = []
    for mask, part in zip(masks, parts, strict=True):
        try:
            whole = torch.broadcast_to(mask, (max(1, len(mask) if mask.ndim == part.ndim else 1), *part.shape[1:]))
        except RuntimeError as error:
            raise HoldfastError(
                f"feature_mask of shape {tuple(mask.shape)} does not cover inputs of shape {tuple(part.shape)}."
            ) from error
        if whole.is_floating_point() or bool((whole < 0).any()):
            raise HoldfastError("feature_mask must give every coordinate the number of its feature, from 0.")
        ids.append(whole.long())
    if not joined:
        return Features.of(ids[0])
    most = max(len(mask) for mask in ids)
    return Features.of(torch.cat([mask.expand(most, *mask.shape[1:]).flatten(1) for mask in ids], 1))
