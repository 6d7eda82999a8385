"""A classifier of texts: what reads words, the vectors that stand for them, and a network over the vectors."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from holdfast.cases import Cases
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.features import FIXED, Features
from holdfast.models.torch import TorchModel
from holdfast.reference import RandomWords
from holdfast.text.words import Vocabulary, Word, split


class Reading(NamedTuple):
    """A text as a model reads it: ``rows`` of its vectors, and for each the number of the word it belongs to.

    ``FIXED`` in the place of such a number: a special token, which never moves. ``words`` are those that were read and
    ``left`` how many more the text has; ``known`` is whether any of them means something to the model.
    """

    words: tuple[Word, ...]
    rows: tuple[int, ...]
    owner: tuple[int, ...]
    left: int = 0
    known: bool = True


class Reader(ABC):
    """``reader(text) -> Reading``: text to words, and words to rows of ``vectors [V, E]``.

    ``names [V]`` are what rows are called, None where no word stands behind one.
    """

    vectors: Tensor
    names: Sequence[str | None]

    @abstractmethod
    def __call__(self, text: str) -> Reading:
        """Read one text."""


class WordReader(Reader):
    """One row a word of a vocabulary, up to ``longest`` of them."""

    def __init__(self, vocabulary: Vocabulary, longest: int = 200):
        self.vocabulary, self.longest = vocabulary, longest
        self.vectors, self.names = vocabulary.rows, (*vocabulary.words, None)

    def __call__(self, text: str) -> Reading:
        words = split(text)
        rows = tuple(self.vocabulary.row(word.text) for word in words)[: self.longest]
        read = tuple(words[: self.longest])
        known = any(row < len(self.vocabulary) for row in rows)
        return Reading(read, rows, tuple(range(len(rows))), len(words) - len(read), known)


@dataclass(frozen=True, eq=False)
class Sentences:
    """Texts as inputs ``x [B, L, E + 1]``: vectors, and a last number that is 1 where a token stands, 0 in padding.

    Feature j of text i is ``words[i][j]``; the last number, special tokens and padding never move. ``rows [B, L]`` are
    the vectors' numbers, -1 in padding. ``left`` is how many more words each text has than the model reads.
    """

    texts: tuple[str, ...]
    words: tuple[tuple[Word, ...], ...]
    x: Tensor
    rows: Tensor
    features: Features
    left: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, which: slice) -> Sentences:
        parts = (self.texts[which], self.words[which], self.x[which], self.rows[which])
        return Sentences(*parts, self.features.at(which), self.left[which])


class TextModel:
    """A network over word vectors that can be asked about texts.

    >>> model = TextModel(WordReader(Vocabulary.read("glove.6B.100d.txt")), network, classes=("sports", "politics"))
    >>> cases = model.ask(["The goalie made 40 saves."], target="politics")      # why sports and not politics?
    >>> ranking = hf.GreedyAS.words()(cases)                                   # its five keywords

    ``network`` maps ``[R, L, E + 1]`` to logits, as ``Sentences.x`` is laid out. Word vectors may go anywhere: there
    are no bounds, and a radius that is not found stays infinite. The network stays where it is, or goes to ``device``.
    """

    def __init__(
        self,
        reader: Reader,
        network: nn.Module,
        classes: Sequence[str] = (),
        *,
        device: torch.device | str | None = None,
        chunk: int | None = None,
    ):
        self.reader = reader
        self.classifier = TorchModel(network if device is None else network.to(device), classes=classes, chunk=chunk)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.classifier.classes

    def read(self, texts: str | Sequence[str]) -> Sentences:
        """Texts as inputs; says which are cut, and refuses those without a word that is known."""
        if not isinstance(texts, Sequence):
            raise HoldfastError(f"expected a text or several, got {type(texts).__name__}.")
        texts = (texts,) if isinstance(texts, str) else tuple(texts)
        if not texts:
            raise HoldfastError("name at least one text.")
        read = [self._read(number, text) for number, text in enumerate(texts)]
        longest = max(len(one.rows) for one in read)
        rows = torch.full((len(read), longest), -1)
        owner = torch.full((len(read), longest), FIXED)
        for number, one in enumerate(read):
            rows[number, : len(one.rows)] = torch.tensor(one.rows)
            owner[number, : len(one.owner)] = torch.tensor(one.owner)
        words, x = tuple(one.words for one in read), embed(rows, self.reader.vectors)
        names = tuple(tuple(word.text for word in of) for of in words)
        features = self._features(rows, owner, names)
        return Sentences(texts, words, x, rows, features, tuple(one.left for one in read))

    def knows(self, text: str) -> bool:
        """Whether the text has a word that means something to the model."""
        read = self.reader(text)
        return bool(read.words) and read.known

    def ask(
        self,
        texts: str | Sequence[str] | Sentences,
        label: Any = None,
        target: Any = None,
    ) -> Cases:
        """Why this label (the prediction if none is given), and not ``target``? Classes by number or by name."""
        sentences = texts if isinstance(texts, Sentences) else self.read(texts)
        return self.classifier.ask(sentences.x, label, target, sentences.features)

    @cached_property
    def known_names(self) -> tuple[str, ...]:
        """All words that have a vector of their own."""
        return tuple(name for name in self.reader.names if name is not None)

    @cached_property
    def known_vectors(self) -> Tensor:
        """Their vectors ``[words, E]``."""
        return self.reader.vectors[[row for row, name in enumerate(self.reader.names) if name is not None]]

    @cached_property
    def random_words(self) -> RandomWords:
        """A reference for what is taken away: another word, drawn at random."""
        return RandomWords(torch.cat([self.known_vectors, torch.ones_like(self.known_vectors[:, :1])], 1))

    def _read(self, number: int, text: str) -> Reading:
        if not isinstance(text, str) or not text.strip():
            raise HoldfastError(f"text {number} is empty." if isinstance(text, str) else f"text {number} is no text.")
        read = self.reader(text)
        if not read.words:
            raise HoldfastError(f"text {number} has no word in it: {_brief(text)!r}.")
        if not read.known:
            count = len(read.words)
            raise HoldfastError(f"the model knows none of the {count} words of text {number}: {_brief(text)!r}.")
        if read.left:
            warnings.warn(
                f"text {number} has {len(read.words) + read.left} words, more than the model reads at a time: the last "
                f"{read.left} are left out.",
                HoldfastWarning,
                stacklevel=4,
            )
        return read

    def _features(self, rows: Tensor, owner: Tensor, names: tuple[tuple[str, ...], ...]) -> Features:
        words = Features.tokens(rows >= 0, owner)
        width = self.reader.vectors.shape[1]
        ids = torch.cat([words.ids.expand(-1, -1, width), torch.full_like(words.ids, FIXED)], 2)
        return Features(ids, words.count, "words", names)


def embed(rows: Tensor, vectors: Tensor) -> Tensor:
    """The inputs ``[B, L, E + 1]`` that rows ``[B, L]`` of the vectors make; -1 is padding."""
    there = (rows >= 0).to(vectors)[..., None]
    return torch.cat([vectors[rows.clamp_min(0)] * there, there], 2)


def _brief(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
