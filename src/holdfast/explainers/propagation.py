"""Explanations by rules that send the score back through the layers: DeepLIFT and LRP, by Captum."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from captum import attr as captum
from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR
from captum.attr._core.lrp import SUPPORTED_LAYERS_WITH_RULES
from captum.attr._utils.lrp_rules import EpsilonRule
from torch import Tensor, nn

from holdfast.cases import ANY, Cases, explained
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.explainers.explainer import Attribution, case_by_case
from holdfast.models.model import Access
from holdfast.models.torch import TorchModel, layers_of
from holdfast.reference import Reference, read_reference, reference_points

_INCOMPLETE = 0.01  # of the change of the score, lost by DeepLift; rounding loses far less
_RESHAPING = (nn.Flatten, nn.Unflatten, nn.Identity)  # Captum knows no rule for them; a layer's rule passes all on


@dataclass(frozen=True)
class DeepLift(Attribution):
    """DeepLIFT's rescale rule: every layer's difference from its reference is shared among its inputs."""

    reference: Reference = 0.0
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "deep-lift"
    source: ClassVar[str] = "Shrikumar et al. 2017"
    requires: ClassVar[Access] = Access.LAYERS
    uses: ClassVar[tuple[str, ...]] = ("a reference value",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", read_reference(self.reference))

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        points = reference_points(cases, self.reference, self.seed)
        _require_single_use(cases, tuple(SUPPORTED_NON_LINEAR), "DeepLift")
        lost = 0.0
        with _hooked(layers_of(cases.model)) as scored:
            method = captum.DeepLift(scored)

            def work(piece: slice) -> Tensor:
                nonlocal lost
                part = cases[piece]
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "Setting forward, backward hooks")
                    found: Tensor = method.attribute(
                        _leaf(part.x), points[piece], additional_forward_args=(part.label, part.target)
                    ).detach()
                own, other = scored.last.chunk(2)
                size = torch.maximum((own - other).abs(), 1e-3 * (own.abs() + other.abs()))
                missing = (own - other - found.flatten(1).sum(1)).abs() / size.clamp_min(1e-12)
                lost = max(lost, float(missing.max()))
                return part.features.pool(found)

            attributed = case_by_case(cases, work, 2, progress)
        if lost > _INCOMPLETE:
            warnings.warn(
                f"DeepLift's attributions miss the change of the score by up to {lost:.0%}: the network applies "
                "activations as functions, or some that Captum has no rule for; make them modules such as nn.ReLU.",
                HoldfastWarning,
                stacklevel=3,
            )
        return attributed

    def rows(self, features: int) -> int:
        return 2


@dataclass(frozen=True)
class Lrp(Attribution):
    """Layer-wise relevance propagation, epsilon rule: a layer's score is shared by how much each input gave.

    By its formula the reference is zero. A layer with a Captum ``rule`` of its own keeps that. Asked "why not t?", the
    relevance for t is taken off that for the label.
    """

    epsilon: float = 1e-9
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "lrp"
    source: ClassVar[str] = "Bach et al. 2015"
    requires: ClassVar[Access] = Access.LAYERS

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise HoldfastError(f"epsilon must be over 0, got {self.epsilon!r}.")

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        ruled = (*SUPPORTED_LAYERS_WITH_RULES, *_RESHAPING)
        rules = {
            layer: getattr(layer, "rule", EpsilonRule(self.epsilon))
            for layer in layers_of(cases.model).module.modules()
            if type(layer) in ruled or hasattr(layer, "rule")
        }
        with _hooked(layers_of(cases.model)) as scored:

            def relevance(part: Cases, of: Tensor) -> Tensor:
                for layer, rule in rules.items():  # each call of Captum's takes them off again
                    layer.rule = rule
                try:
                    found: Tensor = captum.LRP(scored).attribute(
                        _leaf(part.x), additional_forward_args=(of, torch.full_like(of, ANY))
                    )
                except TypeError as error:
                    raise HoldfastError(
                        f"Lrp has no rule for a layer of this network, {_layer_in(error)}: set that layer's .rule to "
                        "one of captum.attr._utils.lrp_rules, or use another method."
                    ) from error
                except RuntimeError as error:
                    if "used more than once" in str(error):
                        _require_single_use(cases, ruled, "Lrp")
                    raise
                return found.detach()

            def work(piece: slice) -> Tensor:
                part = cases[piece]
                found = relevance(part, part.label)
                aimed = part.target != ANY
                if bool(aimed.any()):
                    found[aimed] -= relevance(part[aimed], part.target[aimed])
                return part.features.pool(found)

            return case_by_case(cases, work, 1, progress)

    def rows(self, features: int) -> int:
        return 2


class _Scored(nn.Module):
    """The explained score of a classifier, as the module whose layers Captum hooks; remembers the last scores."""

    def __init__(self, model: TorchModel):
        super().__init__()
        self.network = model.module
        self.logits = model.logits
        self.last = torch.zeros(0)

    def forward(self, rows: Tensor, label: Tensor, target: Tensor) -> Tensor:
        score = explained(self.logits(rows, exact=True), label, target)  # the layers that are hooked
        self.last = score.detach()
        return score


@contextmanager
def _hooked(model: TorchModel) -> Iterator[_Scored]:
    """The score as a module that Captum may hook; the marks it leaves on layers are wiped off afterwards."""
    marks = [(layer, dict(vars(layer))) for layer in model.module.modules()]
    try:
        yield _Scored(model).eval()
    finally:
        for layer, before in marks:
            vars(layer).clear()
            vars(layer).update(before)


def _require_single_use(cases: Cases, kinds: tuple[type, ...], method: str) -> None:
    """Refuse a network that passes twice through one module of these kinds: hooks keep one set of activations each."""
    used: Counter[str] = Counter()

    def counter(name: str) -> Any:
        return lambda *_: used.update([name])

    named = {name: module for name, module in layers_of(cases.model).module.named_modules() if type(module) in kinds}
    hooks = [module.register_forward_hook(counter(name)) for name, module in named.items()]
    try:
        cases.model(cases.x[:1], exact=True)
    finally:
        for hook in hooks:
            hook.remove()
    for name, times in used.items():
        if times > 1:
            kind = type(named[name]).__name__
            raise HoldfastError(
                f"{method} hooks into layers, and {name or 'the module'} ({kind}) is used {times} times in one pass: "
                f"give each use an nn.{kind} of its own."
            )


def _leaf(x: Tensor) -> Tensor:
    return x.detach().clone().requires_grad_(True)


def _layer_in(error: TypeError) -> str:
    """The class that Captum's message names between quotes."""
    return str(error).split("'")[1].rsplit(".", 1)[-1] if str(error).count("'") > 1 else str(error)
