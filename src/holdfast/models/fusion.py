"""Convolutions that add their bias and apply the activation after them in one GPU kernel, for images channels last.

A GPU spends most of a small convolutional network on reading and writing images between its layers. And cuDNN takes
seconds to prepare depthwise convolutions for each new batch size, channels last; the kernel here takes none.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Limits = tuple[float, float]
"""The least and the largest output of a layer."""

Padding = tuple[int, int, int, int]
"""Zeros above, below, left and right of an image."""

UNLIMITED = (-math.inf, math.inf)


def fused(module: nn.Module, rows: Tensor) -> nn.Module:
    """Return a copy whose convolutions include their biases and the ReLU or ReLU6 that follows them.

    One forward pass shows which layer follows which. It does not show whether the output of a convolution is also used
    elsewhere, so compare the outputs of both forms.

    Args:
        module: The network, in eval mode, its batch norms folded. It is not changed.
        rows: Inputs ``[R, *shape]`` for the pass, on a GPU.

    Returns:
        The copy, or the module itself if nothing in it can be fused, or Triton does not work here.
    """
    names = {layer: name for name, layer in module.named_modules() if name}
    layers = [layer for layer in names if _can_be_fused(layer)]
    if not layers or not kernels_work():
        return module
    activations = {layer: limits for layer in names if (limits := _limits(layer)) is not None}
    calls, pairs = _followers(module, layers, list(activations), rows)
    # An activation goes away only where each of its calls follows a convolution of its own.
    gone = {
        activation
        for activation in activations
        if calls[activation] and calls[activation] == len({conv for conv, after in pairs if after is activation})
    }
    after = {conv: activations[activation] for conv, activation in pairs if activation in gone}
    result = copy.deepcopy(module).requires_grad_(False)
    for conv in layers:
        if calls[conv] == 1 and (conv in after or conv.bias is not None or _is_depthwise(conv)):
            result.set_submodule(names[conv], FusedConvolution(conv, after.get(conv, UNLIMITED)))
    for activation in gone:
        result.set_submodule(names[activation], nn.Identity())
    return result


def _followers(
    module: nn.Module, convolutions: list[Any], activations: list[nn.Module], rows: Tensor
) -> tuple[Counter[nn.Module], list[tuple[Any, nn.Module]]]:
    """Return how often each layer is called, and which activation follows which convolution that is called once."""
    outputs: dict[int, tuple[Any, Tensor, int]] = {}  # tensors are kept, so that no other one gets their id
    calls: Counter[nn.Module] = Counter()
    pairs: list[tuple[Any, nn.Module]] = []

    def end(layer: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> None:
        calls[layer] += 1
        outputs[id(out)] = layer, out, out._version

    def begin(layer: nn.Module, inputs: tuple[Any, ...]) -> None:  # before it: it may work in place
        calls[layer] += 1
        if not inputs:  # given by name
            return
        conv, tensor, version = outputs.get(id(inputs[0]), (None, inputs[0], 0))
        if conv is not None and tensor._version == version:
            pairs.append((conv, layer))

    hooks: list[Any] = [layer.register_forward_hook(end) for layer in convolutions]
    hooks += [layer.register_forward_pre_hook(begin) for layer in activations]
    try:
        with torch.no_grad():
            module(rows)
    finally:
        for hook in hooks:
            hook.remove()
    return calls, [(conv, activation) for conv, activation in pairs if calls[conv] == 1]


def _can_be_fused(layer: nn.Module) -> bool:
    """Whether a layer is a convolution of images that does nothing else but pad them with zeros."""
    plain = isinstance(layer, nn.Conv2d) and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return plain and layer.weight.dtype == torch.float32 and _padding(layer) is not None


def _padding(conv: Any) -> Padding | None:
    """Return the zeros that a convolution adds on each side; None if layers inside it may do something else.

    Networks that were converted from TensorFlow have a padding layer inside each convolution.
    """
    down, across = conv.padding
    inside = [child for child in conv.children() if type(child).__name__ != "Identity"]
    if not inside:
        return down, down, across, across
    if len(inside) > 1 or type(inside[0]) is not nn.ZeroPad2d:
        return None
    left, right, top, bottom = inside[0].padding
    return top + down, bottom + down, left + across, right + across


def _is_depthwise(conv: Any) -> bool:
    return bool(conv.groups == conv.in_channels == conv.out_channels > 1 and conv.dilation == (1, 1))


def _limits(layer: nn.Module) -> Limits | None:
    """Return the limits of a layer that clamps; None for others."""
    if type(layer) is nn.ReLU:
        return 0.0, math.inf
    return (layer.min_val, layer.max_val) if type(layer) in (nn.ReLU6, nn.Hardtanh) else None  # type: ignore[return-value]


class FusedConvolution(nn.Module):
    """A convolution, its bias and the limits of the activation after it, on a GPU.

    Args:
        conv: The convolution. Its weights are used.
        limits: The least and the largest output.
    """

    def __init__(self, conv: nn.Conv2d, limits: Limits):
        super().__init__()
        padding = _padding(conv)
        assert padding is not None
        self.limits, self.stride, self.dilation = limits, tuple(conv.stride), conv.dilation
        self.padding, self.groups, self.depthwise = padding, conv.groups, _is_depthwise(conv)
        weight = conv.weight.detach()
        bias = weight.new_zeros(conv.out_channels) if conv.bias is None else conv.bias.detach()
        self.weight: Tensor
        self.bias: Tensor
        self.register_buffer("weight", weight[:, 0].permute(1, 2, 0).contiguous() if self.depthwise else weight)
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_autocast_enabled("cuda"):
            x = x.to(torch.get_autocast_dtype("cuda"))
        x = x.contiguous(memory_format=torch.channels_last)
        if self.depthwise:
            settings = self.stride, self.padding, self.limits
            out: Tensor = _Depthwise.apply(x, self.weight, self.bias, *settings)  # type: ignore[no-untyped-call]
            return out
        top, bottom, left, right = self.padding
        if (top, left) != (bottom, right):
            x, top, left = functional.pad(x, (left, right, top, bottom)), 0, 0
        out = functional.conv2d(x, self.weight, None, self.stride, (top, left), self.dilation, self.groups)
        out = out.contiguous(memory_format=torch.channels_last)
        out = _Biased.apply(out, self.bias, self.limits)  # type: ignore[no-untyped-call]
        return out


class _Depthwise(torch.autograd.Function):
    """``kernels.depthwise`` with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, taps: Tensor, bias: Tensor, stride: Any, padding: Any, limits: Limits) -> Tensor:
        from holdfast.kernels import depthwise

        out = depthwise(x, taps, bias, stride, padding, limits)
        ctx.save_for_backward(*(() if limits == UNLIMITED else (out,)), taps)
        ctx.settings = x.shape, stride, padding, limits
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        from holdfast.kernels import depthwise_slope

        *out, taps = ctx.saved_tensors
        shape, stride, padding, limits = ctx.settings
        slope = _unclamped(slope, out, limits)
        return depthwise_slope(slope, shape, taps, stride, padding), None, None, None, None, None


class _Biased(torch.autograd.Function):
    """``kernels.biased`` with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, limits: Limits) -> Tensor:
        from holdfast.kernels import biased

        out = biased(x, bias, limits)
        if limits != UNLIMITED:
            ctx.save_for_backward(out)
        ctx.limits = limits
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        return _unclamped(slope, ctx.saved_tensors, ctx.limits), None, None


def _unclamped(slope: Tensor, out: Sequence[Tensor], limits: Limits) -> Tensor:
    """Return the gradient before clamping, channels last, given that of ``out``."""
    from holdfast.kernels import unclamped_slope

    slope = slope.contiguous(memory_format=torch.channels_last)
    return unclamped_slope(slope, out[0], limits) if out else slope


@cache
def kernels_work() -> bool:
    """Return whether Triton is installed, has a compiler and knows this GPU."""
    try:
        from holdfast.kernels import biased

        one = torch.ones(1, 1, 1, 1, device="cuda")
        return bool(biased(one, one.flatten(), UNLIMITED) == 2)
    except Exception:
        return False
