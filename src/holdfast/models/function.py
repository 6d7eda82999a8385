"""A function as a model: scores or decisions, without gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.cases import AskableModel
from holdfast.chunks import chunked
from holdfast.columns import Columns
from holdfast.errors import HoldfastError
from holdfast.models.calls import ModelCall
from holdfast.models.frame import (
    Bound,
    bounds_of_table,
    check_class_names,
    read_bounds,
    read_chunk,
    read_class_names,
    read_device,
    read_rows,
    shown_bounds,
)
from holdfast.models.model import Access, Queries
from holdfast.models.scores import Scores
from holdfast.settings import Count, Range, read_setting
from holdfast.tensors import read_tensor

_PROBED = 64  # rows that a function is asked about twice


class FunctionModel(AskableModel):
    """A function from NumPy rows ``[R, *shape]`` to scores ``[R, classes]`` or to decisions ``[R]``.

    >>> FunctionModel(lambda rows: rows[:, :3], bounds=(0, 1))                        # scores of three classes
    FunctionModel(scores, bounds=(0, 1))
    >>> FunctionModel(lambda rows: (rows[:, 0] > 0.5).astype(int), classes=2)         # decisions 0 or 1
    FunctionModel(decisions, bounds=None)
    >>> def predict(rows):
    ...     return np.where(rows[:, 0] > 0.5, "yes", "no")
    >>> FunctionModel(predict, classes=["no", "yes"], decisions=True)                 # names of classes
    FunctionModel(decisions, bounds=None)

    Scores are explained as they are: probabilities stay probabilities. A decision counts as a score of 1 for its class
    and 0 for the others. Methods that need gradients refuse the model.

    Args:
        function: Called with a float array; must return the same answer for the same rows.
        bounds: The box that inputs live in, ``(low, high)``; None: inputs are not bounded.
        classes: Names of the classes of a function that returns scores. Their number, or ``decisions=True`` and
            their names, for a function that returns decisions.
        decisions: Whether the function returns decisions: numbers of classes from 0, or their names as texts. Default:
            whether ``classes`` is a number.
        columns: The columns of a table: the function gets rows as ``columns.matrix`` gives them. They replace bounds,
            and whole numbers and categories stay what they are.
        chunk: Rows that the function gets at once.
        most_queries: How many rows the function may get in all, with those that find out what it returns. A call that
            would be beyond raises an error, and the function does not get its rows. None: any number.

    Raises:
        HoldfastError: An argument is malformed.
    """

    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(
        self,
        function: Callable[[Any], Any],
        bounds: tuple[Bound, Bound] | None = None,
        *,
        classes: Sequence[str] | int = (),
        decisions: bool | None = None,
        columns: Columns | None = None,
        chunk: int = 1024,
        most_queries: int | None = None,
    ):
        if not callable(function):
            raise HoldfastError(f"expected a function of rows, got {type(function).__name__}.")
        decisions = read_setting(decisions, bool | None, "decisions")
        if isinstance(classes, int):
            classes = read_setting(classes, Annotated[int, Range(2)], "classes")
        names = read_class_names(range(classes) if isinstance(classes, int) else classes)
        decides = isinstance(classes, int) if decisions is None else decisions
        if decides and len(names) < 2:
            raise HoldfastError(f"classes must be at least 2, got {len(names)}.")
        chunk = read_chunk(chunk)
        self.access = Access.DECISIONS if decides else Access.SCORES
        if columns is not None:
            bounds = bounds_of_table(columns, columns.width, bounds)
            self.dtype, self.columns = torch.float64, columns.names
            self.domain, self.features = columns.domain(), columns.features()
        self.low, self.high = read_bounds(bounds, self.device, self.dtype)
        self.queries = Queries()
        named = not isinstance(classes, int)
        limit = read_setting(most_queries, Count | None, "most_queries")
        self._function = _Function(_Limited(function, limit), names if decides else None, named, columns).eval()
        self._names, self._chunk = names, chunk
        self._scores: Scores | None = None

    def __repr__(self) -> str:
        return f"FunctionModel({self.access}, bounds={shown_bounds(self.low, self.high)})"

    @property
    def classes(self) -> tuple[str, ...]:
        if self._names or self._scores is None:
            return self._names
        return tuple(map(str, range(self._scores.classes)))

    def __call__(self, rows: Tensor, *, exact: bool = False) -> Tensor:
        rows = read_rows(rows).to(self.device, self.dtype)
        kind = self._probe(rows)
        parts = chunked(
            lambda piece: kind.checked(self._function(rows[piece]), piece.stop - piece.start), len(rows), self._chunk
        )
        scores = torch.cat([part for _, part in parts]).to(self.dtype)
        self.queries += Queries(forward=len(rows))
        return scores

    def probabilities(self, scores: Tensor) -> Tensor:
        sums_to_one = self._scores is not None and self._scores.kind in ("softmax", "probabilities")
        return scores if sums_to_one else scores.softmax(1)

    def chunk(self, rows: Tensor, gradient: bool = True) -> int:
        return self._chunk

    def check_ready(self) -> None:
        """A function is always ready."""

    def on(self, device: torch.device | str) -> FunctionModel:
        """Return the model itself: a function stays where it is."""
        if read_device(device).type != "cpu":
            raise HoldfastError(f"a FunctionModel computes on the CPU and cannot be moved to {device}.")
        return self

    def _probe(self, rows: Tensor) -> Scores:
        """Return what the function returns, found out once."""
        if self._scores is None:
            scores = Scores.of(self._function, rows, (self.low, self.high), self._chunk)
            check_class_names(self._names, scores.classes)
            some = rows[:_PROBED]
            if not torch.equal(self._function(some), self._function(some)):
                raise HoldfastError("the function gives the same rows different answers: it must be deterministic.")
            self._scores = scores
        return self._scores


class _Limited:
    """A function that counts the rows that it gets, and refuses to get more than a limit."""

    def __init__(self, function: Callable[[Any], Any], limit: int | None):
        self._function, self._limit, self._given = function, limit, 0

    def __call__(self, rows: Any) -> Any:
        if self._limit is not None and self._given + len(rows) > self._limit:
            raise HoldfastError(
                f"this function may get {self._limit:,} rows, it got {self._given:,}, and {len(rows):,} more are asked "
                "for: raise most_queries, explain fewer inputs, or use a method that asks for fewer rows."
            )
        self._given += len(rows)
        return self._function(rows)


class _Function(nn.Module):
    """A function of NumPy rows as a module; decisions become rows of zeros and a one."""

    def __init__(
        self, function: Callable[[Any], Any], classes: tuple[str, ...] | None, named: bool, columns: Columns | None
    ):
        super().__init__()
        self.function, self.classes, self.named, self.columns = function, classes, named, columns

    def forward(self, rows: Tensor) -> Tensor:
        given = rows.detach().cpu()
        with ModelCall(rows):
            answer = self.function(given.numpy() if self.columns is None else self.columns.unscaled(given))
        out = read_tensor(self._numbers(answer), "what the function returns", "numbers").to(rows.device)
        if self.classes is None:
            if out.ndim != 2 or len(out) != len(rows):
                raise HoldfastError(
                    f"the function must return scores [R, classes]: {len(rows)} rows gave shape {tuple(out.shape)}."
                )
            return out.to(rows.dtype)
        if out.shape != rows.shape[:1] or out.is_floating_point():
            raise HoldfastError(
                f"the function must return whole decisions [R]: {len(rows)} rows gave {out.dtype} of shape "
                f"{tuple(out.shape)}."
            )
        count = len(self.classes)
        if bool(((out < 0) | (out >= count)).any()):
            raise HoldfastError(
                f"the function must return decisions from 0 to {count - 1}, it returned {int(out.min())} to "
                f"{int(out.max())}."
            )
        return nn.functional.one_hot(out.long(), count).float()

    def _numbers(self, answer: Any) -> Any:
        """Return what a function returns as an array of numbers; refuse rows of different lengths."""
        if isinstance(answer, Tensor):
            return answer
        try:
            array = np.asarray(answer)
        except ValueError as error:
            raise HoldfastError("the function must return an array, and its rows have different lengths.") from error
        if _holds_texts(array):
            return self._decoded(array)
        if array.dtype.kind not in "biuf":
            kind = f"a {type(answer).__name__} of {array.dtype}"
            raise HoldfastError(f"the function must return class numbers from 0, or scores, got {kind}.")
        return array

    def _decoded(self, texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the numbers of classes that a function returned by name."""
        if self.classes is None or not self.named:
            raise HoldfastError(
                "the function returns texts: give the names of all classes and decisions=True, such as "
                "FunctionModel(function, classes=['no', 'yes'], decisions=True)."
            )
        number = {name: place for place, name in enumerate(self.classes)}
        every = [str(one) for one in texts.ravel()]
        unknown = next((one for one in every if one not in number), None)
        if unknown is not None:
            raise HoldfastError(
                f"the function must return names of classes, {', '.join(self.classes)[:200]}, got {unknown[:60]!r}."
            )
        return np.array([number[one] for one in every]).reshape(texts.shape)


def _holds_texts(array: np.ndarray[Any, Any]) -> bool:
    """Return whether all values of an array are texts, in any of the ways that NumPy and pandas hold them."""
    if array.dtype.kind == "O":
        return bool(array.size) and all(isinstance(one, str) for one in array.ravel())
    return array.dtype.kind in "UT"
