"""A classifier of texts: a reader that turns words into vectors, and a network over the vectors."""

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
    """One text as a model reads it: L tokens, each a row of the reader's vectors.

    Attributes:
        words: The words that are read.
        rows: Of each token: its row in ``Reader.vectors``. Length L.
        owner: Of each token: the index in ``words`` of the word that it is a part of, or ``FIXED`` for a special
            token, which no perturbation moves. Length L.
        omitted: How many more words the text has than the model reads.
        known: Whether the model has a vector for at least one of the words.
    """

    words: tuple[Word, ...]
    rows: tuple[int, ...]
    owner: tuple[int, ...]
    omitted: int = 0
    known: bool = True


class Reader(ABC):
    """``reader(text) -> Reading``: splits a text into words, and looks the words up in a table of vectors.

    Subclass it for another way to split texts, then make a ``TextModel`` of it.

    Attributes:
        vectors: The table ``[V, E]``.
        names: Of each of the V rows: the word that it is the vector of, or None if it is that of a part of a word or
            of a special token.
    """

    vectors: Tensor
    names: Sequence[str | None]

    @abstractmethod
    def __call__(self, text: str) -> Reading:
        """Read one text.

        Args:
            text: Any text; it may have no word.

        Returns:
            Its words and tokens.
        """


class WordReader(Reader):
    """A reader for networks over word vectors: each word is one token.

    >>> reader = WordReader(Vocabulary(("cat", "the"), torch.eye(2)), longest=3)
    >>> reading = reader("The zebra, the cat, the end.")
    >>> [word.text for word in reading.words], reading.rows, reading.omitted
    (['The', 'zebra', 'the'], (1, 2, 1), 3)

    Args:
        vocabulary: The words that have a vector. All other words share the row after the last one.
        longest: Read this many words of a text and omit the others.
    """

    def __init__(self, vocabulary: Vocabulary, longest: int = 200):
        self.vocabulary, self.longest = vocabulary, longest
        self.vectors, self.names = vocabulary.rows, (*vocabulary.words, None)

    def __call__(self, text: str) -> Reading:
        words = split(text)
        rows = tuple(self.vocabulary.row(word.text) for word in words)[: self.longest]
        known = any(row < len(self.vocabulary) for row in rows)
        return Reading(tuple(words[: self.longest]), rows, tuple(range(len(rows))), len(words) - len(rows), known)


@dataclass(frozen=True, eq=False)
class Sentences:
    """A batch of texts as inputs of a network.

    ``x[i, t]`` is the vector of token t of text i, followed by 1; it is 0 throughout where text i has no token t.
    Feature j of text i is the word ``words[i][j]``: its coordinates are the vectors of all its tokens. The last
    coordinate of a token, special tokens and padding belong to no feature and never move.

    Attributes:
        texts: The B texts.
        words: Of each text: the words that are read.
        x: Inputs ``[B, L, E + 1]``, where L is the number of tokens of the longest text.
        rows: Rows of the tokens in ``Reader.vectors``, ``[B, L]``; -1 is padding.
        features: The words as features.
        omitted: Of each text: how many more words it has than the model reads.
    """

    texts: tuple[str, ...]
    words: tuple[tuple[Word, ...], ...]
    x: Tensor
    rows: Tensor
    features: Features
    omitted: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, which: slice) -> Sentences:
        parts = (self.texts[which], self.words[which], self.x[which], self.rows[which])
        return Sentences(*parts, self.features.at(which), self.omitted[which])


class TextModel:
    """A reader and a network over its vectors: a classifier that can be asked about texts.

    >>> from holdfast.text import BiLstm
    >>> vocabulary = Vocabulary(("goalie", "law", "puck", "the"), torch.eye(4))
    >>> model = TextModel(WordReader(vocabulary), BiLstm(4, classes=2).eval(), classes=("sports", "politics"))
    >>> sentences = model.read(["The goalie stopped the puck.", "The law."])
    >>> sentences.x.shape                        # B = 2 texts, L = 5 words, E + 1 = 5
    torch.Size([2, 5, 5])
    >>> cases = model.ask(sentences)             # why this class?
    >>> cases.features.count                     # the words of the longest text
    5

    The coordinates of a word vector are not bounded, so a radius stays infinite if no change of the decision is found.

    Args:
        reader: From a text to rows of vectors ``[V, E]``.
        network: From inputs ``[R, L, E + 1]``, as in ``Sentences``, to scores ``[R, C]``. It must be in eval mode.
        classes: Names of the C classes.
        device: Where the network computes. None: where it is.
        chunk: Rows that go through the network at once. Default: see ``TorchModel``.

    Attributes:
        reader: The reader.
        classifier: The network as a model of embedded texts. Explainers, criteria and robustness methods use it.

    Raises:
        HoldfastError: An argument is malformed, or the network is in training mode.
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
        """Names of the classes; their numbers if none were given; empty until the model has been asked once."""
        return self.classifier.classes

    def read(self, texts: str | Sequence[str]) -> Sentences:
        """Return texts as inputs. Warn about texts that are longer than the model reads.

        Args:
            texts: A text or several.

        Returns:
            The texts, embedded and padded to the longest.

        Raises:
            HoldfastError: There is no text, or a text has no word that the model knows.
        """
        if not isinstance(texts, Sequence):
            raise HoldfastError(f"expected a text or several, got {type(texts).__name__}.")
        texts = (texts,) if isinstance(texts, str) else tuple(texts)
        if not texts:
            raise HoldfastError("expected at least one text, got none.")
        readings = [self._reading(number, text) for number, text in enumerate(texts)]
        longest = max(len(reading.rows) for reading in readings)
        rows = torch.full((len(readings), longest), -1)
        owner = torch.full((len(readings), longest), FIXED)
        for number, reading in enumerate(readings):
            rows[number, : len(reading.rows)] = torch.tensor(reading.rows)
            owner[number, : len(reading.owner)] = torch.tensor(reading.owner)
        words, x = tuple(reading.words for reading in readings), embed(rows, self.reader.vectors)
        names = tuple(tuple(word.text for word in one) for one in words)
        features = self._features(rows, owner, names)
        return Sentences(texts, words, x, rows, features, tuple(reading.omitted for reading in readings))

    def knows(self, text: str) -> bool:
        """Return whether a text has a word that the model knows; ``read`` refuses texts without one."""
        reading = self.reader(text)
        return bool(reading.words) and reading.known

    def ask(
        self,
        texts: str | Sequence[str] | Sentences,
        label: Any = None,
        target: Any = None,
    ) -> Cases:
        """Ask "why ``label`` (and not ``target``)?" about texts.

        Args:
            texts: A text, several, or what ``read`` returned.
            label: The class to explain, by number or name, one for all texts or one for each. Default: the prediction.
            target: The class asked about, in the same forms. Default: none, so that any other class is a change.

        Returns:
            The cases, with words as features.

        Raises:
            HoldfastError: A text or a class does not fit the model.
        """
        sentences = texts if isinstance(texts, Sentences) else self.read(texts)
        return self.classifier.ask(sentences.x, label, target, sentences.features)

    @cached_property
    def known_names(self) -> tuple[str, ...]:
        """The W words that have a vector of their own."""
        return tuple(name for name in self.reader.names if name is not None)

    @cached_property
    def known_vectors(self) -> Tensor:
        """The vectors ``[W, E]`` of ``known_names``."""
        return self.reader.vectors[[row for row, name in enumerate(self.reader.names) if name is not None]]

    @cached_property
    def random_words(self) -> RandomWords:
        """A reference that replaces a word by a random one of ``known_names``."""
        return RandomWords(torch.cat([self.known_vectors, torch.ones_like(self.known_vectors[:, :1])], 1))

    def _reading(self, number: int, text: str) -> Reading:
        """Read one text; refuse it if it has no known word, and warn if it is too long."""
        if not isinstance(text, str):
            raise HoldfastError(f"text {number} is no text: expected a str, got {type(text).__name__}.")
        if not text.strip():
            raise HoldfastError(f"text {number} is empty.")
        reading = self.reader(text)
        count = len(reading.words)
        if not reading.words:
            raise HoldfastError(f"text {number} has no word in it: {_shortened(text)!r}.")
        if not reading.known:
            raise HoldfastError(f"the model knows none of the {count} words of text {number}: {_shortened(text)!r}.")
        if reading.omitted:
            warnings.warn(
                f"text {number} has {count + reading.omitted} words, more than the model reads at a time: the last "
                f"{reading.omitted} are left out.",
                HoldfastWarning,
                stacklevel=4,
            )
        return reading

    def _features(self, rows: Tensor, owner: Tensor, names: tuple[tuple[str, ...], ...]) -> Features:
        """Return words as features of inputs ``[B, L, E + 1]``."""
        words = Features.tokens(rows >= 0, owner)
        width = self.reader.vectors.shape[1]
        ids = torch.cat([words.ids.expand(-1, -1, width), torch.full_like(words.ids, FIXED)], 2)
        return Features(ids, words.count, "words", names)


def embed(rows: Tensor, vectors: Tensor) -> Tensor:
    """Return the inputs of a network over word vectors.

    >>> embed(torch.tensor([[1, -1]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])).tolist()
    [[[7.0, 8.0, 1.0], [0.0, 0.0, 0.0]]]

    Args:
        rows: The row of each token in ``vectors``, ``[B, L]``; -1 is padding.
        vectors: The vectors ``[V, E]``.

    Returns:
        Inputs ``[B, L, E + 1]``: the vector of a token followed by 1, or zeros for padding.
    """
    is_token = (rows >= 0).to(vectors)[..., None]
    return torch.cat([vectors[rows.clamp_min(0)] * is_token, is_token], 2)


def _shortened(text: str) -> str:
    """Return the beginning of a text, for a message."""
    return text if len(text) <= 40 else f"{text[:40]}…"
