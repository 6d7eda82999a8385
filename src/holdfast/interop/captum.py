"""Captum: any ``captum.attr`` object as an explainer, and any explainer as a Captum ``Attribution``.

>>> ranking = from_captum(captum.attr.Saliency(net))(cases)
>>> scores = AsCaptum(hf.GreedyAS(), net, bounds=(0, 1)).attribute(images, target=labels)
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
from holdfast.explainers.explainer import Attribution, Explainer, case_by_case
from holdfast.features import Features
from holdfast.models.model import Access, Queries
from holdfast.models.torch import Bound, TorchModel, layers_of
from holdfast.reference import FixedReference

# ---------------------------------------------------------------------- from Captum


def from_captum(method: Any, *, absolute: bool = False, seed: int = 0, **arguments: Any) -> FromCaptum:
    """An explainer that calls ``method.attribute`` with these arguments; ``absolute`` and ``seed`` make the order."""
    return FromCaptum(method, arguments, absolute, seed)


@dataclass(frozen=True, repr=False)
class FromCaptum(Attribution):
    """A ``captum.attr`` object, bound to its own forward function, as an explainer.

    The label is its ``target``; asked "why not t?", the attribution for t is taken off, which is right for methods that
    are linear in the score. Methods that take a ``feature_mask`` are given the features.
    """

    method: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)
    absolute: bool = False
    seed: int = 0
    source: ClassVar[str] = "Captum"
    requires: ClassVar[Access] = Access.LAYERS

    def __post_init__(self) -> None:
        if not callable(getattr(self.method, "attribute", None)):
            raise HoldfastError(f"expected a captum.attr object with attribute(), got {self.method!r}.")
        if not _takes(self.method, "target"):
            raise HoldfastError(f"{_name(self.method)} takes no target: it does not attribute a class to the input.")
        taken = {"target", "inputs"} & set(self.arguments)
        if taken:
            raise HoldfastError(f"{_name(self.method)}'s {', '.join(sorted(taken))} is set by the cases: leave it out.")
        if "return_convergence_delta" in self.arguments:
            raise HoldfastError("a convergence delta is no attribution: leave return_convergence_delta out.")

    def __repr__(self) -> str:
        told = "".join(f", {name}={_brief(value)}" for name, value in self.arguments.items())
        return f"from_captum({_name(self.method)}{told}, absolute={self.absolute}, seed={self.seed})"

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        grouped = "feature_mask" not in self.arguments and _takes(self.method, "feature_mask")
        # What comes one a case in the arguments cannot be told from what does not: then all cases go together.
        together = any(_length(value) == len(cases) for value in self.arguments.values())
        most = cases.model.chunk(cases.x)

        def work(piece: slice) -> Tensor:
            part = cases[piece]
            arguments = dict(self.arguments)
            if _takes(self.method, "internal_batch_size"):
                arguments.setdefault("internal_batch_size", max(most, len(part)))
            if grouped:
                arguments |= _as_mask(part, arguments.get("baselines"), _takes(self.method, "baselines"))
            found = self._ask(part, part.label, arguments)
            aimed = part.target != ANY
            if bool(aimed.any()):
                other = self._ask(part, torch.where(aimed, part.target, part.label), arguments)
                found = torch.where(aimed.reshape(-1, *[1] * (found.ndim - 1)), found - other, found)
            pooled = part.features.pool(found)
            # With a mask Captum gives every coordinate the value of its whole feature.
            return pooled / part.features.pool(torch.ones_like(found)).clamp_min(1) if grouped else pooled

        with _counted(layers_of(cases.model)), _seeded(self.seed, cases.x.device):
            return work(slice(0, len(cases))) if together else case_by_case(cases, work, 1, progress)

    def _ask(self, cases: Cases, target: Tensor, arguments: dict[str, Any]) -> Tensor:
        x = cases.x.detach().to(cases.model.module_dtype, copy=True).requires_grad_(True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Setting forward, backward hooks")
            warnings.filterwarnings("ignore", "You are providing multiple inputs for Lime / Kernel SHAP")
            found = self.method.attribute(x, target=target, **arguments)
        found = found[0] if isinstance(found, tuple) and len(found) == 1 else found
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        if shape != tuple(x.shape):
            raise HoldfastError(
                f"{_name(self.method)} returned {shape} for inputs of shape {tuple(x.shape)}: an attribution of the "
                "input itself is needed, not of a layer or a neuron."
            )
        result: Tensor = found.detach().to(cases.x)
        return result


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Captum draws from the global generators of torch and NumPy: set them, and set them back."""
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
    """Features as Captum's mask, which names one for every number: what never moves is a feature at its baseline."""
    ids, x = cases.features.ids, cases.x
    mask = torch.where(ids >= 0, ids, cases.features.count).expand(len(ids), *x.shape[1:])
    if not bool((ids < 0).any()) or not takes_baselines:
        return {"feature_mask": mask}
    given = baselines[0] if isinstance(baselines, tuple) else baselines
    start = torch.as_tensor(0 if given is None else given).to(x)
    return {"feature_mask": mask, "baselines": torch.where(ids >= 0, start, x).to(cases.model.module_dtype)}


def _takes(method: Any, name: str) -> bool:
    """Whether ``attribute`` has this argument, also behind a NoiseTunnel."""
    return name in inspect.signature(method.attribute).parameters or (
        hasattr(method, "attribution_method") and _takes(method.attribution_method, name)
    )


def _length(value: Any) -> int:
    if isinstance(value, tuple):
        return max(map(_length, value), default=0)
    return len(value) if isinstance(value, Tensor) and value.ndim else 0


def _name(method: Any) -> str:
    inner = getattr(method, "attribution_method", None)
    return f"{type(method).__name__}({_name(inner)})" if inner is not None else type(method).__name__


def _brief(value: Any) -> str:
    return repr(FixedReference(value)) if isinstance(value, Tensor) else repr(value)


# ---------------------------------------------------------------------- to Captum


class AsCaptum(captum.Attribution):  # type: ignore[misc]  # Captum is not typed here
    """A holdfast explainer as a Captum ``Attribution``: the scores of its ranking, in the shape of the inputs.

    ``model`` is a module or a ``TorchModel``. Inputs outside its bounds (those of a NoiseTunnel) are clipped to them.
    ``target`` is the class to explain, in every form Captum takes for two-dimensional outputs; None is the prediction.
    Without ``feature_mask`` every number is a feature, as Captum has it.
    """

    def __init__(self, explainer: Explainer, model: nn.Module | TorchModel, bounds: tuple[Bound, Bound] | None = None):
        if not isinstance(explainer, Explainer):
            raise HoldfastError(f"expected a holdfast explainer, got {explainer!r}.")
        if isinstance(model, TorchModel) and bounds is not None:
            raise HoldfastError("a TorchModel has its own bounds: leave bounds out.")
        self._model = model if isinstance(model, TorchModel) else TorchModel(model, bounds)
        self._explainer = explainer
        super().__init__(self._model.module)

    @log_usage()  # type: ignore[untyped-decorator]  # a NoiseTunnel asks for what it wraps
    def attribute(
        self,
        inputs: Tensor | tuple[Tensor, ...],
        target: Any = None,
        additional_forward_args: Any = None,
        feature_mask: Tensor | tuple[Tensor, ...] | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        if additional_forward_args is not None:
            raise HoldfastError("additional_forward_args are not known here: wrap the module in one that holds them.")
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
        found = tuple(
            score.reshape(part.shape).to(part if part.is_floating_point() else score, copy=True)
            for score, part in zip(split, parts, strict=True)
        )
        return found if isinstance(inputs, tuple) else found[0]


def _joined(model: TorchModel, parts: tuple[Tensor, ...]) -> TorchModel:
    """A classifier of several inputs as one of all their numbers in a row."""
    model.check_ready()
    if any(edge is not None and edge.ndim for edge in (model.low, model.high)):
        raise HoldfastError("several inputs need bounds that are numbers.")
    return model.with_module(_Joined(model.module, [part.shape[1:] for part in parts]))


class _Joined(nn.Module):
    def __init__(self, module: nn.Module, shapes: list[torch.Size]):
        super().__init__()
        self.module, self.shapes = module, shapes
        self.training = False  # its own mark only: the module has been seen to be in eval mode

    def forward(self, rows: Tensor) -> Tensor:
        parts = rows.split([shape.numel() for shape in self.shapes], 1)
        out: Tensor = self.module(*(part.reshape(-1, *shape) for part, shape in zip(parts, self.shapes, strict=True)))
        return out


def _labels(target: Any, cases: int) -> Any:
    """Captum's targets as one class a case: a number, ``(k,)``, lists of either, or a tensor of one or B numbers."""
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
    joined = len(parts) > 1
    if masks is None:
        shape = (sum(part[0].numel() for part in parts),) if joined else tuple(parts[0].shape[1:])
        return Features.of(torch.arange(sum(part[0].numel() for part in parts)).reshape(1, *shape))
    laid = []
    for mask, part in zip(masks, parts, strict=True):
        try:
            whole = torch.broadcast_to(mask, (max(1, len(mask) if mask.ndim == part.ndim else 1), *part.shape[1:]))
        except RuntimeError as error:
            raise HoldfastError(
                f"feature_mask of shape {tuple(mask.shape)} does not cover inputs of shape {tuple(part.shape)}."
            ) from error
        if whole.is_floating_point() or bool((whole < 0).any()):
            raise HoldfastError("feature_mask must give every number of the input the id, from 0, of its feature.")
        laid.append(whole.long())
    if not joined:
        return Features.of(laid[0])
    most = max(len(mask) for mask in laid)
    return Features.of(torch.cat([mask.expand(most, *mask.shape[1:]).flatten(1) for mask in laid], 1))
