"""The classifier under question: logits, decisions, bounds of the input, and how often it was asked."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from holdfast.cases import Cases
from holdfast.chunks import chunked
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.pace import Pace, fastest
from holdfast.scores import Scores, first_line

if TYPE_CHECKING:
    from holdfast.features import Features

Bound = float | Sequence[float] | Tensor

_CPU_ACTIVATIONS = 16 * 2**20  # about a core's share of cache: larger batches measure slower
_CPU_FEW = 2**30  # what a few rows of a large network may take: one at a time measures slower, too
_GPU_SHARE = 1 / 8  # of a GPU's memory that activations may fill


@dataclass(frozen=True)
class Queries:
    """Rows put through a network: ``forward`` counts all of them, ``gradient`` those also differentiated."""

    forward: int = 0
    gradient: int = 0

    def __add__(self, other: Queries) -> Queries:
        return Queries(self.forward + other.forward, self.gradient + other.gradient)

    def __sub__(self, other: Queries) -> Queries:
        return Queries(self.forward - other.forward, self.gradient - other.gradient)


class Classifier:
    """A torch module that turns ``[R, *shape]`` into one score a class.

    >>> model = Classifier(net.eval(), bounds=(0, 1))
    >>> logits = model(rows)
    >>> cases = model.ask(x)                 # why this class?
    >>> cases = model.ask(x, target=9)       # ... and not a nine?

    ``bounds`` is the box inputs live in: two numbers, two tensors that broadcast against one input, or
    ``None`` for no box. The module must be in eval mode and keeps its device and dtype. It may end in
    log-softmax (as good as logits) or softmax (its input is used where it can be seen; where it cannot,
    logarithms of the probabilities are, and saturated inputs are warned about, since a vanishing
    gradient would otherwise read as robustness).

    ``normalize`` is what the module wants done to inputs first, ``(mean, std)`` a channel: inputs, bounds and radii
    stay in the units of ``bounds``, pixels from 0 to 1 say, whatever the module was trained on.

    ``chunk`` fixes the rows that go through the module at once; by default it follows from the memory
    that one row's activations take, so that it never depends on timing. ``pace`` is how to compute the same faster,
    as ``tuned`` finds it by the stopwatch; decisions are asked of the module as it is, which must not change once it
    was asked.
    """

    def __init__(
        self,
        module: nn.Module,
        bounds: tuple[Bound, Bound] | None = None,
        *,
        normalize: tuple[Bound, Bound] | None = None,
        chunk: int | None = None,
        pace: Pace | None = None,
    ):
        if not isinstance(module, nn.Module):
            raise HoldfastError(f"expected a torch.nn.Module, got {type(module).__name__}.")
        if chunk is not None and chunk < 1:
            raise HoldfastError(f"chunk must be at least one row, got {chunk}.")
        self.module = module if normalize is None else Normalized(module, *_mean_and_std(normalize))
        self.require_eval()
        weight = next((p for p in [*module.parameters(), *module.buffers()] if p.is_floating_point()), torch.zeros(0))
        self.device: torch.device = weight.device
        self.module_dtype: torch.dtype = weight.dtype
        #: Points, radii and logits are kept in at least single precision, whatever the module computes in.
        self.dtype: torch.dtype = torch.promote_types(weight.dtype, torch.float32)
        self.low, self.high = self._read_bounds(bounds)
        self.queries = Queries()
        #: Scores a row gets; known once the module has been asked.
        self.classes = 0
        self.pace = Pace() if pace is None else pace
        self._chunk = chunk
        self._chunks: dict[tuple[int, ...], int] = {}
        self._scores: Scores | None = None  # what the module puts out, once it was asked
        self._form: nn.Module | None = None  # the module as the pace has it

    def __repr__(self) -> str:
        box = "None" if self.low is None or self.high is None else f"({_brief(self.low)}, {_brief(self.high)})"
        seen = "not seen yet" if self._scores is None else self._scores.kind
        return f"Classifier({type(self.module).__name__}, bounds={box}, output={seen})"

    # ------------------------------------------------------------------ asking

    def __call__(self, rows: Tensor, *, as_it_is: bool = False) -> Tensor:
        """Logits ``[R, classes]``, no gradient kept; by the module ``as_it_is``, not a faster form of it, if asked."""
        rows = torch.as_tensor(rows).to(self.device, self.dtype)
        if rows.ndim < 2 or not len(rows):
            raise HoldfastError(f"expected rows [R, *shape] with R >= 1, got shape {tuple(rows.shape)}.")
        self._look(rows)
        module = self.module if as_it_is else self._faster(rows)
        with torch.no_grad(), self.pace.deciding() if as_it_is else nullcontext():
            size = self.chunk(rows, gradient=False)
            parts = chunked(lambda piece: self._logits(rows[piece], module), len(rows), size)
            logits = torch.cat([part for _, part in parts])
        self.queries += Queries(forward=len(rows))
        return logits

    def gradient(self, rows: Tensor, loss: Callable[[Tensor], Tensor], *, draft: bool = False) -> tuple[Tensor, Tensor]:
        """Logits, and the gradient at ``rows`` of ``loss(logits) -> [R]``, all in one pass.

        A ``draft`` may be less exact, as the model's pace says: for searches that claim nothing by it.
        """
        self.require_gradients()
        self._look(rows)
        with torch.enable_grad():
            points = rows.detach().requires_grad_(True)
            logits = self._logits(points, self._faster(rows), self.pace.draft if draft else None)
            value = loss(logits).sum()
            slope = torch.zeros_like(rows)
            if value.requires_grad:  # not so when no score depends on the input
                (slope,) = torch.autograd.grad(value, points, allow_unused=True, materialize_grads=True)
        self.queries += Queries(forward=len(rows), gradient=len(rows))
        return logits.detach(), slope

    def logits(self, rows: Tensor, *, as_it_is: bool = False) -> Tensor:
        """Logits to be differentiated by the caller: every row counts as one with gradient."""
        self.require_gradients()
        self._look(rows)
        self.queries += Queries(forward=len(rows), gradient=len(rows))
        return self._logits(rows, self.module if as_it_is else self._faster(rows))

    def ask(
        self,
        x: Any,
        label: Any = None,
        target: Any = None,
        features: Features | Tensor | None = None,
    ) -> Cases:
        """The question "why ``label`` (and not ``target``)?" for a batch of inputs ``[B, *shape]``.

        ``label`` defaults to the prediction; ``target`` to none (any other class counts as a change);
        ``features`` to pixels for images ``[B, C, H, W]`` and to one feature a coordinate otherwise.
        """
        self.require_eval()
        return Cases.ask(self, x, label, target, features)

    def probabilities(self, logits: Tensor) -> Tensor:
        """What the model's own scores, as it gives them when called, mean as probabilities."""
        return logits.softmax(1)

    def through(self, module: nn.Module) -> Classifier:
        """This classifier with another module in front of or around its own: same bounds, pace and counts so far."""
        other = copy.copy(self)
        other.module, other._chunks, other._scores, other._form = module, {}, None, None
        return other

    def on(self, device: torch.device | str) -> Classifier:
        """This classifier on a device: itself if it is there, a copy otherwise."""
        if torch.device(device) == self.device:
            return self
        other = self.through(copy.deepcopy(self.module).to(device))
        other.device = torch.zeros(0, device=device).device  # "cuda" is a number of it
        other.low, other.high = (None if end is None else end.to(device) for end in (self.low, self.high))
        if other.device.type != self.device.type:
            other.pace = self.pace.on(device)
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_form": None}  # made again where it arrives

    def tuned(self, x: Any) -> Classifier:
        """This classifier at the pace that is fastest for inputs like ``x [B, *shape]`` on its device.

        Tries forms of the network that compute the same (batch norms folded into convolutions, channels last), numbers
        of rows at a time, and half precision for drafts on a GPU, by the stopwatch: it takes seconds, and is worth it
        for large networks. Another run may choose another number of rows, which moves results by rounding.
        """
        self.require_eval()
        self.require_gradients()
        rows = torch.as_tensor(x)[:8].detach().to(self.device, self.dtype)
        plain, other = self.through(self.module), self.through(self.module)
        plain.pace, plain._chunk = Pace(), None
        plain(rows)  # complains about what does not fit
        other.pace, size = fastest(self.module, rows.to(self.module_dtype), 2 * plain.chunk(rows))
        other._chunks = {tuple(rows.shape[1:]): size}
        return other

    def without_drafts(self) -> None:
        """Compute gradients in full from now on: half precision is too small for this network's numbers."""
        self.pace = replace(self.pace, draft=None)

    def require_eval(self) -> None:
        """Refuse a module in training mode: dropout and batch statistics would make radii random."""
        if self.module.training:
            raise HoldfastError("the module is in training mode: call module.eval() before asking about it.")

    def require_gradients(self) -> None:
        """Refuse a model that can only be asked."""

    # ------------------------------------------------------------------ size of a pass

    def chunk(self, rows: Tensor, gradient: bool = True) -> int:
        """How many such rows go through the module at once; twice as many where no gradient needs their activations."""
        if self._chunk is not None:
            return self._chunk
        shape = tuple(rows.shape[1:])
        if shape not in self._chunks:
            self._chunks[shape] = self._measure_chunk(rows[:1])
        return self._chunks[shape] if gradient else min(2 * self._chunks[shape], self._most())

    def _measure_chunk(self, row: Tensor) -> int:
        """Rows whose saved activations fill a budget. Counted, not timed: the same answer every time."""
        self._look(row)
        held: dict[int, int] = {}

        def note(tensor: Tensor) -> Tensor:
            held[tensor.data_ptr()] = tensor.nbytes
            return tensor

        parameters = {p.data_ptr() for p in self.module.parameters()}
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
            self._logits(row.detach().requires_grad_(True), self.module)
        bytes_a_row = row.nbytes + sum(size for place, size in held.items() if place not in parameters)
        if self.device.type == "cpu":
            few = max(1, min(8, _CPU_FEW // bytes_a_row))
            return max(few, min(self._most(), _CPU_ACTIVATIONS // bytes_a_row))
        memory = torch.cuda.get_device_properties(self.device).total_memory if self.device.type == "cuda" else 2**35
        most = max(1, min(self._most(), int(_GPU_SHARE * memory) // bytes_a_row))
        return 1 << (most.bit_length() - 1) if self.pace.even else most

    def _most(self) -> int:
        return 256 if self.device.type == "cpu" else 8192

    # ------------------------------------------------------------------ what the module puts out

    def _faster(self, rows: Tensor) -> nn.Module:
        if self._form is None:
            self._form = self.pace.form(self.module, rows[:2].detach().to(self.module_dtype))
        return self._form

    def _logits(self, rows: Tensor, module: nn.Module, draft: torch.dtype | None = None) -> Tensor:
        count, size = len(rows), self.pace.size(len(rows))
        size = max(count, min(size, self._chunk or size))
        if size > count:
            rows = torch.cat([rows, rows[-1:].detach().expand(size - count, *rows.shape[1:])])
        half = nullcontext() if draft is None else torch.autocast(rows.device.type, dtype=draft)
        with half:
            return self._look(rows.detach()).logits(module, rows.to(self.module_dtype), self.dtype)[:count]

    def _look(self, rows: Tensor) -> Scores:
        """What the module puts out: found out once, from the given rows and noisy copies of them."""
        if self._scores is None:
            noise = torch.randn(8, *rows.shape[1:], generator=torch.Generator().manual_seed(0)).to(rows)
            some = rows[:8]
            probes = torch.cat([some, some[:1] + noise * some.std(correction=0).clamp_min(0.1)])
            if self.low is not None and self.high is not None:
                probes = probes.clamp(self.low, self.high)
            self._scores = Scores.of(self.module, probes.to(self.module_dtype), len(some), self._chunk)
            self.classes = self._scores.classes
        return self._scores

    def warn_if_saturated(self, logits: Tensor) -> None:
        """Say so when probabilities have rounded to 0 and 1: no gradient is left to follow there."""
        if self._scores is None or self._scores.kind != "probabilities":
            return
        floor = torch.tensor(torch.finfo(logits.dtype).tiny, dtype=logits.dtype).log()
        flat = int((logits.topk(2).values[:, 1] <= floor).sum())
        if flat:
            warnings.warn(
                f"the module returns probabilities and {flat} of {len(logits)} inputs saturate them: gradients "
                "vanish there, so a large or censored radius does not mean robustness; return logits instead.",
                HoldfastWarning,
                stacklevel=4,
            )

    # ------------------------------------------------------------------ bounds

    def _read_bounds(self, bounds: tuple[Bound, Bound] | None) -> tuple[Tensor | None, Tensor | None]:
        if bounds is None:
            return None, None
        try:
            low, high = (torch.as_tensor(bound).to(self.device, self.dtype) for bound in bounds)
        except (TypeError, ValueError) as error:
            raise HoldfastError(f"bounds must be (low, high) or None, got {bounds!r}.") from error
        if not bool((low < high).all()) or not bool(torch.isfinite(low + high).all()):
            raise HoldfastError(f"bounds must be finite with low < high, got ({_brief(low)}, {_brief(high)}).")
        return low, high


class BlackBox(Classifier):
    """A function that can only be asked: numpy rows ``[R, *shape]`` in, scores ``[R, classes]`` or decisions out.

    >>> model = BlackBox(forest.predict_proba, bounds=(0, 1))
    >>> model = BlackBox(forest.predict, classes=3)             # decisions 0, 1, 2 only

    Scores are explained as they come: probabilities stay probabilities. Explainers that need no gradients work on it;
    the others say so.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        bounds: tuple[Bound, Bound] | None = None,
        *,
        classes: int | None = None,
        chunk: int = 1024,
    ):
        if not callable(function):
            raise HoldfastError(f"expected a function of rows, got {type(function).__name__}.")
        if classes is not None and classes < 2:
            raise HoldfastError(f"classes must be at least 2, got {classes}.")
        super().__init__(_Function(function, classes).eval(), bounds, chunk=chunk)
        self._sums_to_one = False

    def __repr__(self) -> str:
        return super().__repr__().replace("Classifier(_Function", "BlackBox(function", 1)

    def _look(self, rows: Tensor) -> Scores:
        if self._scores is None:
            scores = super()._look(rows)
            self._sums_to_one = scores.kind in ("softmax", "probabilities")
            self._scores = replace(scores, kind="logits")  # whatever the scores are, they are explained as they are
        return self._scores

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits if self._sums_to_one else super().probabilities(logits)

    def require_gradients(self) -> None:
        raise HoldfastError(
            "the model is a black box without gradients: use a method that needs none (holdfast list says which)."
        )


class Normalized(nn.Module):
    """A module whose inputs are shifted and scaled first, channel by channel."""

    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, mean: Tensor, std: Tensor):
        super().__init__()
        self.module = module
        weight = next(module.parameters(), mean)
        self.register_buffer("mean", mean.to(weight))
        self.register_buffer("std", std.to(weight))
        self.train(module.training)

    def forward(self, rows: Tensor) -> Any:
        shape = (-1, *[1] * (rows.ndim - 2))
        return self.module((rows - self.mean.view(shape)) / self.std.view(shape))


def _mean_and_std(normalize: Any) -> tuple[Tensor, Tensor]:
    try:
        mean, std = (torch.as_tensor(part, dtype=torch.double).flatten() for part in normalize)
    except (TypeError, ValueError) as error:
        raise HoldfastError(f"normalize must be (mean, std), numbers or one a channel, got {normalize!r}.") from error
    if not bool(torch.isfinite(mean).all()) or not bool((torch.isfinite(std) & (std > 0)).all()):
        raise HoldfastError(f"normalize must be finite with std > 0, got {normalize!r}.")
    if len(mean) != len(std) and 1 not in (len(mean), len(std)):
        raise HoldfastError(f"normalize has {len(mean)} means and {len(std)} deviations: give one a channel of both.")
    return mean, std


class _Function(nn.Module):
    """A function of numpy rows as a module; decisions become rows of zeros and a one."""

    def __init__(self, function: Callable[[Any], Any], classes: int | None):
        super().__init__()
        self.function, self.decisions = function, classes

    def forward(self, rows: Tensor) -> Tensor:
        try:
            out = torch.as_tensor(self.function(rows.detach().cpu().numpy())).to(rows.device)
        except TypeError as error:
            raise HoldfastError(f"the function must return numbers: {first_line(error)}") from error
        if self.decisions is None:
            return out.to(rows.dtype) if out.ndim == 2 else out
        if out.shape != rows.shape[:1] or out.is_floating_point():
            raise HoldfastError(
                f"the function must return whole decisions [R]: {len(rows)} rows gave {out.dtype} of shape "
                f"{tuple(out.shape)}."
            )
        if bool(((out < 0) | (out >= self.decisions)).any()):
            raise HoldfastError(
                f"the function must return decisions from 0 to {self.decisions - 1}, it returned {int(out.min())} to "
                f"{int(out.max())}."
            )
        return nn.functional.one_hot(out.long(), self.decisions).float()


def _brief(bound: Tensor) -> str:
    return f"{bound.item():g}" if bound.ndim == 0 else f"tensor{tuple(bound.shape)}"
