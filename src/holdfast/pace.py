"""The same network, computed faster: batch norms folded away, channels last, half precision for drafts."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.fusion import fuse_conv_bn_eval

from holdfast.chunks import out_of_memory

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)  # subclasses may do more than normalise
_ALIKE = 1e-3  # of the spread of the scores
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
    seconds to set up for every new size.
    """

    fold: bool = False
    channels_last: bool = False
    exact: bool = False
    draft: torch.dtype | None = None
    even: bool = False

    @classmethod
    def of_images(cls, device: torch.device | str) -> Pace:
        """What pays for large convolutional networks: measured in benchmarks/photographs.py."""
        return cls(True, True).on(device)

    def on(self, device: torch.device | str) -> Pace:
        """The same form with what belongs to a device; the plain pace stays plain."""
        gpu = torch.device(device).type == "cuda"
        return self if self == Pace() else replace(self, exact=gpu, draft=torch.float16 if gpu else None, even=gpu)

    def size(self, rows: int) -> int:
        """How many rows to put through for so many."""
        return 1 << (rows - 1).bit_length() if self.even else rows

    def deciding(self) -> AbstractContextManager[None]:
        """While the module itself is asked."""
        return _precisely() if self.exact else nullcontext()

    def form(self, module: nn.Module, rows: Tensor) -> nn.Module:
        """The module in this form, or itself where that cannot be made or would not compute the same on ``rows``."""
        if not self.fold and not self.channels_last:
            return module
        try:
            made = folded(module, rows) if self.fold else module
            if self.channels_last and rows.ndim == 4:
                made = _ChannelsLast(copy.deepcopy(made) if made is module else made)
            with torch.no_grad(), _precisely():
                ours, theirs = (one(rows) for one in (made, module))
        except (RuntimeError, TypeError, KeyError, AttributeError):  # a network that cannot be copied or rebuilt
            return module
        return made if _alike(ours, theirs) else module


_ASKED = RLock()  # the precision of convolutions is one setting for all threads


@contextmanager
def _precisely() -> Iterator[None]:
    """Convolutions in single precision throughout, on a GPU too."""
    newer = getattr(torch.backends.cudnn, "conv", None)  # torch 2.9: the older name fails once somebody has used it
    place, name, wanted = (newer, "fp32_precision", "ieee") if newer else (torch.backends.cudnn, "allow_tf32", False)
    with _ASKED:
        before = getattr(place, name)
        setattr(place, name, wanted)
        try:
            yield
        finally:
            setattr(place, name, before)


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

    What follows what is seen in one pass. That a convolution's output goes elsewhere too is not: compare the two. Hooks
    go along with the copy.
    """
    made: dict[int, tuple[_ConvNd, Tensor, int]] = {}  # outputs are kept, so that no other tensor takes their number
    calls: Counter[nn.Module] = Counter()
    pairs: list[tuple[_ConvNd, Any]] = []

    def note(layer: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
        calls[layer] += 1
        if isinstance(layer, _ConvNd):
            made[id(out)] = layer, out, out._version
        elif given and id(given[0]) in made:
            conv, same, version = made[id(given[0])]
            if same._version == version:  # nothing was done to it in place
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
    if not once:
        return module
    fresh = copy.deepcopy(module)
    for conv, norm in once:
        fresh.set_submodule(names[conv], fuse_conv_bn_eval(conv, norm))
        fresh.set_submodule(names[norm], nn.Identity())
    return fresh.requires_grad_(False)


def _is_plain_convolution(layer: nn.Module) -> bool:
    """Whether its weight is a parameter that a batch norm can be taken into."""
    return isinstance(layer, _ConvNd) and not layer.transposed and "weight" in layer._parameters


def _is_fixed(norm: Any) -> bool:
    return not norm.training and norm.running_mean is not None


def fastest(module: nn.Module, rows: Tensor, most: int) -> tuple[Pace, int]:
    """The pace and the rows at a time at which gradients of such rows take least time on their device, by stopwatch.

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
    return best, _best_chunk(form, rows, best, most)


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
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            speed = 0.0
        if speed <= _WORTH * best:
            return max(1, size // 2)
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
    elif rows.device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


def _alike(ours: Tensor, theirs: Tensor) -> bool:
    spread = theirs.float().std(correction=0).clamp_min(torch.finfo(torch.float32).tiny)
    return bool(((ours - theirs).float().abs().max() / spread) <= _ALIKE)
