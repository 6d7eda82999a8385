"""Reference values: what a feature becomes when it is removed, and how the model scores the rest."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from holdfast.cases import ANY, Cases, explained
from holdfast.chunks import Progress, chunked
from holdfast.draws import generator
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.settings import Read
from holdfast.tensors import read_tensor


class FixedReference:
    """A tensor of reference values. Its ``repr`` names shape and content, so that it can be part of a key.

    >>> FixedReference(torch.zeros(2, 3))
    tensor(2, 3)#17b0761f87b0

    Args:
        values: A tensor or an array of one input ``[*shape]`` or of several ``[N, *shape]``.
    """

    def __init__(self, values: Any):
        self.values = read_tensor(values, "reference values")
        content = self.values.cpu().contiguous().double().numpy().tobytes()
        self._digest = hashlib.sha256(content).hexdigest()[:12]

    @classmethod
    def inputs(cls, given: Any, name: str = "references") -> FixedReference:
        """Check a tensor or array of several inputs.

        Args:
            given: Inputs ``[N, *shape]``.
            name: What they are called in messages.

        Returns:
            The inputs as a fixed reference.

        Raises:
            HoldfastError: It is something else, or empty.
        """
        values = given if given is None or isinstance(given, str) else read_reference(given, name)
        if not isinstance(values, cls) or values.values.ndim < 2 or not len(values.values):
            raise HoldfastError(f"{name} must be a tensor of inputs [N, *shape], got {values!r}.")
        return values

    def fitting(self, x: Tensor, name: str = "references") -> Tensor:
        """Return these inputs ``[N, *shape]`` on the device and in the precision of ``x [B, *shape]``.

        Raises:
            HoldfastError: Their shape is not that of the inputs.
        """
        if self.values.shape[1:] != x.shape[1:]:
            shape = ", ".join(map(str, x.shape[1:]))
            raise HoldfastError(f"{name} must be [N, {shape}], got {tuple(self.values.shape)}.")
        return self.values.to(x)

    def __repr__(self) -> str:
        return f"tensor{tuple(self.values.shape)}#{self._digest}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FixedReference) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class RandomWords(FixedReference):
    """Random words as a reference for embedded text: each word that is removed becomes one of them.

    Args:
        vectors: Word vectors ``[V, E]`` to draw from.

    Raises:
        HoldfastError: They are not finite floats ``[V, E]``.
    """

    def __init__(self, vectors: Any):
        values = read_tensor(vectors, "word vectors", "floats [V, E]")
        if values.ndim != 2 or not len(values) or not values.is_floating_point():
            raise HoldfastError(f"word vectors must be floats [V, E], got {values.dtype} of {tuple(values.shape)}.")
        if not bool(torch.isfinite(values).all()):
            raise HoldfastError("word vectors hold NaN or infinity.")
        super().__init__(values)

    def __repr__(self) -> str:
        return f"RandomWords({super().__repr__()})"


class RandomRows(FixedReference):
    """Random inputs as a reference: each draw is one of them, whole, and the same for every case.

    Args:
        values: Inputs ``[N, *shape]`` to draw from, such as rows of a table.
    """

    def drawn(self, x: Tensor, seed: int) -> Tensor:
        """Return one of the inputs as ``[B, *shape]``."""
        values = self.fitting(x, "reference")
        which = int(torch.randint(len(values), (1,), generator=generator(seed)))
        return values[which].expand_as(x)

    def __repr__(self) -> str:
        return f"RandomRows({super().__repr__()})"


Score = Literal["logit", "probability", "margin"]
"""The score of the label: its logit, its probability, or its logit minus the largest logit of another class.

For a targeted question, the score of the target is subtracted.
"""

_MADE = ("blur", "mean", "uniform")
_BLUR = 0.1  # the standard deviation of the blur, as a share of the longer side (Fong & Vedaldi: 10 of 224 pixels)


def read_reference(given: Any, name: str = "reference") -> float | FixedReference | Literal["blur", "mean", "uniform"]:
    """Check a reference before anything runs.

    Args:
        given: A number, a tensor or array, or one of ``"blur"``, ``"mean"``, ``"uniform"``.
        name: What it is called in messages.

    Returns:
        The reference in a form that can be part of a key.

    Raises:
        HoldfastError: It is none of these, or not finite.
    """
    expected = f"{name} must be a number, a tensor or one of {', '.join(_MADE)}"
    if isinstance(given, str):
        if given not in _MADE:
            raise HoldfastError(f"{expected}, got {given!r}.")
        return given  # type: ignore[return-value]  # mypy does not narrow a string by a tuple
    if isinstance(given, FixedReference):
        return given
    given = torch.tensor(given, dtype=torch.double) if isinstance(given, float) else given
    values = read_tensor(given, name, expected.removeprefix(f"{name} must be "))
    if values.dtype == torch.bool:
        raise HoldfastError(f"{expected}, got {values.dtype}.")
    if not bool(torch.isfinite(values).all()):
        raise HoldfastError(f"{name} holds NaN or infinity.")
    return float(values) if values.ndim == 0 else FixedReference(values)


Reference = Annotated[float | Tensor | FixedReference | Literal["blur", "mean", "uniform"], Read(read_reference)]
"""A number, a tensor of values, or a way to make them.

``"blur"`` and ``"mean"`` are computed from each image, ``"uniform"`` is noise inside the model's bounds. For embedded
text, ``RandomWords(vectors)`` replaces the words that are removed by random ones.
"""
References = Annotated[Tensor | FixedReference, Read(FixedReference.inputs)]
"""Several inputs ``[N, *shape]``."""


def reference_points(cases: Cases, reference: Reference, seed: int = 0) -> Tensor:
    """Return the inputs with all features removed.

    Args:
        cases: The cases.
        reference: What features become.
        seed: Seed of random references. A draw is the same for every case, so that batches do not matter.

    Returns:
        Points ``[B, *shape]``. Coordinates of no feature keep their values.

    Raises:
        HoldfastError: The reference does not fit the inputs or the model.
    """
    x = cases.x
    reference = read_reference(reference)
    low, high = cases.model.low, cases.model.high
    if isinstance(reference, RandomWords):
        points = random_words(reference, x, seed)
    elif isinstance(reference, RandomRows):
        points = reference.drawn(x, seed)
    elif isinstance(reference, str):
        points = _made(cases, reference, seed)
        points = points if low is None else points.clamp(low, high)  # rounding must not leave the box
    else:
        points = (
            _fitted(reference.values, x) if isinstance(reference, FixedReference) else torch.full_like(x, reference)
        )
    points = torch.where(cases.features.ids >= 0, points, x)
    if low is not None and high is not None and bool(((points < low) | (points > high)).any()):
        warnings.warn(
            f"the reference has values from {float(points.min()):g} to {float(points.max()):g}, some of them outside "
            "the model's bounds: the model may never have seen such inputs.",
            HoldfastWarning,
            stacklevel=2,
        )
    return points


def is_random(reference: Reference) -> bool:
    """Return whether another seed gives another reference."""
    return isinstance(reference, (RandomWords, RandomRows)) or (isinstance(reference, str) and reference == "uniform")


def random_words(words: RandomWords, x: Tensor, seed: int) -> Tensor:
    """Draw a word for every position of embedded text, the same for every case.

    Args:
        words: The words to draw from.
        x: Embedded text ``[B, L, E]``.
        seed: Seed of the draw.

    Returns:
        Word vectors ``[B, L, E]``.

    Raises:
        HoldfastError: ``x`` is not embedded text with vectors of this length.
    """
    vectors = words.values
    if x.ndim != 3 or x.shape[2] != vectors.shape[1]:
        raise HoldfastError(
            f"random words of {vectors.shape[1]} numbers are for embedded text [B, L, {vectors.shape[1]}], got "
            f"{tuple(x.shape)}."
        )
    which = torch.randint(len(vectors), (x.shape[1],), generator=generator(seed))
    return vectors[which.to(vectors.device)].to(x).expand_as(x)


def _made(cases: Cases, kind: str, seed: int) -> Tensor:
    """Return the blurred or mean image, or noise, ``[B, *shape]``."""
    x = cases.x
    if kind == "uniform":
        return noise(cases, 1, seed).expand_as(x)
    if x.ndim != 4:
        raise HoldfastError(f"reference {kind!r} is for images [B, C, H, W], got {tuple(x.shape)}.")
    return _blurred(x) if kind == "blur" else x.mean((2, 3), keepdim=True).expand_as(x)


def noise(cases: Cases, draws: int, seed: int) -> Tensor:
    """Draw inputs uniformly inside the model's bounds.

    Args:
        cases: Cases of a model with bounds.
        draws: How many inputs to draw.
        seed: Seed of the draw.

    Returns:
        ``[draws, *shape]``.

    Raises:
        HoldfastError: The model has no bounds.
    """
    low, high = cases.model.low, cases.model.high
    if low is None or high is None:
        raise HoldfastError("uniform noise needs a model with bounds: give a tensor of reference values instead.")
    drawn = torch.rand(draws, *cases.x.shape[1:], generator=generator(seed)).to(cases.x)
    return low + drawn * (high - low)


def live_features(cases: Cases, points: Tensor) -> Tensor:
    """Return which features differ from ``points [B, *shape]``, bool ``[B, d]``: removing others changes nothing."""
    return cases.features.pool((cases.x != points).to(cases.x)) > 0


def kept_scores(
    cases: Cases,
    points: Tensor,
    case: Tensor,
    kept: Callable[[slice], Tensor],
    progress: Progress | None = None,
    score: Score = "logit",
) -> Tensor:
    """Return the score of the label with some features kept and the others removed.

    Args:
        cases: The cases.
        points: The inputs with all features removed, ``[B, *shape]``.
        case: The case of each row, ``[R]``.
        kept: From a slice of the rows to the features they keep, bool ``[r, d]``.
        progress: Called with (done, total) rows.
        score: Which score of the label to return.

    Returns:
        ``[R]``: the score of the label, minus that of the target if there is one.

    Raises:
        HoldfastError: A score is not finite.
    """

    def work(piece: slice) -> Tensor:
        which = case[piece]
        keep = cases.features.expand(kept(piece), which)
        logits = cases.model(torch.where(keep, cases.x[which], points[which]))
        scores = cases.model.probabilities(logits) if score == "probability" else logits
        target = cases.target[which]
        if score == "margin":
            others = scores.scatter(1, cases.label[which][:, None], -torch.inf)
            target = torch.where(target == ANY, others.argmax(1), target)
        return explained(scores, cases.label[which], target)

    parts = []
    for piece, part in chunked(work, len(case), cases.model.chunk(cases.x, gradient=False)):
        if not bool(torch.isfinite(part).all()):
            raise HoldfastError(
                "the model returns NaN or infinite scores when features are removed: use another reference."
            )
        parts.append(part)
        if progress is not None:
            progress(piece.stop, len(case))
    return torch.cat(parts) if parts else cases.x.new_zeros(0)


def _fitted(values: Tensor, x: Tensor) -> Tensor:
    """Return reference values of one input or of all as ``[B, *shape]``."""
    values = values.to(x)
    if tuple(values.shape) not in {tuple(x.shape), tuple(x.shape[1:])}:
        raise HoldfastError(
            f"reference must be a number or have the shape of one input {tuple(x.shape[1:])} or of the batch "
            f"{tuple(x.shape)}, got {tuple(values.shape)}."
        )
    return values.expand_as(x)


def _blurred(x: Tensor) -> Tensor:
    """Blur images with a Gaussian along each side; edge pixels are repeated."""
    spread = _BLUR * max(x.shape[2:])
    reach = max(1, round(3 * spread))
    weights = torch.exp(-0.5 * (torch.arange(-reach, reach + 1).to(x) / spread) ** 2)
    weights = weights / weights.sum()
    flat = x.flatten(0, 1)[:, None]
    flat = functional.conv2d(functional.pad(flat, (0, 0, reach, reach), "replicate"), weights[None, None, :, None])
    flat = functional.conv2d(functional.pad(flat, (reach, reach, 0, 0), "replicate"), weights[None, None, None, :])
    return flat.reshape(x.shape)
