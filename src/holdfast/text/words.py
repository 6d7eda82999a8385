"""Words of a text, and the vectors that represent them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.files import MEGABYTE, reading, shown

_LARGEST = 16_384 * MEGABYTE  # bytes of a file of word vectors; the largest of GloVe has 5,400 MB
_MALFORMED = "each line should be a word and numbers, as many as in the first"
_LONGEST_LINE = MEGABYTE  # letters: a word and its numbers take a few thousand
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SHORT = re.compile(r"(?:n['’]t|['’](?:s|re|ve|ll|d|m))$", re.IGNORECASE)


class Word(NamedTuple):
    """A word and its position in a text.

    Attributes:
        text: The word as it is written.
        start: The position of its first character.
        end: The position after its last character, so that it is ``text[start:end]`` of the whole text.
    """

    text: str
    start: int
    end: int


def split(text: str) -> list[Word]:
    """Split a text into words without punctuation.

    A short form is two words, as in the vocabulary of GloVe.

    >>> [word.text for word in split("It's fine, don't worry.")]
    ['It', "'s", 'fine', 'do', "n't", 'worry']

    Args:
        text: Any text.

    Returns:
        Its words in order; none if it has no letter and no digit.
    """
    return list(each_word(text))


def each_word(text: str) -> Iterator[Word]:
    """Yield the words of a text, as ``split`` returns them, without holding all of them."""
    for match in _WORD.finditer(text):
        start, end = match.span()
        short = _SHORT.search(text, start, end)
        cut = end if short is None or short.start() == start else short.start()
        yield from (Word(text[a:b], a, b) for a, b in ((start, cut), (cut, end)) if a < b)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words and their vectors.

    A word that is not in the vocabulary gets the mean of all vectors.

    >>> vocabulary = Vocabulary(("cat", "dog"), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    >>> vocabulary.row("Cat"), vocabulary.row("zebra")
    (0, 2)
    >>> vocabulary.rows[2].tolist()
    [0.5, 0.5]

    Attributes:
        words: V words in lower case, each once.
        vectors: Their vectors ``[V, E]``.

    Raises:
        HoldfastError: A word has no vector or is named twice.
    """

    words: tuple[str, ...]
    vectors: Tensor

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words) or not self.words:
            raise HoldfastError(
                f"a vocabulary needs a vector for each of its {len(self.words)} words, got vectors of shape "
                f"{tuple(self.vectors.shape)}."
            )
        if len(self.number) != len(self.words):
            raise HoldfastError("a vocabulary must name each word once.")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def number(self) -> dict[str, int]:
        """The row of each word in ``vectors``."""
        return {word: row for row, word in enumerate(self.words)}

    def row(self, word: str) -> int:
        """Return the row of a word in ``rows``.

        Args:
            word: A word in upper or lower case, with a straight or a curly apostrophe.

        Returns:
            Its row from 0 to V - 1, or V if it is unknown.
        """
        return self.number.get(word.lower().replace("’", "'"), len(self.words))

    @cached_property
    def rows(self) -> Tensor:
        """All vectors ``[V + 1, E]``; the last one, the mean of the others, is that of unknown words."""
        return torch.cat([self.vectors, self.vectors.mean(0, keepdim=True)])

    @classmethod
    def read(cls, path: str | PathLike[str], keep: Sequence[str] | None = None, most: int | None = None) -> Vocabulary:
        """Read word vectors from a text file of GloVe, word2vec or fastText.

        Each line is a word and its numbers, the most frequent words first. A first line with the number of words and
        of dimensions is skipped. So are words with capitals, because texts are compared in lower case.

        Args:
            path: The file, in UTF-8.
            keep: Read these words only. None: all of them.
            most: Read at most this many words. None: all of them.

        Returns:
            The words in the order of the file.

        Raises:
            HoldfastError: The file cannot be read, or its lines are no word vectors.
        """
        with reading(path, "word vectors from", _LARGEST), Path(path).open(encoding="utf-8") as file:
            words = _read_lines(file, None if keep is None else set(keep), most)
            if not words:
                raise HoldfastError(f"{shown(path)} holds no word vectors of the words that are read.")
            return cls(tuple(words), torch.from_numpy(np.stack(list(words.values()))))


def _read_lines(file: TextIO, keep: set[str] | None, most: int | None) -> dict[str, np.ndarray]:
    """Return vectors by word, in the order of the lines; raises ValueError for a line that is no vector."""
    words: dict[str, np.ndarray] = {}
    width = 0
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise ValueError("a line is too long for a word and its numbers")
        parts = line.rstrip().split(" ")  # fastText ends its lines with a blank
        if not width and len(parts) == 2 and all(part.isdigit() for part in parts):
            continue  # the first line of word2vec and fastText: the number of words and of dimensions
        width = width or len(parts) - 1
        word = " ".join(parts[:-width])  # the largest file of GloVe has words with blanks inside
        if most is not None and len(words) >= most:
            break
        if (keep is None or word in keep) and word not in words and word == word.lower():
            if not 0 < width < len(parts):
                raise ValueError(_MALFORMED)
            try:
                words[word] = np.array(parts[-width:], dtype=np.float32)
            except ValueError:
                raise ValueError(_MALFORMED) from None
    return words
