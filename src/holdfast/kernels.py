"""Kernels for GPUs in Triton, which comes with torch for GPUs. Import this module where one is used, not before."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

Limits = tuple[float, float]
"""The least and the largest output of a layer."""

Padding = tuple[int, int, int, int]
"""Zeros above, below, left and right of an image."""

UNLIMITED = (-math.inf, math.inf)
_BLOCK = 4096  # coordinates that a program reads at once
_TILE, _CHANNELS, _WARPS = (4, 8), 32, 4  # pixels, channels and warps of a program in a convolution
_PIXELS, _FLAT = 64, 2048  # pixels and numbers of a program elsewhere


def newton_root(weight: Tensor, limit: Tensor, value: Tensor, goal: Tensor, largest: float) -> Tensor:
    """Solve what ``steps.multiplier`` solves, in one kernel with one program for each row.

    Args:
        weight: ``[R, n]`` on a GPU.
        limit: ``[R, n]``.
        value: ``[R, n]``.
        goal: ``[R]``.
        largest: The result where the goal is out of reach.

    Returns:
        The multipliers ``[R]``.
    """
    rows, n = weight.shape
    out = torch.zeros_like(goal)
    if weight.numel():
        tensors = [one.contiguous() for one in (weight, limit, value, goal)]
        with torch.cuda.device(weight.device):
            _newton[(rows,)](*tensors, out, n, n + 1, largest, min(_BLOCK, triton.next_power_of_2(n)))
    return out


@triton.jit  # type: ignore[untyped-decorator]  # Triton has no types, and reads none
def _newton(weight, limit, value, goal, out, n, kinks, largest: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64) * n
    wanted = tl.load(goal + tl.program_id(0))
    place = tl.arange(0, block)
    t = wanted * 0
    left = kinks
    while left > 0:
        slope = tl.zeros([block], wanted.dtype)
        stopped = tl.zeros([block], wanted.dtype)
        for first in range(0, n, block):
            inside = first + place < n
            w = tl.load(weight + row + first + place, mask=inside, other=0)
            most = tl.load(limit + row + first + place, mask=inside, other=0)
            v = tl.load(value + row + first + place, mask=inside, other=0)
            free = (w > 0) & (most > t * w)
            slope += tl.where(free, v * w, 0)
            stopped += tl.where(free | (w == 0), 0, v * most)
        steepness = tl.sum(slope, 0)
        new = tl.where(steepness > 0, (wanted - tl.sum(stopped, 0)) / steepness, largest)
        left = tl.where(new <= t * (1 + 1e-6), 0, left - 1)
        t = tl.maximum(t, new)
    tl.store(out + tl.program_id(0), t)


def depthwise(
    x: Tensor, taps: Tensor, bias: Tensor, stride: tuple[int, int], padding: Padding, limits: Limits
) -> Tensor:
    """Convolve each channel by itself, add the bias and clamp, in one kernel.

    Args:
        x: ``[R, C, H, W]`` on a GPU, channels last.
        taps: The weights, ``[kernel height, kernel width, C]``.
        bias: ``[C]``.
        stride: Down and across.
        padding: Zeros above, below, left and right.
        limits: The least and the largest output.

    Returns:
        ``[R, C, H', W']``, channels last, in the precision of ``x``.
    """
    top, bottom, left, right = padding
    height = (x.shape[2] + top + bottom - taps.shape[0]) // stride[0] + 1
    width = (x.shape[3] + left + right - taps.shape[1]) // stride[1] + 1
    out = _channels_last(x, (*x.shape[:2], height, width))
    _launch_depthwise(x, out, taps, bias, stride, padding, limits, backward=False)
    return out


def depthwise_slope(
    slope: Tensor, shape: torch.Size, taps: Tensor, stride: tuple[int, int], padding: Padding
) -> Tensor:
    """Return the gradient of the input of ``depthwise``, given that of its output before clamping, channels last."""
    out = _channels_last(slope, shape)
    _launch_depthwise(slope, out, taps, taps, stride, padding, UNLIMITED, backward=True)
    return out


def _launch_depthwise(
    source: Tensor,
    out: Tensor,
    taps: Tensor,
    bias: Tensor,
    stride: tuple[int, int],
    padding: Padding,
    limits: Limits,
    backward: bool,
) -> None:
    rows, channels, height, width = out.shape
    if out.numel() == 0:
        return
    phases = stride if backward else (1, 1)
    tiles = [triton.cdiv(n, step * tile) for n, step, tile in zip((height, width), phases, _TILE, strict=True)]
    with torch.cuda.device(out.device):
        _depthwise[(rows * math.prod(phases) * math.prod(tiles), triton.cdiv(channels, _CHANNELS))](
            source, out, taps, bias, height, width, *source.shape[2:], channels, padding[0], padding[2], *limits,
            *tiles, *taps.shape[:2], *stride, backward, *_TILE, _CHANNELS, num_warps=_WARPS
        )  # fmt: skip


def _channels_last(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)


def biased(x: Tensor, bias: Tensor, limits: Limits) -> Tensor:
    """Add a bias ``[C]`` to ``x [R, C, H, W]``, channels last, and clamp, in one kernel."""
    out = torch.empty_like(x)
    if x.numel():
        channels = x.shape[1]
        pixels = x.numel() // channels
        with torch.cuda.device(x.device):
            _biased[(triton.cdiv(pixels, _PIXELS), triton.cdiv(channels, _CHANNELS))](
                x, bias, out, pixels, channels, *limits, _PIXELS, _CHANNELS
            )
    return out


def unclamped_slope(slope: Tensor, result: Tensor, limits: Limits) -> Tensor:
    """Return the gradient before clamping, given that of the ``result``; both have the same layout."""
    out = torch.empty_like(result)
    if out.numel():
        with torch.cuda.device(out.device):
            _unclamped[(triton.cdiv(out.numel(), _FLAT),)](slope, result, out, out.numel(), *limits, _FLAT)
    return out


_UNSPECIALISED = [
    "height", "width", "source_height", "source_width", "top", "left", "tiles_down", "tiles_across"
]  # fmt: skip


@triton.jit(do_not_specialize=_UNSPECIALISED)  # type: ignore[untyped-decorator]  # else one kernel for each shape
def _depthwise(  # type: ignore[no-untyped-def]
    source, out, taps, bias, height, width, source_height, source_width, channels, top, left, least, largest,
    tiles_down, tiles_across, tap_rows: tl.constexpr, tap_columns: tl.constexpr, down: tl.constexpr,
    across: tl.constexpr, backward: tl.constexpr, tile_rows: tl.constexpr, tile_columns: tl.constexpr,
    channel_block: tl.constexpr,
):  # fmt: skip
    tiles, program = tiles_down * tiles_across, tl.program_id(0)
    within = tl.arange(0, tile_rows * tile_columns)
    row, column = within // tile_columns, within % tile_columns
    # Backwards a stride lets each pixel see a part of the taps: a program takes pixels that see the same ones.
    step_y: tl.constexpr = down if backward else 1
    step_x: tl.constexpr = across if backward else 1
    all_taps: tl.constexpr = step_y * step_x == 1
    image = (program // (tiles * step_y * step_x)).to(tl.int64)
    phase_y, phase_x = (program // (tiles * step_x)) % step_y, (program // tiles) % step_x
    y = phase_y + step_y * (((program % tiles) // tiles_across) * tile_rows + row)
    x = phase_x + step_x * ((program % tiles_across) * tile_columns + column)
    channel = tl.program_id(1) * channel_block + tl.arange(0, channel_block)
    known = channel < channels
    # 64 bits for the image alone: the rest of an address fits 32, which a GPU adds faster.
    source += image * source_height * source_width * channels
    out += image * height * width * channels
    total = tl.zeros([tile_rows * tile_columns, channel_block], tl.float32)
    for i in tl.static_range(tap_rows):
        if all_taps or (phase_y + top - i + tap_rows * down) % down == 0:
            from_y = (y + top - i) // down if backward else y * down + i - top
            for j in tl.static_range(tap_columns):
                if all_taps or (phase_x + left - j + tap_columns * across) % across == 0:
                    from_x = (x + left - j) // across if backward else x * across + j - left
                    inside = (from_y >= 0) & (from_x >= 0) & (from_y < source_height) & (from_x < source_width)
                    place = ((from_y * source_width + from_x) * channels)[:, None] + channel[None, :]
                    value = tl.load(source + place, mask=inside[:, None] & known[None, :], other=0).to(tl.float32)
                    tap = tl.load(taps + (i * tap_columns + j) * channels + channel, mask=known, other=0)
                    total += value * tap[None, :]
    if not backward:
        total += tl.load(bias + channel, mask=known, other=0)[None, :]
        total = tl.where(total < least, least, total)  # keeps NaN, as torch does
        total = tl.where(total > largest, largest, total)
    here = ((y < height) & (x < width))[:, None] & known[None, :]
    tl.store(out + ((y * width + x) * channels)[:, None] + channel[None, :], total, mask=here)


@triton.jit(do_not_specialize=["pixels"])  # type: ignore[untyped-decorator]
def _biased(  # type: ignore[no-untyped-def]
    x, bias, out, pixels, channels, least, largest, block: tl.constexpr, channel_block: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * block
    pixel = tl.arange(0, block)
    channel = tl.program_id(1) * channel_block + tl.arange(0, channel_block)
    known = channel < channels
    inside = (pixel < pixels - first)[:, None] & known[None, :]
    place = pixel[:, None] * channels + channel[None, :]
    value = tl.load(x + first * channels + place, mask=inside).to(tl.float32)
    value += tl.load(bias + channel, mask=known)[None, :]
    value = tl.where(value < least, least, value)
    tl.store(out + first * channels + place, tl.where(value > largest, largest, value), mask=inside)


@triton.jit(do_not_specialize=["count"])  # type: ignore[untyped-decorator]
def _unclamped(slope, result, out, count, least, largest, block: tl.constexpr):  # type: ignore[no-untyped-def]
    first = tl.program_id(0).to(tl.int64) * block
    place = tl.arange(0, block)
    inside = place < count - first
    value = tl.load(result + first + place, mask=inside)
    kept = tl.load(slope + first + place, mask=inside)
    tl.store(out + first + place, tl.where((value <= least) | (value >= largest), 0, kept), mask=inside)
