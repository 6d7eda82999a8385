"""Calls of the user's network: its own exception is reported once, with the place where it happened."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from torch import Tensor

from holdfast.chunks import out_of_memory
from holdfast.errors import HoldfastError, first_line


class ModelCall:
    """A context in which a network runs. What it raises becomes one ``HoldfastError``.

    Errors that say that memory ran out pass unchanged, so that smaller batches are tried.

    Args:
        rows: The inputs ``[R, *shape]`` that it gets.
        direction: Which pass runs.
    """

    def __init__(self, rows: Tensor, direction: Literal["forward", "backward"] = "forward"):
        self._rows, self._direction = rows, direction

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, HoldfastError) or out_of_memory(error):
            return
        if self._direction == "backward" and "not have been used in the graph" in str(error):
            raise no_gradient() from error
        shape = ", ".join(map(str, self._rows.shape))
        said = first_line(error)
        named = said if said == f"{type(error).__name__}." else f"{type(error).__name__}: {said}"
        raise HoldfastError(f"the model failed in its {self._direction} pass (rows [{shape}]): {named}") from error


def no_gradient() -> HoldfastError:
    """Return the error for scores that torch cannot differentiate."""
    return HoldfastError(
        "the model gives no gradient: its scores are cut off from its inputs, as by detach, no_grad, NumPy or whole "
        "numbers: remove that, or use a FunctionModel and methods without gradients."
    )
