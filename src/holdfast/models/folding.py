"""Fold batch norms and zero padding into the convolutions that they belong to."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.fusion import fuse_conv_bn_eval

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)  # subclasses may do more than normalise


def folded(module: nn.Module, rows: Tensor) -> nn.Module:
    """Return a copy with batch norms folded into the convolutions before them, and padding into its convolution.

    One forward pass shows which layer follows which. It does not show whether the output of a convolution is also used
    elsewhere, so compare the outputs of both forms. Hooks are copied.

    Args:
        module: The network, in eval mode. It is not changed.
        rows: Inputs ``[R, *shape]`` for the pass.

    Returns:
        The copy, or the module itself if there is nothing to fold.
    """
    outputs: dict[int, tuple[_ConvNd, Tensor, int]] = {}  # tensors are kept, so that no other one gets their id
    calls: Counter[nn.Module] = Counter()
    pairs: list[tuple[_ConvNd, Any]] = []

    def note(layer: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> None:
        calls[layer] += 1
        if isinstance(layer, _ConvNd):
            outputs[id(out)] = layer, out, out._version
        elif inputs and id(inputs[0]) in outputs:
            conv, tensor, version = outputs[id(inputs[0])]
            if tensor._version == version:  # not changed in place
                pairs.append((conv, layer))

    names = {layer: name for name, layer in module.named_modules()}
    foldable = [layer for layer in names if type(layer) in _NORMS or _is_plain_convolution(layer)]
    hooks = [layer.register_forward_hook(note) for layer in foldable]
    try:
        with torch.no_grad():
            module(rows)
    finally:
        for hook in hooks:
            hook.remove()
    once = [(conv, norm) for conv, norm in pairs if calls[conv] == calls[norm] == 1 and _is_fixed(norm)]
    padded = [name for layer, name in names.items() if _own_padding(layer)]
    if not once and not padded:
        return module
    result = copy.deepcopy(module)
    for conv, norm in once:
        result.set_submodule(names[conv], fuse_conv_bn_eval(conv, norm))
        result.set_submodule(names[norm], nn.Identity())
    for name in padded:
        layer: Any = result.get_submodule(name)
        for child, (left, _, top, _) in _own_padding(layer).items():
            setattr(layer, child, nn.Identity())
            layer.padding = top, left
    return result.requires_grad_(False)


def _own_padding(layer: nn.Module) -> dict[str, tuple[int, int, int, int]]:
    """Return names and sizes of the layers inside a convolution that pad its input with as many zeros on both sides.

    Networks that were converted from TensorFlow have them.
    """
    if not isinstance(layer, nn.Conv2d) or layer.padding != (0, 0) or layer.padding_mode != "zeros":
        return {}
    sizes = {name: child.padding for name, child in layer.named_children() if type(child) is nn.ZeroPad2d}
    equal = all(left == right and top == bottom for left, right, top, bottom in sizes.values())
    return sizes if equal and len(sizes) == 1 else {}


def _is_plain_convolution(layer: nn.Module) -> bool:
    """Whether its weight is a parameter that a batch norm can be folded into."""
    return isinstance(layer, _ConvNd) and not layer.transposed and "weight" in layer._parameters


def _is_fixed(norm: Any) -> bool:
    """Whether a batch norm uses stored statistics."""
    return not norm.training and norm.running_mean is not None
