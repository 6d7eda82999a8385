"""Faster ways to compute a network: folded batch norms and padding, channels last, low precision for gradients."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.chunks import out_of_memory, rounded_up
from holdfast.clock import now
from holdfast.models.folding import folded
from holdfast.models.fusion import fused
from holdfast.settings import Settings

_TOLERANCE = 1e-3  # largest difference of scores between two forms, relative to the spread of the scores
_GAIN = 1.05  # another form must be this many times faster
_LOW_GAIN, _LOW_COSINE = 1.15, 0.9  # half precision must be this much faster, with gradients this similar
_ROUNDS, _SECONDS = 3, 0.2  # measurements of each form, and the least duration of one
_UNUSUAL = itertools.count(9, 2)  # batch sizes that nothing else uses, each once in a process
_LONG = 0.3  # seconds that a new batch size may take before new sizes are avoided


@dataclass(frozen=True)
class Execution(Settings):
    """How a model computes its network. Nothing but rounding changes.

    Attributes:
        fold: Fold batch norms into the convolutions before them, and zero padding into the convolutions that own it.
        channels_last: Store images channels last, as GPUs and newer CPUs prefer. With ``fold`` and on a GPU with
            Triton, convolutions also add their bias and apply the ReLU or ReLU6 after them in one kernel.
        exact_decisions: Compute decisions in full single precision, where torch would let a GPU round the factors of
            convolutions to ten bits.
        low_precision: The precision of gradients by which a search claims nothing; None: full precision.
        pad_batches: Fill batches up to few different sizes, because a GPU takes seconds to prepare a large network for
            each new batch size.
        record: Record the steps of searches on a GPU and replay them, where that works. While a step is recorded, for
            some milliseconds, another thread that draws random numbers on the same GPU fails.
    """

    fold: bool = False
    channels_last: bool = False
    exact_decisions: bool = False
    low_precision: torch.dtype | None = None
    pad_batches: bool = False
    record: bool = True

    @classmethod
    def for_images(cls, device: torch.device | str) -> Execution:
        """Return the fastest execution for large convolutional networks, as measured by benchmarks/photographs.py."""
        return cls(True, True).on(device)

    def on(self, device: torch.device | str) -> Execution:
        """Return the same form of the network with the settings of a device; the plain execution stays plain."""
        gpu = torch.device(device).type == "cuda"
        precision = torch.float16 if gpu else None
        plain = replace(self, record=True) == Execution()
        return self if plain else replace(self, exact_decisions=gpu, low_precision=precision, pad_batches=gpu)

    def size(self, rows: int) -> int:
        """Return how many rows to put through the network for this many rows."""
        return rounded_up(rows) if self.pad_batches else rows

    def deciding(self) -> AbstractContextManager[None]:
        """Return the context in which the network itself computes decisions."""
        return _full_precision() if self.exact_decisions else nullcontext()

    def form(self, module: nn.Module, rows: Tensor) -> nn.Module:
        """Return the network in this form.

        Args:
            module: The network. It is not changed.
            rows: A few inputs ``[R, *shape]`` on which both forms are compared.

        Returns:
            The new form, or the module itself if the form cannot be made or does not compute the same.
        """
        if not self.fold and not self.channels_last:
            return module
        try:
            plain = folded(module, rows) if self.fold else module
            if plain is not module and not _equal_scores(plain, module, rows):
                return module
            if not self.channels_last or rows.ndim != 4:
                return plain
            if self.fold and rows.is_cuda and (fast := fused(plain, rows)) is not plain:
                form = _ChannelsLast(fast)
                if _equal_scores(form, module, rows):
                    return form
            form = _ChannelsLast(copy.deepcopy(plain) if plain is module else plain)
            return form if _equal_scores(form, module, rows) else module
        except (RuntimeError, TypeError, KeyError, AttributeError):  # a network that cannot be copied or rebuilt
            return module


_LOCK = RLock()  # the precision of convolutions is one setting for all threads


@contextmanager
def _full_precision() -> Iterator[None]:
    """Compute convolutions in full single precision, on a GPU too."""
    conv = getattr(torch.backends.cudnn, "conv", None)  # since torch 2.9; the older name fails once this one was used
    owner, name, full = (conv, "fp32_precision", "ieee") if conv else (torch.backends.cudnn, "allow_tf32", False)
    with _LOCK:
        before = getattr(owner, name)
        setattr(owner, name, full)
        try:
            yield
        finally:
            setattr(owner, name, before)


class _ChannelsLast(nn.Module):
    """A module that gets its images in channels-last format."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module: nn.Module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # has none for it
        self.train(module.training)

    def forward(self, rows: Tensor) -> Any:
        return self.module(rows.contiguous(memory_format=torch.channels_last))


def fastest(module: nn.Module, rows: Tensor, most: int) -> tuple[Execution, int]:
    """Measure which execution and batch size compute gradients fastest.

    Forms of the network are compared first, then half precision on a GPU, then batch sizes.

    Args:
        module: The network.
        rows: Inputs ``[R, *shape]`` on the device to measure.
        most: The largest batch size to try.

    Returns:
        The execution and the batch size.
    """
    gpu = rows.is_cuda
    plain = Execution(exact_decisions=gpu)
    # With few rows only the launches of a GPU would be measured.
    many = rows[torch.arange(max(1, most // 2) if gpu else min(most, len(rows)), device=rows.device) % len(rows)]
    kinds = ((False, False), (True, False), (False, True), (True, True))
    candidates = [replace(plain, fold=fold, channels_last=last) for fold, last in kinds]
    forms = {execution: execution.form(module, rows[:2]) for execution in candidates}
    forms = {execution: form for execution, form in forms.items() if execution == plain or form is not module}
    speed = dict.fromkeys(forms, 0.0)
    for _ in range(_ROUNDS):  # in turn, so that other load on the machine affects all of them
        for execution, form in forms.items():
            speed[execution] = max(speed[execution], _rows_a_second(form, many, execution))
    best = max(speed, key=lambda execution: speed[execution])
    best = best if speed[best] > _GAIN * speed[plain] else plain
    form = forms[best]
    if gpu:
        best = _with_low_precision(best, form, many)
        best = replace(best, pad_batches=_preparation(form, rows, best) > _LONG)
    return best, _best_chunk(form, rows, best, most)


def _preparation(form: nn.Module, rows: Tensor, execution: Execution) -> float:
    """Return how many seconds a batch size takes that was never met before."""
    unusual = rows[torch.arange(next(_UNUSUAL), device=rows.device) % len(rows)]
    seconds = []
    for _ in range(2):
        started = now(rows.device)
        _slope(form, unusual, execution)
        seconds.append(now(rows.device) - started)
    return seconds[0] - seconds[1]


def _with_low_precision(execution: Execution, form: nn.Module, rows: Tensor) -> Execution:
    """Return the execution with half precision if that is faster and gradients stay similar."""
    half = replace(execution, low_precision=torch.float16)  # bfloat16 is too coarse for gradients
    exact, low = _slope(form, rows, execution), _slope(form, rows, half)
    cosine = float(torch.cosine_similarity(exact.flatten(1), low.flatten(1)).mean())  # NaN if half overflows
    gain = _rows_a_second(form, rows, half) / _rows_a_second(form, rows, execution)
    return half if cosine >= _LOW_COSINE and gain >= _LOW_GAIN else execution


def _best_chunk(form: nn.Module, rows: Tensor, execution: Execution, most: int) -> int:
    """Double the batch size while that is faster; return the last one that was."""
    size, best = 1, 0.0
    while True:
        some = rows[torch.arange(size, device=rows.device) % len(rows)]
        try:
            speed = _rows_a_second(form, some, execution)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            speed = 0.0
        if speed <= _GAIN * best:
            return max(1, size // 2)
        if 2 * size > most:
            return size
        size, best = 2 * size, speed


def _rows_a_second(form: nn.Module, rows: Tensor, execution: Execution) -> float:
    """Measure how many gradients a second the form computes in batches like ``rows``."""
    _slope(form, rows, execution)  # the first pass includes set-up
    passes, started = 0, now(rows.device)
    while not passes or now(rows.device) - started < _SECONDS:
        _slope(form, rows, execution)
        passes += 1
    return passes * len(rows) / (now(rows.device) - started)


def _slope(form: nn.Module, rows: Tensor, execution: Execution) -> Tensor:
    """Return the gradient of the largest score of each row."""
    half = execution.low_precision is not None
    with torch.enable_grad():
        points = rows.detach().requires_grad_(True)
        with torch.autocast(rows.device.type, dtype=execution.low_precision, enabled=half):
            scores = form(points)
        (slope,) = torch.autograd.grad(scores.float().amax(1).sum(), points, allow_unused=True, materialize_grads=True)
    return slope


def _equal_scores(form: nn.Module, module: nn.Module, rows: Tensor) -> bool:
    """Whether two forms give the same scores up to rounding."""
    with torch.no_grad(), _full_precision():
        ours, theirs = form(rows), module(rows)
    spread = theirs.float().std(correction=0).clamp_min(torch.finfo(torch.float32).tiny)
    return bool(((ours - theirs).float().abs().max() / spread) <= _TOLERANCE)
