"""Movie reviews in which people marked what decides: ERASER (DeYoung et al. 2020; Zaidan & Eisner 2008)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from holdfast.analyses.agreement import Marks
from holdfast.data.archive import files_of
from holdfast.data.dataset import Examples
from holdfast.data.texts import Texts
from holdfast.data.topics import TextData, class_numbers
from holdfast.errors import HoldfastError
from holdfast.text import Word
from holdfast.text import split as words_of

SENTIMENTS = ("negative", "positive")
_MOST_MARKED = 0.5  # of a passage's words: where people mark more, any word is right


@dataclass(frozen=True)
class _Review:
    """Lines of tokens, and which tokens of the whole review people marked."""

    name: str
    label: int
    lines: tuple[tuple[str, ...], ...]
    marked: frozenset[int]


def movie_reviews(root: str | Path, split: Literal["train", "val"] = "val") -> Texts:
    """Whole reviews of a folder or archive of ERASER's movies; the training ones without those of ``val``."""
    reviews = _reviews(Path(root), split)
    if split == "train":
        held_out = {review.name for review in _reviews(Path(root), "val")}
        reviews = [review for review in reviews if review.name not in held_out]
    texts = tuple("\n".join(" ".join(line) for line in review.lines) for review in reviews)
    return Texts(texts, torch.tensor([one.label for one in reviews]), SENTIMENTS, tuple(one.name for one in reviews))


Spans = tuple[tuple[int, int], ...]
"""Where in a text something begins and ends."""


def movie_passages(root: str | Path, most: int = 40) -> tuple[Texts, list[Spans]]:
    """A passage of every review of ``val``, and what people marked in it.

    The line of the first mark that fits, and the lines after it, then those before it, while there is room for ``most``
    words.
    Passages of which people marked more than half are left out.
    """
    texts, labels, names, marks = [], [], [], []
    for review in _reviews(Path(root), "val"):
        found = _passage(review, most)
        if found is not None:
            texts.append(found[0])
            marks.append(found[1])
            labels.append(review.label)
            names.append(review.name)
    return Texts(tuple(texts), torch.tensor(labels), SENTIMENTS, tuple(names)), marks


def _passage(review: _Review, most: int) -> tuple[str, Spans] | None:
    starts = [0]
    for line in review.lines:
        starts.append(starts[-1] + len(line))
    sizes = [len(words_of(" ".join(line))) for line in review.lines]
    for middle, size in enumerate(sizes):
        if size > most or not any(starts[middle] <= token < starts[middle + 1] for token in review.marked):
            continue
        first, last, room = middle, middle + 1, most - size
        while True:
            if last < len(sizes) and sizes[last] <= room:
                room, last = room - sizes[last], last + 1
            elif first > 0 and sizes[first - 1] <= room:
                room, first = room - sizes[first - 1], first - 1
            else:
                break
        text, spans = _joined(review, starts, first, last)
        words = words_of(text)
        marked = len(marked_words(words, spans))
        if marked and marked <= _MOST_MARKED * len(words):
            return text, spans
    return None


def _joined(review: _Review, starts: list[int], first: int, last: int) -> tuple[str, Spans]:
    """The lines as one text, and where the marked tokens stand."""
    text, spans = "", []
    for number in range(first, last):
        for place, token in enumerate(review.lines[number]):
            text += " " if text else ""
            if starts[number] + place in review.marked:
                spans.append((len(text), len(text) + len(token)))
            text += token
    return text, tuple(spans)


def marked_words(words: Sequence[Word], spans: Spans) -> frozenset[int]:
    """The numbers of the words that a span touches."""
    return frozenset(
        number
        for number, word in enumerate(words)
        if any(word.start < end and start < word.end for start, end in spans)
    )


def _reviews(root: Path, split: str) -> list[_Review]:
    held = {}
    for name, content in files_of(root, lambda name: name.endswith(f"{split}.jsonl") or "docs/" in name):
        held[name.rsplit("/", 1)[-1]] = content
    if f"{split}.jsonl" not in held:
        raise HoldfastError(f"{root} has no {split}.jsonl: it should hold ERASER's movies.")
    found = []
    try:
        for line in held[f"{split}.jsonl"].decode("utf-8").splitlines():
            entry = json.loads(line)
            name = str(entry["annotation_id"])
            lines = tuple(tuple(one.split()) for one in held[name].decode("utf-8").splitlines())
            label = ("NEG", "POS").index(entry["classification"])
            found.append(_Review(name, label, lines, frozenset(_marked(entry))))
    except (KeyError, ValueError, TypeError) as error:
        raise HoldfastError(f"{root} does not hold ERASER's movies: {error}.") from error
    return found


def _marked(entry: dict[str, Any]) -> Iterator[int]:
    for group in entry["evidences"]:
        for span in group:
            yield from range(int(span["start_token"]), int(span["end_token"]))


@dataclass(frozen=True)
class MovieData(TextData):
    """Passages of movie reviews in which people marked what decides, from ERASER's folder or archive ``root``.

    Passages that the network gets wrong are left out: marks do not explain a prediction that people do not share.
    """

    name: ClassVar[str] = "eraser-movies"

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        model = network.text_model(device)
        if self.root is None:
            raise HoldfastError(f"{self.name} are not embedded: name their folder or archive with --data.")
        passages, marked = movie_passages(self.root, most=self.max_words)
        spans = dict(zip(passages.names, marked, strict=True))
        texts = self.readable(passages, model)
        numbers = class_numbers(texts, model)
        if numbers is None:
            raise HoldfastError(
                f"people marked what is {' or '.join(texts.classes)}, and the network has other classes: name one that "
                "was trained on movies with --weights."
            )
        labels = torch.tensor(numbers)[texts.y]
        texts = texts.some((model.ask(texts.texts).label.cpu() == labels).nonzero()[:, 0].tolist())
        examples = self.examples(texts, model)
        assert examples.sentences is not None
        marks = {
            name: {"people": marked_words(words, spans[name])}
            for name, words in zip(examples.names, examples.sentences.words, strict=True)
        }
        return replace(examples, marks=Marks(marks))
