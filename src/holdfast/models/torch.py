"""A torch module as a model: logits, gradients, bounds of inputs, and a count of queries."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.cases import AskableModel
from holdfast.chunks import chunked
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.models.calls import ModelCall, no_gradient
from holdfast.models.execution import Execution, fastest
from holdfast.models.frame import Bound as Bound
from holdfast.models.frame import (
    Normalized,
    check_class_names,
    mean_and_std,
    read_bounds,
    read_chunk,
    read_class_names,
    read_device,
    read_rows,
    shown_bounds,
)
from holdfast.models.model import Access, DifferentiableModel, Model, Queries, Step
from holdfast.models.recording import Recordings, should_record
from holdfast.models.scores import Scores

_CPU_ACTIVATIONS = 16 * 2**20  # bytes, about the cache of one core: larger batches are slower
_CPU_FEW = 2**30  # bytes for a few rows of a large network: single rows are slower, too
_GPU_SHARE = 1 / 8  # share of the memory of a GPU for activations


class TorchModel(AskableModel, DifferentiableModel):
    """A ``torch.nn.Module`` that maps ``[R, *shape]`` to scores ``[R, classes]``.

    >>> net = nn.Linear(4, 2).eval()
    >>> net.weight.data, net.bias.data = torch.eye(2, 4), torch.zeros(2)
    >>> model = TorchModel(net, bounds=(0, 1), classes=["cat", "dog"])
    >>> x = torch.tensor([[9.0, 1, 0, 0]]) / 10
    >>> model.ask(x)                     # why a cat?
    Cases(1 of shape (4,), untargeted, 4 coordinates)
    >>> model.ask(x, target="dog")       # why not a dog?
    Cases(1 of shape (4,), targeted, 4 coordinates)

    The module must be in eval mode. It keeps its device and dtype, and must not change after the first call.
    It may return logits, log-probabilities or probabilities. The logits before a final softmax are used if torch can
    observe them, otherwise the logarithms of the probabilities. Then saturated inputs give a warning, because
    their gradient vanishes and they seem robust.

    Args:
        module: The network.
        bounds: ``(low, high)`` of inputs: numbers, or tensors that broadcast against one input. None: unbounded.
        normalize: ``(mean, std)`` for each channel, applied to inputs before the module. Inputs, bounds and radii stay
            in the units of ``bounds``.
        classes: Names of the classes.
        chunk: The batch size. Default: computed from the memory of one row's activations, independent of timing.
        execution: A faster form of the module, as ``tuned`` finds it. Decisions always use the module itself.

    Raises:
        HoldfastError: An argument is malformed, or the module is in training mode.
    """

    access = Access.LAYERS

    def __init__(
        self,
        module: nn.Module,
        bounds: tuple[Bound, Bound] | None = None,
        *,
        normalize: tuple[Bound, Bound] | None = None,
        classes: Sequence[str] = (),
        chunk: int | None = None,
        execution: Execution | None = None,
    ):
        if not isinstance(module, nn.Module):
            raise HoldfastError(f"expected a torch.nn.Module, got {type(module).__name__}.")
        self.module = module if normalize is None else Normalized(module, *mean_and_std(normalize))
        self._recordings = Recordings(self.module)
        self.check_ready()
        weight = next((p for p in [*module.parameters(), *module.buffers()] if p.is_floating_point()), torch.zeros(0))
        self.device: torch.device = weight.device
        self.module_dtype: torch.dtype = weight.dtype
        #: Points, radii and logits have at least single precision, whatever the module uses.
        self.dtype: torch.dtype = torch.promote_types(weight.dtype, torch.float32)
        self.low, self.high = read_bounds(bounds, self.device, self.dtype)
        self.queries = Queries()
        self.execution = Execution() if execution is None else execution
        if not isinstance(self.execution, Execution):
            raise HoldfastError(f"execution must be an Execution or None, got {type(execution).__name__}.")
        self._names = read_class_names(classes)
        self._chunk = None if chunk is None else read_chunk(chunk)
        self._chunks: dict[tuple[int, ...], int] = {}
        self._classes: tuple[str, ...] = ()
        self._scores: Scores | None = None  # known after the first call
        self._form: nn.Module | None = None  # the module as the execution computes it

    def __repr__(self) -> str:
        output = "not asked yet" if self._scores is None else self._scores.kind
        return f"TorchModel({type(self.module).__name__}, bounds={shown_bounds(self.low, self.high)}, output={output})"

    @property
    def classes(self) -> tuple[str, ...]:
        if self._scores is None:
            return self._names
        return self._classes

    @property
    def low_precision(self) -> bool:
        return self.execution.low_precision is not None

    def __call__(self, rows: Tensor, *, exact: bool = False) -> Tensor:
        rows = read_rows(rows).to(self.device, self.dtype)
        self._probe(rows)
        module = self.module if exact else self._faster(rows)
        with torch.no_grad(), self.execution.deciding() if exact else nullcontext():
            size = self.chunk(rows, gradient=False)
            parts = chunked(lambda piece: self._logits(rows[piece], module), len(rows), size)
            logits = torch.cat([part for _, part in parts])
        self.queries += Queries(forward=len(rows))
        return logits

    def gradient(
        self, rows: Tensor, loss: Callable[[Tensor], Tensor], *, low_precision: bool = False
    ) -> tuple[Tensor, Tensor]:
        self._probe(rows)
        with torch.enable_grad():
            points = rows.detach().requires_grad_(True)
            precision = self.execution.low_precision if low_precision else None
            logits = self._logits(points, self._faster(rows), precision)
            value = loss(logits).sum()
            found = None
            if value.requires_grad:
                with ModelCall(rows, "backward"):
                    (found,) = torch.autograd.grad(value, points, allow_unused=True)
            if found is None and self._probe(rows).varies:
                raise no_gradient()
            slope = torch.zeros_like(rows) if found is None else found  # zeros: no score depends on the input
        self.queries += Queries(forward=len(rows), gradient=len(rows))
        return logits.detach(), slope

    def run(self, step: Step, *tensors: Tensor) -> tuple[Tensor, ...]:
        return self._recordings.run(self, step, tensors) if self.execution.record else step(self, *tensors)

    def fills_up(self, rows: int) -> bool:
        return should_record(rows, self.device)

    @property
    def notes(self) -> tuple[str, ...]:
        refused = self._recordings.refused
        if refused is None:
            return ()
        said = f"steps of searches could not be replayed as a CUDA graph ({refused}): they took longer"
        return (f"{said}, and found the same.",)

    def logits(self, rows: Tensor, *, exact: bool = False) -> Tensor:
        self._probe(rows)
        self.queries += Queries(forward=len(rows), gradient=len(rows))
        logits = self._logits(rows, self.module if exact else self._faster(rows))
        if rows.requires_grad and torch.is_grad_enabled() and not logits.requires_grad:
            raise no_gradient()
        return logits

    def probabilities(self, scores: Tensor) -> Tensor:
        return scores.softmax(1)

    def check_ready(self) -> None:
        """Refuse a module in training mode: dropout and batch statistics make radii random."""
        if self.module.training:
            raise HoldfastError("the module is in training mode: call module.eval() before asking about it.")
        self._recordings.forget_moved_weights()

    def with_module(self, module: nn.Module) -> TorchModel:
        """Return a copy with another module, and the same bounds, class names, execution and counts so far."""
        other = copy.copy(self)
        other.module, other._chunks, other._scores, other._form = module, {}, None, None
        other._recordings = Recordings(module)
        return other

    def with_classes(self, classes: Sequence[str]) -> TorchModel:
        """Return a copy with these names of classes."""
        other = copy.copy(self)
        other._names, other._scores, other._recordings = read_class_names(classes), None, Recordings(self.module)
        return other

    def on(self, device: torch.device | str) -> TorchModel:
        device = read_device(device)
        if device == self.device:
            return self
        other = self.with_module(copy.deepcopy(self.module).to(device))
        other.device = torch.zeros(0, device=device).device  # "cuda" becomes "cuda:0"
        other.low, other.high = (None if end is None else end.to(device) for end in (self.low, self.high))
        if other.device.type != self.device.type:
            other.execution = self.execution.on(device)
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_form": None}  # made again after unpickling

    def tuned(self, x: Any) -> TorchModel:
        """Return a copy with the execution that is fastest for inputs like ``x`` on its device.

        Times equivalent forms of the network (batch norms folded into convolutions, channels last), batch sizes, and
        half precision on a GPU, and whether batches are filled up. This takes seconds and is worth it for large
        networks. Another run may choose another batch size, which changes results by rounding.

        Args:
            x: Inputs ``[B, *shape]`` to measure with.

        Returns:
            A copy that shares the module.
        """
        self.check_ready()
        rows = read_rows(x)[:8].to(self.device, self.dtype)
        plain, other = self.with_module(self.module), self.with_module(self.module)
        plain.execution, plain._chunk = Execution(), None
        plain(rows)  # refuses inputs that do not fit
        best, size = fastest(self.module, rows.to(self.module_dtype), 2 * plain.chunk(rows))
        other.execution = replace(best, record=self.execution.record)
        other._chunks = {tuple(rows.shape[1:]): size}
        return other

    def chunk(self, rows: Tensor, gradient: bool = True) -> int:
        """Return the batch size for rows of this shape; up to twice as large without gradients."""
        if self._chunk is not None:
            return self._chunk
        shape = tuple(rows.shape[1:])
        if shape not in self._chunks:
            self._chunks[shape] = self._measure_chunk(rows[:1])
        return self._chunks[shape] if gradient else min(2 * self._chunks[shape], self._most())

    def _measure_chunk(self, row: Tensor) -> int:
        """Return how many rows have activations that fill a memory budget. Not timed, so always the same."""
        self._probe(row)
        saved: dict[int, int] = {}

        def note(tensor: Tensor) -> Tensor:
            saved[tensor.data_ptr()] = tensor.nbytes
            return tensor

        parameters = {p.data_ptr() for p in self.module.parameters()}
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
            self._logits(row.detach().requires_grad_(True), self.module)
        bytes_a_row = row.nbytes + sum(size for place, size in saved.items() if place not in parameters)
        if self.device.type == "cpu":
            few = max(1, min(8, _CPU_FEW // bytes_a_row))
            return max(few, min(self._most(), _CPU_ACTIVATIONS // bytes_a_row))
        memory = torch.cuda.get_device_properties(self.device).total_memory if self.device.type == "cuda" else 2**35
        most = max(1, min(self._most(), int(_GPU_SHARE * memory) // bytes_a_row))
        return 1 << (most.bit_length() - 1) if self.execution.pad_batches else most

    def _most(self) -> int:
        return 256 if self.device.type == "cpu" else 8192

    def _faster(self, rows: Tensor) -> nn.Module:
        if self._form is None:
            self._form = self.execution.form(self.module, rows[:2].detach().to(self.module_dtype))
        return self._form

    def _logits(self, rows: Tensor, module: nn.Module, precision: torch.dtype | None = None) -> Tensor:
        count, size = len(rows), self.execution.size(len(rows))
        size = max(count, min(size, self._chunk or size))
        if size > count:
            rows = torch.cat([rows, rows[-1:].detach().expand(size - count, *rows.shape[1:])])
        low = nullcontext() if precision is None else torch.autocast(rows.device.type, dtype=precision)
        with low:
            return self._probe(rows.detach()).logits(module, rows.to(self.module_dtype), self.dtype)[:count]

    def _probe(self, rows: Tensor) -> Scores:
        """Return the kind of the module's scores, observed on the first call."""
        if self._scores is None:
            box = (self.low, self.high)
            scores = Scores.of(self.module, rows.to(self.module_dtype), box, self._chunk)
            check_class_names(self._names, scores.classes)
            self._scores, self._classes = scores, self._names or tuple(map(str, range(scores.classes)))
        return self._scores

    def warn_if_saturated(self, scores: Tensor) -> None:
        """Warn if probabilities are rounded to 0 and 1, where gradients vanish."""
        if self._scores is None or self._scores.kind != "probabilities":
            return
        floor = torch.tensor(torch.finfo(scores.dtype).tiny, dtype=scores.dtype).log()
        flat = int((scores.topk(2).values[:, 1] <= floor).sum())
        if flat:
            warnings.warn(
                f"the module returns probabilities and {flat} of {len(scores)} inputs saturate them: gradients "
                "vanish there, so a large or censored radius does not mean robustness; return logits instead.",
                HoldfastWarning,
                stacklevel=4,
            )


def layers_of(model: Model) -> TorchModel:
    """Return the model, typed as one with layers.

    Raises:
        HoldfastError: It is not a torch module.
    """
    if not isinstance(model, TorchModel):
        raise HoldfastError(f"the layers of a torch module are needed, got a {type(model).__name__}.")
    return model
