"""What stands in for a feature that is taken away, and how the model scores what is left."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from holdfast.cases import ANY, Cases, explained
from holdfast.chunks import Progress, chunked
from holdfast.draws import generator
from holdfast.errors import HoldfastError, HoldfastWarning


class FixedReference:
    """A tensor of reference values; its ``repr`` names shape and content, so that settings tell what made a result."""

    def __init__(self, values: Tensor):
        self.values = values.detach()
        content = self.values.cpu().contiguous().double().numpy().tobytes()
        self._digest = hashlib.sha256(content).hexdigest()[:12]

    @classmethod
    def inputs(cls, given: Any, name: str = "references") -> FixedReference:
        """A tensor of several inputs ``[N, *shape]``."""
        values = given if isinstance(given, str) else read_reference(given, name)
        if not isinstance(values, cls) or values.values.ndim < 2 or not len(values.values):
            raise HoldfastError(f"{name} must be a tensor of inputs [N, *shape], got {values!r}.")
        return values

    def fitting(self, x: Tensor, name: str = "references") -> Tensor:
        """These inputs on the device of ``x [B, *shape]``; refuses other shapes."""
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
    """Word vectors ``[V, E]``: a word that is taken away becomes one of them at random, whole."""

    def __init__(self, vectors: Any):
        values = torch.as_tensor(vectors)
        if values.ndim != 2 or not len(values) or not values.is_floating_point():
            raise HoldfastError(f"word vectors must be floats [V, E], got {values.dtype} of {tuple(values.shape)}.")
        if not bool(torch.isfinite(values).all()):
            raise HoldfastError("word vectors hold NaN or infinity.")
        super().__init__(values)

    def __repr__(self) -> str:
        return f"RandomWords({super().__repr__()})"


Reference = float | Tensor | FixedReference | Literal["blur", "mean", "uniform"]
"""A number, a tensor, or how to make one: ``blur`` and ``mean`` (of the image), ``uniform`` (noise in the box).

For embedded text ``RandomWords(vectors)`` puts random words in the place of those taken away.
"""

Score = Literal["logit", "probability", "margin"]
"""What of the label is looked at: its logit, its probability, or its logit less the largest of the other classes.

Where a target is asked about, its own is taken off instead.
"""

_WORDS = ("blur", "mean", "uniform")
_BLUR = 0.1  # the standard deviation of the blur, as a share of the longer side (Fong & Vedaldi: 10 of 224 pixels)


def read_reference(given: Any, name: str = "reference") -> float | FixedReference | Literal["blur", "mean", "uniform"]:
    """Refuse what cannot stand in for a feature, before anything runs."""
    if isinstance(given, str):
        if given not in _WORDS:
            raise HoldfastError(f"{name} must be a number, a tensor or one of {', '.join(_WORDS)}, got {given!r}.")
        return given  # type: ignore[return-value]  # mypy does not narrow a string by a tuple
    if isinstance(given, FixedReference):
        return given
    try:
        values = torch.as_tensor(given, dtype=torch.double if isinstance(given, float) else None)
    except (TypeError, ValueError, RuntimeError) as error:
        raise HoldfastError(f"{name} must be a number, a tensor or one of {', '.join(_WORDS)}.") from error
    if not bool(torch.isfinite(values).all()):
        raise HoldfastError(f"{name} holds NaN or infinity.")
    return float(values) if values.ndim == 0 else FixedReference(values)


def reference_points(cases: Cases, reference: Reference, seed: int = 0) -> Tensor:
    """The point ``[B, *shape]`` at which every feature is taken away; what is no feature keeps its value.

    Noise is the same for every case, so that batches do not matter.
    """
    x = cases.x
    reference = read_reference(reference)
    low, high = cases.model.low, cases.model.high
    if isinstance(reference, RandomWords):
        points = random_words(reference, x, seed)
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
            "the model's bounds: the model is asked about inputs it may never have seen.",
            HoldfastWarning,
            stacklevel=2,
        )
    return points


def is_random(reference: Reference) -> bool:
    """Whether another seed gives another reference."""
    return isinstance(reference, RandomWords) or (isinstance(reference, str) and reference == "uniform")


def random_words(words: RandomWords, x: Tensor, seed: int) -> Tensor:
    """A word drawn at every place of embedded text ``x [B, L, E]``: the same for every case."""
    vectors = words.values
    if x.ndim != 3 or x.shape[2] != vectors.shape[1]:
        raise HoldfastError(
            f"random words of {vectors.shape[1]} numbers are for embedded text [B, L, {vectors.shape[1]}], got "
            f"{tuple(x.shape)}."
        )
    which = torch.randint(len(vectors), (x.shape[1],), generator=generator(seed))
    return vectors[which.to(vectors.device)].to(x).expand_as(x)


def _made(cases: Cases, word: str, seed: int) -> Tensor:
    x = cases.x
    if word == "uniform":
        return noise(cases, 1, seed).expand_as(x)
    if x.ndim != 4:
        raise HoldfastError(f"reference {word!r} is for images [B, C, H, W], got {tuple(x.shape)}.")
    return _blurred(x) if word == "blur" else x.mean((2, 3), keepdim=True).expand_as(x)


def noise(cases: Cases, draws: int, seed: int) -> Tensor:
    """``draws`` inputs ``[draws, *shape]``, uniform over the model's box."""
    low, high = cases.model.low, cases.model.high
    if low is None or high is None:
        raise HoldfastError("uniform noise needs a model with bounds: give a tensor of reference values instead.")
    drawn = torch.rand(draws, *cases.x.shape[1:], generator=generator(seed)).to(cases.x)
    return low + drawn * (high - low)


def live_features(cases: Cases, points: Tensor) -> Tensor:
    """Features ``[B, d]`` whose values differ from those of ``points``: taking away the others changes nothing."""
    return cases.features.pool((cases.x != points).to(cases.x)) > 0


def kept_scores(
    cases: Cases,
    points: Tensor,
    case: Tensor,
    kept: Callable[[slice], Tensor],
    progress: Progress | None = None,
    score: Score = "logit",
) -> Tensor:
    """The score ``[R]`` of the label with some features kept and the others taken from ``points [B, *shape]``.

    ``case [R]`` says whose input a row is; ``kept(piece)`` gives bool ``[r, d]`` for a piece of the rows.
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
                "the model returns NaN or infinite scores once features are taken away: try another reference."
            )
        parts.append(part)
        if progress is not None:
            progress(piece.stop, len(case))
    return torch.cat(parts) if parts else cases.x.new_zeros(0)


def _fitted(values: Tensor, x: Tensor) -> Tensor:
    values = values.to(x)
    if tuple(values.shape) not in {tuple(x.shape), tuple(x.shape[1:])}:
        raise HoldfastError(
            f"reference must be a number or have the shape of one input {tuple(x.shape[1:])} or of the batch "
            f"{tuple(x.shape)}, got {tuple(values.shape)}."
        )
    return values.expand_as(x)


def _blurred(x: Tensor) -> Tensor:
    """A Gaussian blur along each side, edges repeated."""
    spread = _BLUR * max(x.shape[2:])
    reach = max(1, round(3 * spread))
    weights = torch.exp(-0.5 * (torch.arange(-reach, reach + 1).to(x) / spread) ** 2)
    weights = weights / weights.sum()
    flat = x.flatten(0, 1)[:, None]
    flat = functional.conv2d(functional.pad(flat, (0, 0, reach, reach), "replicate"), weights[None, None, :, None])
    flat = functional.conv2d(functional.pad(flat, (reach, reach, 0, 0), "replicate"), weights[None, None, None, :])
    return flat.reshape(x.shape)
