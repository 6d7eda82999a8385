"""Movie reviews with rationales, words that people marked as decisive (Zaidan & Eisner 2008; DeYoung et al. 2020)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from holdfast.analyses.agreement import Marks
from holdfast.data.archive import read_files
from holdfast.data.dataset import Examples
from holdfast.data.texts import Texts
from holdfast.data.topics import TextData, class_numbers
from holdfast.errors import HoldfastError
from holdfast.files import MEGABYTE, reading, shown, too_large
from holdfast.text import Word
from holdfast.text import split as words_of

SENTIMENTS = ("negative", "positive")
"""Names of the classes of movie reviews."""
Spans = tuple[tuple[int, int], ...]
"""Start and end of each of several parts of a text."""
_LARGEST = MEGABYTE  # bytes of one review; the largest has 15 kB
_MOST_BYTES = 64 * MEGABYTE  # of all files; those of ERASER's movies have 11 MB
_MOST_MARKED = 0.5  # share of the words of a passage: if people mark more, nearly any ranking agrees with them


@dataclass(frozen=True)
class _Review:
    """A review as it is in its file, and the groups of spans of tokens that people marked.

    Tokens and marks are found when they are used: those of all reviews together would take much memory.
    """

    name: str
    label: int
    text: str
    evidence: list[list[dict[str, Any]]]

    def lines(self) -> list[list[str]]:
        """Return the tokens of each line."""
        return [line.split() for line in self.text.splitlines()]

    def marked(self, count: int) -> frozenset[int]:
        """Return the numbers of the marked tokens, of ``count``. Spans are counted at their ends: any may be huge."""
        edges = [0] * (count + 1)
        for group in self.evidence:
            for span in group:
                start = min(max(int(span["start_token"]), 0), count)
                edges[start] += 1
                edges[min(max(int(span["end_token"]), start), count)] -= 1
        return frozenset(token for token, spans in enumerate(accumulate(edges[:-1])) if spans > 0)


def movie_reviews(root: str | Path, split: Literal["train", "val"] = "val") -> Texts:
    """Read whole movie reviews of ERASER.

    Args:
        root: A folder or archive (.zip, .tar.gz) with ERASER's movies.
        split: The split to read. Training reviews that are also in ``val`` are left out.

    Returns:
        The reviews, one line for each of their lines.

    Raises:
        HoldfastError: The reviews cannot be read.
    """
    reviews = _reviews(Path(root), split)
    if split == "train":
        validation = {review.name for review in _reviews(Path(root), "val")}
        reviews = [review for review in reviews if review.name not in validation]
    texts = tuple("\n".join(" ".join(line) for line in review.lines()) for review in reviews)
    return _with_sentiments(texts, reviews)


def movie_passages(root: str | Path, most: int = 40) -> tuple[Texts, list[Spans]]:
    """Read one passage of each review of ``val``, with the parts that people marked.

    A passage starts from the first line with a mark that is short enough. The lines after it are added, then those
    before it, up to ``most`` words. Passages without a mark, or with marks on more than half of their words, are left
    out.

    Args:
        root: A folder or archive (.zip, .tar.gz) with ERASER's movies.
        most: The most words of a passage.

    Returns:
        The passages, and the marked parts of each.

    Raises:
        HoldfastError: The reviews cannot be read.
    """
    reviews = _reviews(Path(root), "val")
    with reading(root, "ERASER's movies in"):
        passages = [(review, passage) for review in reviews if (passage := _passage(review, most)) is not None]
    texts = tuple(text for _, (text, _) in passages)
    return _with_sentiments(texts, [review for review, _ in passages]), [spans for _, (_, spans) in passages]


def _with_sentiments(texts: tuple[str, ...], reviews: Sequence[_Review]) -> Texts:
    """Return texts with the labels and names of their reviews."""
    labels = torch.tensor([review.label for review in reviews], dtype=torch.long)
    return Texts(texts, labels, SENTIMENTS, tuple(review.name for review in reviews))


def _passage(review: _Review, most: int) -> tuple[str, Spans] | None:
    """Return a passage and its marked parts; None if no line with a mark gives one."""
    lines = review.lines()
    starts = [0, *accumulate(map(len, lines))]
    marked = review.marked(starts[-1])
    sizes = [len(words_of(" ".join(line))) for line in lines]
    for middle, size in enumerate(sizes):
        if size > most or marked.isdisjoint(range(starts[middle], starts[middle + 1])):
            continue
        first, last, room = middle, middle + 1, most - size
        while True:
            if last < len(sizes) and sizes[last] <= room:
                room, last = room - sizes[last], last + 1
            elif first > 0 and sizes[first - 1] <= room:
                room, first = room - sizes[first - 1], first - 1
            else:
                break
        text, spans = _joined(lines[first:last], starts[first], marked)
        words = words_of(text)
        if 0 < len(marked_words(words, spans)) <= _MOST_MARKED * len(words):
            return text, spans
    return None


def _joined(lines: Sequence[Sequence[str]], start: int, marked: frozenset[int]) -> tuple[str, Spans]:
    """Return lines as one text, and where the marked tokens are in it; ``start`` is the number of the first token."""
    text, spans = "", []
    for number, token in enumerate((token for line in lines for token in line), start):
        text += " " if text else ""
        if number in marked:
            spans.append((len(text), len(text) + len(token)))
        text += token
    return text, tuple(spans)


def marked_words(words: Sequence[Word], spans: Spans) -> frozenset[int]:
    """Return the numbers of the words that overlap a marked part.

    Args:
        words: The words of a text.
        spans: The marked parts of the text.
    """
    return frozenset(
        number
        for number, word in enumerate(words)
        if any(word.start < end and start < word.end for start, end in spans)
    )


def _reviews(root: Path, split: str) -> list[_Review]:
    """Read all reviews of a split."""
    files = {}
    for name, content in read_files(
        root, lambda name: name.endswith(f"{split}.jsonl") or "docs/" in name, most=_MOST_BYTES
    ):
        files[name.rsplit("/", 1)[-1]] = content
    if f"{split}.jsonl" not in files:
        raise HoldfastError(f"{shown(root)} has no {split}.jsonl: it should hold ERASER's movies.")
    reviews: dict[str, _Review] = {}
    with reading(root, "ERASER's movies in"):
        for line in files.pop(f"{split}.jsonl").decode("utf-8").splitlines():
            review = _review(line, files)
            if review.name in reviews:
                raise ValueError(f"{split}.jsonl has the review {review.name!r} twice")
            reviews[review.name] = review
    return list(reviews.values())


def _review(line: str, files: dict[str, bytes]) -> _Review:
    """Return the review that a line of a split describes."""
    entry = json.loads(line)
    name = str(entry["annotation_id"])
    if name not in files:
        raise ValueError(f"there is no review {name!r}")
    if len(files[name]) > _LARGEST:
        raise too_large(f"the review {shown(name)}", _LARGEST)
    label = ("NEG", "POS").index(entry["classification"])
    return _Review(name, label, files[name].decode("utf-8"), entry["evidences"])


@dataclass(frozen=True)
class MovieData(TextData):
    """Passages of movie reviews in which people marked the decisive words.

    Passages that the network classifies wrongly are left out: marks do not explain a prediction that people do not
    share.

    Attributes:
        root: A folder or archive with ERASER's movies. The package does not contain them.
    """

    name: ClassVar[str] = "eraser-movies"

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        model = network.text_model(device)
        if self.root is None:
            raise HoldfastError(f"reviews of {self.name} are not embedded: name their folder or archive with --data.")
        passages, marked = movie_passages(self.root, most=self.max_words)
        spans = dict(zip(passages.names, marked, strict=True))
        texts = self.readable(passages, model)
        numbers = class_numbers(texts, model)
        if numbers is None:
            raise HoldfastError(
                f"the passages are {' or '.join(texts.classes)}, and the network has other classes: name one that was "
                "trained on movies with --weights."
            )
        labels = torch.tensor(numbers)[texts.y]
        texts = texts.select((model.ask(texts.texts).label.cpu() == labels).nonzero()[:, 0].tolist())
        if not len(texts):
            raise HoldfastError("the network classifies every passage wrongly: name a better one with --weights.")
        examples = self.examples(texts, model)
        assert examples.sentences is not None
        marks = {
            name: {"people": marked_words(words, spans[name])}
            for name, words in zip(examples.names, examples.sentences.words, strict=True)
        }
        return replace(examples, marks=Marks(marks))
