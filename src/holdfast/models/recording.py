"""Steps of a search that a GPU records once and replays, so that launching their many small kernels takes no time.

A step is a function of tensors, as ``Model.run`` takes it. Its first call with tensors of some shapes runs as it
stands. The second one is recorded as a CUDA graph, and the recording is compared with the step itself. Later calls
replay it. A step that cannot be recorded runs as it stands: the answer is the same, and ``refused`` says why.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from contextlib import suppress
from itertools import chain
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.chunks import memory_budget, out_of_memory
from holdfast.errors import HoldfastError, first_line
from holdfast.models.model import Model, Queries, Step

_MOST = 1024  # rows: more of them keep a GPU busy without a recording
_KEPT = 96  # recordings of one model
_TOLERANCE = 1e-3  # largest difference between a recording and the step, relative to the largest value


class Recordings:
    """The recordings of one model.

    Args:
        module: Its network.

    Attributes:
        refused: Why nothing is recorded any more; None as long as recording works.
    """

    def __init__(self, module: nn.Module):
        self.refused: str | None = None
        self._module = module
        self._kept: OrderedDict[Any, _Recording] = OrderedDict()
        self._seen: set[Any] = set()
        self._memory: Any = None  # recordings share their memory: one is replayed at a time
        self._weights: list[int] = []  # where the weights were when steps were recorded
        self._lock = RLock()

    def run(self, model: Model, step: Step, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Run a step: replay its recording, or record it, or run it as it stands.

        Args:
            model: The model that the step asks.
            step: The step.
            tensors: Its arguments; the first one has one entry for each row.

        Returns:
            What the step returns.
        """
        device = tensors[0].device
        if self.refused is not None or not should_record(len(tensors[0]), device) or not _can_record(device):
            return step(model, *tensors)
        key = step, tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        with self._lock, _on(device):
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key].replay(model, tensors)
            if key not in self._seen:
                self._seen.add(key)
                return step(model, *tensors)
            return self._record(key, model, step, tensors)

    def forget_moved_weights(self) -> None:
        """Drop all recordings if the network has replaced a parameter or a buffer since: they read the old one."""
        with self._lock:
            if self._kept and self._weights != _places(self._module):
                self._kept.clear()

    def __reduce__(self) -> tuple[type[Recordings], tuple[nn.Module]]:
        return Recordings, (self._module,)  # a copy of a model records anew

    def _record(self, key: Any, model: Model, step: Step, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Record a step, and return what the step itself returns."""
        before, device = model.queries, tensors[0].device
        result = step(model, *tensors)
        spent = model.queries - before
        if any(_has_hooks(layer) for layer in self._module.modules()):  # a replay would not call them
            self._refuse("its layers have hooks", device)
            return result
        self._weights = _places(self._module)
        try:
            if self._memory is None:
                self._memory = torch.cuda.graph_pool_handle()
            recording = _Recording(model, step, tensors, spent, self._memory)
            same = _equal(recording.replay(model, tensors), result)
        except (RuntimeError, HoldfastError) as error:  # among them all that a GPU refuses while it records
            self._refuse(_reason(error), device)
        else:
            if same:
                self._keep(key, recording, device)
            else:
                self._refuse("its recording computes something else", device)
        model.queries = before + spent
        return result

    def _keep(self, key: Any, recording: _Recording, device: torch.device) -> None:
        """Keep a recording, and drop the oldest ones if they are too many or too large."""
        self._kept[key] = recording
        most = memory_budget(device)
        while len(self._kept) > _KEPT or (
            len(self._kept) > 1 and sum(one.bytes_held for one in self._kept.values()) > most
        ):
            self._kept.popitem(last=False)

    def _refuse(self, reason: str, device: torch.device) -> None:
        self.refused = reason
        self._kept.clear()
        self._seen.clear()
        _recover(device, self._memory)


class _Recording:
    """A step with tensors of fixed shapes as a CUDA graph."""

    def __init__(self, model: Model, step: Step, tensors: tuple[Tensor, ...], spent: Queries, memory: Any):
        self._spent = spent
        self._inputs = [tensor.clone() for tensor in tensors]
        self._given: list[tuple[weakref.ref[Tensor], int] | None] = [None] * len(tensors)
        self._graph = torch.cuda.CUDAGraph()
        failure: Exception | None = None
        torch.cuda.synchronize()
        # Not torch.cuda.graph: after a failure it would leave its own stream as the current one.
        with torch.cuda.stream(torch.cuda.Stream()):
            self._graph.capture_begin(pool=memory, capture_error_mode="thread_local")  # other threads may go on
            try:
                self._outputs = step(model, *self._inputs)
            except Exception as error:
                failure = error
            try:
                self._graph.capture_end()
            except RuntimeError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        for output in self._outputs:
            output.zero_()  # a recording of nothing would otherwise look right

    @property
    def bytes_held(self) -> int:
        """The memory of arguments and results."""
        return sum(tensor.nbytes for tensor in (*self._inputs, *self._outputs))

    def replay(self, model: Model, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return what the step returns for these tensors, and count its queries."""
        for place, tensor in enumerate(tensors):
            given = self._given[place]
            if given is None or given[0]() is not tensor or given[1] != tensor._version:
                self._inputs[place].copy_(tensor)
                self._given[place] = weakref.ref(tensor), tensor._version
        self._graph.replay()
        model.queries += self._spent
        return tuple(output.clone() for output in self._outputs)


def should_record(rows: int, device: torch.device) -> bool:
    """Return whether steps of this many rows are worth a recording."""
    return device.type == "cuda" and rows <= _MOST


def _can_record(device: torch.device) -> bool:
    """Whether the caller works on the stream that recordings are ordered with, and is not recording itself."""
    usual = torch.cuda.current_stream(device) == torch.cuda.default_stream(device)
    return usual and not torch.cuda.is_current_stream_capturing()


def _on(device: torch.device) -> torch.cuda.device:
    return torch.cuda.device(device)


def _recover(device: torch.device, memory: Any) -> None:
    """Let torch go on after a recording that failed: it may think that it is still recording."""
    torch.cuda.synchronize()
    if memory is not None:
        with suppress(RuntimeError):
            torch._C._cuda_endAllocateToPool(device.index or 0, memory)
    graph = torch.cuda.CUDAGraph()  # the end of a recording that works also ends that of random numbers
    with suppress(RuntimeError), torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(capture_error_mode="thread_local")
        torch.zeros(1, device=device)
        graph.capture_end()


def _places(module: nn.Module) -> list[int]:
    """Return where the weights of a network are in memory."""
    return [tensor.data_ptr() for tensor in chain(module.parameters(), module.buffers())]


def _has_hooks(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)


def _reason(error: BaseException) -> str:
    """Return in a few words why a step could not be recorded."""
    while isinstance(error, HoldfastError) and error.__cause__ is not None:
        error = error.__cause__
    return "the GPU has no memory left for it" if out_of_memory(error) else first_line(error).removesuffix(".")


def _equal(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> bool:
    """Whether two results are the same up to rounding."""
    return all(_close(one.double(), other.double()) for one, other in zip(ours, theirs, strict=True))


def _close(one: Tensor, other: Tensor) -> bool:
    finite = torch.isfinite(other)
    largest = float(torch.where(finite, other, 0).abs().max()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=0, atol=_TOLERANCE * largest, equal_nan=True)
