"""Explainers that propagate the score back through the layers: DeepLIFT and LRP, computed by Captum.

Captum is heavy, so it is imported when it is used.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from holdfast.cases import ANY, Cases, explained
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.explainers.explainer import Attribution, case_by_case
from holdfast.models.calls import ModelCall
from holdfast.models.model import Access
from holdfast.models.torch import TorchModel, layers_of
from holdfast.reference import Reference, reference_points
from holdfast.settings import Positive

_INCOMPLETE = 0.01  # the share of the score's change that DeepLift may miss; rounding misses far less
_RESHAPING = (nn.Flatten, nn.Unflatten, nn.Identity)  # Captum has no rule for them; any rule passes all relevance on


@dataclass(frozen=True)
class DeepLift(Attribution):
    """DeepLIFT, rescale rule: each layer distributes its difference from the reference over its inputs.

    Attributes:
        reference: The input that activations are compared with.
        absolute: Order by the size of the attribution.
        seed: Seed of random references and of the order of features with equal values.
    """

    reference: Reference = 0.0
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "deep-lift"
    source: ClassVar[str] = "Shrikumar et al. 2017"
    requires: ClassVar[Access] = Access.LAYERS
    uses: ClassVar[tuple[str, ...]] = ("a reference value",)

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        from captum import attr as captum
        from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR

        points = reference_points(cases, self.reference, self.seed)
        _require_single_use(cases, tuple(SUPPORTED_NON_LINEAR), "DeepLift")
        missed = 0.0
        with _hooked(layers_of(cases.model)) as scored:
            method = captum.DeepLift(scored)

            def work(piece: slice) -> Tensor:
                nonlocal missed
                part = cases[piece]
                with warnings.catch_warnings(), ModelCall(part.x, "backward"):
                    warnings.filterwarnings("ignore", "Setting forward, backward hooks")
                    attributed: Tensor = method.attribute(
                        _leaf(part.x), points[piece], additional_forward_args=(part.label, part.target)
                    ).detach()
                own, other = scored.last.chunk(2)
                size = torch.maximum((own - other).abs(), 1e-3 * (own.abs() + other.abs()))
                missing = (own - other - attributed.flatten(1).sum(1)).abs() / size.clamp_min(1e-12)
                missed = max(missed, float(missing.max()))
                return part.features.pool(attributed)

            result = case_by_case(cases, work, 2, progress)
        if missed > _INCOMPLETE:
            warnings.warn(
                f"DeepLift's attributions miss the change of the score by up to {missed:.0%}: the network applies "
                "activations as functions, or some that Captum has no rule for; make them modules such as nn.ReLU.",
                HoldfastWarning,
                stacklevel=3,
            )
        return result

    def rows(self, features: int) -> int:
        return 2


@dataclass(frozen=True)
class Lrp(Attribution):
    """Layer-wise relevance propagation, epsilon rule: each layer distributes relevance by the inputs' contributions.

    The reference of this rule is zero. A layer that has a Captum ``rule`` keeps it. For a targeted question, the
    relevance for the target is subtracted from that for the label.

    Attributes:
        epsilon: Stabilises the division by small sums of contributions.
        absolute: Order by the size of the attribution.
        seed: Seed of the order of features with equal values.
    """

    epsilon: Positive = 1e-9
    absolute: bool = False
    seed: int = 0
    name: ClassVar[str] = "lrp"
    source: ClassVar[str] = "Bach et al. 2015"
    requires: ClassVar[Access] = Access.LAYERS

    def attribute(self, cases: Cases, progress: Progress | None = None) -> Tensor:
        from captum import attr as captum
        from captum.attr._core.lrp import SUPPORTED_LAYERS_WITH_RULES
        from captum.attr._utils.lrp_rules import EpsilonRule

        ruled = (*SUPPORTED_LAYERS_WITH_RULES, *_RESHAPING)
        rules = {
            layer: getattr(layer, "rule", EpsilonRule(self.epsilon))
            for layer in layers_of(cases.model).module.modules()
            if type(layer) in ruled or hasattr(layer, "rule")
        }
        with _hooked(layers_of(cases.model)) as scored:

            def relevance(part: Cases, of: Tensor) -> Tensor:
                for layer, rule in rules.items():  # Captum removes them after each call
                    layer.rule = rule
                try:
                    attributed: Tensor = captum.LRP(scored).attribute(
                        _leaf(part.x), additional_forward_args=(of, torch.full_like(of, ANY))
                    )
                except TypeError as error:
                    raise HoldfastError(
                        f"Lrp has no rule for a layer of this network, {_layer_in(error)}: set that layer's .rule to "
                        "one of captum.attr._utils.lrp_rules, or use another method."
                    ) from error
                except Exception as error:
                    if "used more than once" in str(error):
                        _require_single_use(cases, ruled, "Lrp")
                    with ModelCall(part.x, "backward"):
                        raise
                return attributed.detach()

            def work(piece: slice) -> Tensor:
                part = cases[piece]
                total = relevance(part, part.label)
                targeted = part.target != ANY
                if bool(targeted.any()):
                    total[targeted] -= relevance(part[targeted], part.target[targeted])
                return part.features.pool(total)

            return case_by_case(cases, work, 1, progress)

    def rows(self, features: int) -> int:
        return 2


class _Scored(nn.Module):
    """The explained score of a model as a module whose layers Captum can hook; keeps the last scores."""

    def __init__(self, model: TorchModel):
        super().__init__()
        self.network = model.module
        self.logits = model.logits
        self.last = torch.zeros(0)

    def forward(self, rows: Tensor, label: Tensor, target: Tensor) -> Tensor:
        score = explained(self.logits(rows, exact=True), label, target)  # exact: the layers that are hooked
        self.last = score.detach()
        return score


@contextmanager
def _hooked(model: TorchModel) -> Iterator[_Scored]:
    """Give the score as a module that Captum can hook; restore the attributes that it changes on layers."""
    attributes = [(layer, dict(vars(layer))) for layer in model.module.modules()]
    try:
        yield _Scored(model).eval()
    finally:
        for layer, before in attributes:
            vars(layer).clear()
            vars(layer).update(before)


def _require_single_use(cases: Cases, kinds: tuple[type, ...], method: str) -> None:
    """Refuse a network that uses a module of these kinds twice: a hook keeps the activations of one use only."""
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
                f"{method} hooks layers, and {name or 'the module'} ({kind}) is used {times} times in one pass: "
                f"give each use an nn.{kind} of its own."
            )


def _leaf(x: Tensor) -> Tensor:
    """Return a copy of ``x`` that requires a gradient."""
    return x.detach().clone().requires_grad_(True)


def _layer_in(error: TypeError) -> str:
    """Return the class that Captum's message names between quotes."""
    return str(error).split("'")[1].rsplit(".", 1)[-1] if str(error).count("'") > 1 else str(error)
