"""Words of a text, and the vectors that stand for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import HoldfastError

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SHORT = re.compile(r"(?:n['’]t|['’](?:s|re|ve|ll|d|m))$", re.IGNORECASE)


class Word(NamedTuple):
    """A word and where it stands in its text: ``text[start:end]``."""

    text: str
    start: int
    end: int


def split(text: str) -> list[Word]:
    """The words of a text in order, without punctuation; short forms are two words, as in GloVe: do + n't, it + 's."""
    found = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        short = _SHORT.search(text, start, end)
        cut = end if short is None or short.start() == start else short.start()
        found += [Word(text[a:b], a, b) for a, b in ((start, cut), (cut, end)) if a < b]
    return found


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words in lower case and their ``vectors [V, E]``; one more row, the mean of all, stands for unknown words."""

    words: tuple[str, ...]
    vectors: Tensor

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words) or not self.words:
            raise HoldfastError(
                f"a vocabulary needs a vector for each of its {len(self.words)} words, got {tuple(self.vectors.shape)}."
            )
        if len(self.number) != len(self.words):
            raise HoldfastError("a vocabulary must name each word once.")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def number(self) -> dict[str, int]:
        """The row of every word."""
        return {word: row for row, word in enumerate(self.words)}

    def row(self, word: str) -> int:
        """The row of a word however it is written; that past the last if it is unknown."""
        return self.number.get(word.lower().replace("’", "'"), len(self.words))

    @cached_property
    def rows(self) -> Tensor:
        """All vectors ``[V + 1, E]``, that for unknown words last."""
        return torch.cat([self.vectors, self.vectors.mean(0, keepdim=True)])

    @classmethod
    def read(cls, path: str | PathLike[str], keep: Sequence[str] | None = None, most: int | None = None) -> Vocabulary:
        """Vectors from a text file as GloVe's, or fastText's: a word and its numbers a line, the commonest words first.

        Words with capitals are passed over, since texts are read in lower case.
        ``keep`` and ``most``: only these words, and only so many.
        """
        wanted = None if keep is None else set(keep)
        words: dict[str, np.ndarray] = {}
        width = 0
        try:
            with Path(path).open(encoding="utf-8") as file:
                for line in file:
                    parts = line.rstrip().split(" ")  # fastText ends its lines with a blank
                    if not width and len(parts) == 2 and all(part.isdigit() for part in parts):
                        continue  # word2vec's and fastText's first line: how many words, how many numbers each
                    width = width or len(parts) - 1
                    word = " ".join(parts[:-width])  # GloVe's largest file has words with blanks inside
                    if most is not None and len(words) >= most:
                        break
                    if (wanted is None or word in wanted) and word not in words and word == word.lower():
                        words[word] = np.array(parts[-width:], dtype=np.float32)
        except (OSError, UnicodeDecodeError) as error:
            raise HoldfastError(f"cannot read word vectors from {path}: {error}.") from error
        except ValueError as error:
            raise HoldfastError(f"{path} holds no word vectors: its lines should be a word and numbers.") from error
        if not words or not width:
            raise HoldfastError(f"{path} holds no word vectors: its lines should be a word and numbers.")
        return cls(tuple(words), torch.from_numpy(np.stack(list(words.values()))))
