"""The kind of scores that a network returns, and logits from each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from holdfast.chunks import chunked
from holdfast.draws import generator
from holdfast.errors import HoldfastError
from holdfast.models.calls import ModelCall

Kind = Literal["logits", "log-probabilities", "softmax", "probabilities"]

_SOFTMAX = (torch.softmax, Tensor.softmax, nn.functional.softmax)


@dataclass(frozen=True)
class Scores:
    """The kind and number of the scores of a network.

    Attributes:
        kind: ``"softmax"``: probabilities whose logits torch can observe. ``"probabilities"``: other probabilities.
        classes: The number of classes.
        varies: Whether other inputs have other scores.
    """

    kind: Kind
    classes: int
    varies: bool = True

    @classmethod
    def of(cls, module: nn.Module, rows: Tensor, box: tuple[Tensor | None, Tensor | None], chunk: int | None) -> Scores:
        """Determine the kind of scores from a few rows and noisy copies of them.

        Args:
            module: The network, or a function as a module.
            rows: Inputs ``[R, *shape]``, in the module's precision.
            box: The bounds of inputs; noise is clipped to them.
            chunk: Rows that go through the module at once; None: all.

        Returns:
            The kind of scores and the number of classes.

        Raises:
            HoldfastError: The module does not accept the rows, or does not return finite scores ``[R, classes]``.
        """
        noise = torch.randn(8, *rows.shape[1:], generator=generator(0)).to(rows)
        some = rows[:8]
        probes = torch.cat([some, some[:1] + noise * some.std(correction=0).clamp_min(0.1)])
        low, high = box
        probes = probes if low is None else probes.clamp(low, high)
        out, last = _output(module, probes, chunk)
        _check(out[: len(some)])  # not the noise, which may be outside the module's domain
        score = out[torch.isfinite(out).all(1)].to(torch.promote_types(rows.dtype, torch.float32))
        tolerance = 100 * torch.finfo(rows.dtype).eps
        one = torch.ones(len(score)).to(score)
        kind: Kind = "logits"
        if bool((score >= 0).all()) and torch.allclose(score.sum(1), one, atol=tolerance):
            kind = "softmax" if last else "probabilities"
        elif bool((score <= tolerance).all()) and torch.allclose(score.logsumexp(1).exp(), one, atol=tolerance):
            kind = "log-probabilities"
        return cls(kind, out.shape[1], bool((out != out[:1]).any()))

    def logits(self, module: nn.Module, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the logits of a module that has this kind of scores.

        Args:
            module: The network.
            rows: Inputs ``[R, *shape]``, in the module's precision.
            dtype: The precision of the result.

        Returns:
            Logits ``[R, classes]``, up to a constant for each row.
        """
        if self.kind == "softmax":
            with ModelCall(rows), SoftmaxInputs() as seen:
                probabilities = module(rows)
            self.checked(probabilities, len(rows))
            return self.checked(seen.input_of(probabilities), len(rows)).to(dtype)
        with ModelCall(rows):
            returned = module(rows)
        out = self.checked(returned, len(rows)).to(dtype)
        if self.kind == "probabilities":
            out = out.clamp_min(torch.finfo(out.dtype).tiny).log()
        return out  # log-probabilities differ from logits by a constant for each row, which cancels in margins

    def checked(self, out: Any, rows: int) -> Tensor:
        """Return scores; refuse a module that does not return what it returned at first."""
        if isinstance(out, Tensor) and out.shape == (rows, self.classes) and _is_real(out):
            return out
        got = f"{out.dtype} of shape {tuple(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
        raise HoldfastError(f"the model must return scores {[rows, self.classes]} as at its first call, got {got}.")


class SoftmaxInputs(TorchFunctionMode):
    """Records the input of each softmax, so that the logits before the last softmax can be used."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[tuple[Tensor, Tensor]] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in _SOFTMAX:
            self._seen.append((out, args[0] if args else (kwargs or {})["input"]))
        return out

    def holds(self, out: Tensor) -> bool:
        """Return whether a softmax produced this tensor."""
        return any(result is out for result, _ in self._seen)

    def input_of(self, out: Tensor) -> Tensor:
        """Return the input of the softmax that produced this tensor."""
        for result, source in reversed(self._seen):
            if result is out:
                return source
        raise HoldfastError("the module ended in a softmax at its first call and does not now: it must not change.")


def _output(module: nn.Module, rows: Tensor, chunk: int | None) -> tuple[Tensor, bool]:
    """Return the module's output, and whether a softmax was its last operation."""

    def work(piece: slice) -> tuple[Tensor, bool]:
        with ModelCall(rows[piece]), SoftmaxInputs() as seen:
            out = module(rows[piece])
        count = piece.stop - piece.start
        if not isinstance(out, Tensor):
            raise HoldfastError(f"the module must return a tensor [R, classes], got {type(out).__name__}.")
        if out.ndim != 2 or len(out) != count:
            raise HoldfastError(f"the module must return [R, classes], got {tuple(out.shape)} for {count} rows.")
        if not _is_real(out):
            raise HoldfastError(f"the module must return real scores that have values, got {out.dtype}, {out.layout}.")
        return out, seen.holds(out)

    with torch.no_grad():
        parts = [part for _, part in chunked(work, len(rows), chunk or len(rows))]
    widths = sorted({out.shape[1] for out, _ in parts})
    if len(widths) > 1:
        raise HoldfastError(f"the module must return as many classes for all rows, got {widths[0]} and {widths[1]}.")
    return torch.cat([out for out, _ in parts]), all(last for _, last in parts)


def _is_real(out: Tensor) -> bool:
    """Whether scores are dense numbers that can be compared."""
    return out.layout is torch.strided and not (out.is_meta or out.is_nested or out.is_quantized or out.is_complex())


def _check(out: Tensor) -> None:
    """Refuse scores of fewer than two classes, and scores that are not finite."""
    if out.shape[1] < 2:
        raise HoldfastError(
            "the module returns one column: a classifier needs a score for each of at least two classes "
            "(for a single logit z, return [-z, z] instead)."
        )
    if not bool(torch.isfinite(out).all()):
        raise HoldfastError("the module returns NaN or infinite scores.")
