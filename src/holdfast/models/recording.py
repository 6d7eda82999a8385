"""Steps of a search that a GPU records once and replays, so that launching their many small kernels takes no time.

A step is a function of tensors, as ``Model.run`` takes it. Its first call with tensors of some shapes runs as it
stands. The second one is recorded as a CUDA graph, and the recording is compared with the step itself. Later calls
replay it. A step that cannot be recorded runs as it stands: the answer is the same, and ``refused`` says why.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.chunks import out_of_memory
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
        if self.refused is not None or not should_record(len(tensors[0]), tensors[0].device) or not _can_record():
            return step(model, *tensors)
        key = step, tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key].replay(model, tensors)
            if key not in self._seen:
                self._seen.add(key)
                return step(model, *tensors)
            return self._record(key, model, step, tensors)

    def _record(self, key: Any, model: Model, step: Step, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Record a step, and return what the step itself returns."""
        before = model.queries
        result = step(model, *tensors)
        spent = model.queries - before
        if any(_has_hooks(layer) for layer in self._module.modules()):  # a replay would not call them
            self._refuse("its layers have hooks")
            return result
        try:
            if self._memory is None:
                self._memory = torch.cuda.graph_pool_handle()
            recording = _Recording(model, step, tensors, spent, self._memory)
            same = _equal(recording.replay(model, tensors), result)
        except (RuntimeError, HoldfastError) as error:  # among them all that a GPU refuses while it records
            self._refuse(_reason(error))
        else:
            if same:
                self._kept[key] = recording
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            else:
                self._refuse("its recording computes something else")
        model.queries = before + spent
        return result

    def __reduce__(self) -> tuple[type[Recordings], tuple[nn.Module]]:
        return Recordings, (self._module,)  # a copy of a model records anew

    def _refuse(self, reason: str) -> None:
        self.refused = reason
        self._kept.clear()
        self._seen.clear()
        torch.cuda.synchronize()


class _Recording:
    """A step with tensors of fixed shapes as a CUDA graph."""

    def __init__(self, model: Model, step: Step, tensors: tuple[Tensor, ...], spent: Queries, memory: Any):
        self._spent = spent
        self._inputs = [tensor.clone() for tensor in tensors]
        self._given: list[tuple[weakref.ref[Tensor], int] | None] = [None] * len(tensors)
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # Not torch.cuda.graph: after a failure it would leave its own stream as the current one.
        with torch.cuda.stream(torch.cuda.Stream()):
            self._graph.capture_begin(pool=memory, capture_error_mode="thread_local")  # other threads may go on
            try:
                self._outputs = step(model, *self._inputs)
            finally:
                self._graph.capture_end()

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


def _can_record() -> bool:
    """Whether the caller works on the stream that recordings are ordered with, and is not recording itself."""
    return torch.cuda.current_stream() == torch.cuda.default_stream() and not torch.cuda.is_current_stream_capturing()


def _has_hooks(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)


def _reason(error: BaseException) -> str:
    """Return in a few words why a step could not be recorded."""
    if out_of_memory(error):
        return "the GPU has no memory left for it"
    while (before := error.__cause__ or error.__context__) is not None:  # the end of a broken recording fails, too
        error = before
    return first_line(error).removesuffix(".")


def _equal(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> bool:
    """Whether two results are the same up to rounding."""
    return all(_close(one.double(), other.double()) for one, other in zip(ours, theirs, strict=True))


def _close(one: Tensor, other: Tensor) -> bool:
    finite = torch.isfinite(other)
    largest = float(torch.where(finite, other, 0).abs().max()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=0, atol=_TOLERANCE * largest, equal_nan=True)
