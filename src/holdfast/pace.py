"""The same network, computed faster: batch norms folded away, channels last, half precision for drafts."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.fusion import fuse_conv_bn_eval

_ALIKE = 0.05  # of the spread of the scores: TF32 alone moves them by a hundredth
_WORTH = 1.05  # a form must be so many times faster to be taken
_DRAFT_WORTH, _DRAFT_ALIKE = 1.15, 0.9  # and half precision this much, with slopes that point the same way
_MANY = 128  # rows that keep a GPU busy: with few, all forms take the time it takes to launch them
_ROUNDS, _TIMED = 3, 0.2  # measurements of each form, and the seconds that one takes at least


@dataclass(frozen=True)
class Pace:
    """How a classifier computes: the form its module is put in, and how exact a draft of a gradient need be.

    ``fold`` takes batch norms into the convolutions before them, ``channels_last`` lays images out as GPUs and newer
    CPUs like them. Neither changes what is computed beyond rounding. ``exact``: decisions are asked in single precision
    throughout, where torch would let a GPU round what convolutions multiply to ten bits. ``draft`` is the precision of
    gradients of which nothing is claimed. ``even`` fills batches up to powers of two, since a large network takes a GPU
    seconds to set up for every new size; ``chunk`` are the rows at a time, where that was measured.
    """

    fold: bool = False
    channels_last: bool = False
    exact: bool = False
    draft: torch.dtype | None = None
    even: bool = False
    chunk: int | None = None

    @classmethod
    def of_images(cls, device: torch.device | str) -> Pace:
        """What pays for large convolutional networks: measured in benchmarks/photographs.py."""
        gpu = torch.device(device).type == "cuda"
        return cls(True, True, exact=gpu, draft=torch.float16 if gpu else None, even=gpu)

    def size(self, rows: int) -> int:
        """How many rows to put through for so many."""
        return 1 << (rows - 1).bit_length() if self.even else rows

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """While the module itself is asked."""
        before = torch.backends.cudnn.allow_tf32
        torch.backends.cudnn.allow_tf32 = before and not self.exact
        try:
            yield
        finally:
            torch.backends.cudnn.allow_tf32 = before

    def form(self, module: nn.Module, rows: Tensor) -> nn.Module:
        """The module in this form, or itself where the form would not compute the same on ``rows``."""
        if not self.fold and not self.channels_last:
            return module
        made = folded(module, rows) if self.fold else module
        if self.channels_last and rows.ndim == 4:
            made = _ChannelsLast(copy.deepcopy(made) if made is module else made)
        with torch.no_grad():
            ours, theirs = (one(rows) for one in (made, module))
        return made if _alike(ours, theirs) else module


class _ChannelsLast(nn.Module):
    """A module that gets its images channels last."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module: nn.Module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # has none for it
        self.train(module.training)

    def forward(self, rows: Tensor) -> Any:
        return self.module(rows.contiguous(memory_format=torch.channels_last))


def folded(module: nn.Module, rows: Tensor) -> nn.Module:
    """A copy with every batch norm that follows a convolution folded into it, or the module itself if there is none.

    What follows what is seen in one pass. That a convolution's output goes elsewhere too is not: compare the two.
    """
    made: dict[int, tuple[_ConvNd, Tensor]] = {}  # outputs are kept, so that no other tensor takes their number
    calls: Counter[nn.Module] = Counter()
    pairs: list[tuple[_ConvNd, _BatchNorm]] = []

    def note(layer: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
        calls[layer] += 1
        if isinstance(layer, _ConvNd):
            made[id(out)] = layer, out
        elif isinstance(layer, _BatchNorm) and given and id(given[0]) in made:
            pairs.append((made[id(given[0])][0], layer))

    names = {layer: name for name, layer in module.named_modules()}
    hooks = [layer.register_forward_hook(note) for layer in names if isinstance(layer, (_ConvNd, _BatchNorm))]
    try:
        with torch.no_grad():
            module(rows)
    finally:
        for hook in hooks:
            hook.remove()
    once = [(conv, norm) for conv, norm in pairs if calls[conv] == calls[norm] == 1 and norm.running_mean is not None]
    if not once:
        return module
    fresh = copy.deepcopy(module)
    for conv, norm in once:
        fresh.set_submodule(names[conv], fuse_conv_bn_eval(conv, norm))
        fresh.set_submodule(names[norm], nn.Identity())
    return fresh.requires_grad_(False)


def fastest(module: nn.Module, rows: Tensor, most: int) -> Pace:
    """The pace at which gradients of such rows take least time on their device, by the stopwatch.

    Forms are compared on ``rows``, then numbers of rows at a time up to ``most``, then half precision on a GPU.
    """
    gpu = rows.is_cuda
    plain = Pace(exact=gpu, even=gpu)
    many = rows[torch.arange(min(most, _MANY if gpu else len(rows)), device=rows.device) % len(rows)]
    kinds = ((False, False), (True, False), (False, True), (True, True))
    paces = [replace(plain, fold=fold, channels_last=last) for fold, last in kinds]
    forms = {pace: pace.form(module, rows[:2]) for pace in paces}
    forms = {pace: form for pace, form in forms.items() if pace == plain or form is not module}
    speed = dict.fromkeys(forms, 0.0)
    for _ in range(_ROUNDS):  # in turn, so that what else the machine does meets all of them
        for pace, form in forms.items():
            speed[pace] = max(speed[pace], _rows_a_second(form, many, pace))
    best = max(speed, key=lambda pace: speed[pace])
    best = best if speed[best] > _WORTH * speed[plain] else plain
    form = forms[best]
    if gpu:
        best = _with_draft(best, form, many)
    return replace(best, chunk=_best_chunk(form, rows, best, most))


def _with_draft(pace: Pace, form: nn.Module, rows: Tensor) -> Pace:
    half = replace(pace, draft=torch.float16)  # bfloat16 is too coarse: slopes point elsewhere
    exact, drafted = _slope(form, rows, pace), _slope(form, rows, half)
    alike = float(torch.cosine_similarity(exact.flatten(1), drafted.flatten(1)).mean())  # NaN where half overflows
    gain = _rows_a_second(form, rows, half) / _rows_a_second(form, rows, pace)
    return half if alike >= _DRAFT_ALIKE and gain >= _DRAFT_WORTH else pace


def _best_chunk(form: nn.Module, rows: Tensor, pace: Pace, most: int) -> int:
    """The smallest number of rows, doubling, past which nothing is gained."""
    size, best = 1, 0.0
    while True:
        some = rows[torch.arange(size, device=rows.device) % len(rows)]
        try:
            speed = _rows_a_second(form, some, pace)
        except (torch.OutOfMemoryError, MemoryError):
            speed = 0.0
        if speed <= _WORTH * best:
            return size // 2
        if 2 * size > most:
            return size
        size, best = 2 * size, speed


def _rows_a_second(form: nn.Module, rows: Tensor, pace: Pace) -> float:
    _slope(form, rows, pace)  # the first pass sets things up
    passes, started = 0, _now(rows)
    while not passes or _now(rows) - started < _TIMED:
        _slope(form, rows, pace)
        passes += 1
    return passes * len(rows) / (_now(rows) - started)


def _slope(form: nn.Module, rows: Tensor, pace: Pace) -> Tensor:
    half = pace.draft is not None
    with torch.enable_grad():
        points = rows.detach().requires_grad_(True)
        with torch.autocast(rows.device.type, dtype=pace.draft, enabled=half):
            scores = form(points)
        (slope,) = torch.autograd.grad(scores.float().amax(1).sum(), points, allow_unused=True, materialize_grads=True)
    return slope


def _now(rows: Tensor) -> float:
    if rows.is_cuda:
        torch.cuda.synchronize(rows.device)
    return time.perf_counter()


def _alike(ours: Tensor, theirs: Tensor) -> bool:
    spread = theirs.float().std(correction=0).clamp_min(torch.finfo(torch.float32).tiny)
    return bool(((ours - theirs).float().abs().max() / spread) <= _ALIKE)
